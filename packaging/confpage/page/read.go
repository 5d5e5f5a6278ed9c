// Package page turns a reference configuration into a manual page. A comment above a key is about that key, and about the keys
// that follow it without a comment or an empty line between.
package page

import (
	"fmt"
	"strings"
)

// entry is a comment and the keys that it is about. A section has one key, and no value.
type entry struct {
	comment []string // its lines, without the mark
	keys    []key
	section bool
}

// key is a full key with its default.
type key struct{ name, value string }

// reader reads a configuration line by line.
type reader struct {
	entries []entry
	comment []string
	open    []level // the sections that the line is in
	joins   bool    // a key without a comment belongs to the last entry
}

type level struct {
	indent int
	name   string
}

// read returns the entries of a configuration, in their order. Its first comment is about the file, and is left out.
func read(text string) ([]entry, error) {
	_, text, found := strings.Cut(text, "\n\n")
	if !found {
		return nil, fmt.Errorf("the first comment does not end with an empty line")
	}
	r := &reader{}
	for n, line := range strings.Split(text, "\n") {
		if err := r.line(line); err != nil {
			return nil, fmt.Errorf("line %d after the first comment: %w", n+1, err)
		}
	}
	return r.entries, nil
}

func (r *reader) line(line string) error {
	content := strings.TrimLeft(line, " ")
	indent := len(line) - len(content)
	switch {
	case content == "":
		r.joins = false
		return nil
	case strings.HasPrefix(content, "#"):
		r.comment = append(r.comment, strings.TrimPrefix(strings.TrimPrefix(content, "#"), " "))
		return nil
	}
	name, value, found := strings.Cut(content, ":")
	if !found {
		return fmt.Errorf("%q is neither a comment nor a key", content)
	}
	for len(r.open) > 0 && r.open[len(r.open)-1].indent >= indent {
		r.open = r.open[:len(r.open)-1]
	}
	full := name
	if len(r.open) > 0 {
		full = r.open[len(r.open)-1].name + "." + name
	}
	k := key{full, strings.TrimSpace(value)}
	if k.value == "" {
		r.open = append(r.open, level{indent, full})
		r.entries = append(r.entries, entry{r.comment, []key{k}, true})
		r.comment, r.joins = nil, false
		return nil
	}
	if r.comment == nil && r.joins {
		last := &r.entries[len(r.entries)-1]
		last.keys = append(last.keys, k)
		return nil
	}
	if r.comment == nil {
		return fmt.Errorf("no comment is about %s", full)
	}
	r.entries = append(r.entries, entry{r.comment, []key{k}, false})
	r.comment, r.joins = nil, true
	return nil
}
