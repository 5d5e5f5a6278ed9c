// Package approval holds the rule by which a change takes effect: persons other than its author approve it. Revisions of the
// declared topology, replacements of devices, reference values of boots, and changes of endorsement keys follow it.
package approval

// Person is the acting person, as authenticated by the service.
type Person string

// Rule defines which persons may approve a change. The zero Rule needs a person other than the author.
type Rule struct {
	// Alone lets the author approve the change, too.
	Alone bool
}

// Allows reports whether a person may approve the change of an author.
func (r Rule) Allows(author, by Person) bool { return by != "" && (r.Alone || by != author) }

// Count returns how many of the persons that approved the change of an author count. A person who approved it twice counts
// once.
func (r Rule) Count(author Person, by []Person) (n int) {
	seen := make(map[Person]bool, len(by))
	for _, p := range by {
		if r.Allows(author, p) && !seen[p] {
			seen[p] = true
			n++
		}
	}
	return n
}

// Others returns "other than its author " where the author does not count: the middle of a sentence about persons who must
// approve a change.
func (r Rule) Others() string {
	if r.Alone {
		return ""
	}
	return "other than its author "
}
