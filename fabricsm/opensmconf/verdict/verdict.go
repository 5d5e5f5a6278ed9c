// Package verdict says of every option of OpenSM's opensm.conf, and of those that NVIDIA's OpenSM has besides, what becomes
// of it when a site moves to Portcullis. The table has one row an option, as data. It judges each option alone; what depends
// on other options, on files or on keys is for the planner of [portcullis/fabricsm/opensmconf/movein].
//
// Names, defaults and meanings are those of the comments in an opensm.conf that OpenSM 3.3 writes, of opensm(8), and of the
// UFM Enterprise user manual.
package verdict

import (
	"slices"
	"strings"

	"portcullis/fabricsm/opensmconf"
	"portcullis/fabricsm/strictyaml/spelling"
)

// Class is what became of a setting.
type Class string

// Classes, from what needs an operator most to what needs one least.
const (
	Unknown     Class = "unknown"     // neither OpenSM nor UFM has such an option, or the value is none
	Unsupported Class = "unsupported" // it is lost
	Unsafe      Class = "unsafe"      // it is refused for security, and replaced
	Changed     Class = "changed"     // it is taken, or has an equivalent, with a difference
	Taken       Class = "taken"
	NotNeeded   Class = "not-needed" // what it asks for is so anyway, or does not exist here
)

// Classes returns all classes in that order.
func Classes() []Class { return []Class{Unknown, Unsupported, Unsafe, Changed, Taken, NotNeeded} }

// Form is how the value of a key is made of the value of an option.
type Form uint8

// Forms.
const (
	None     Form = iota // no key is set
	Number               // the same number
	Flag                 // TRUE is true
	Inverse              // TRUE is false
	Seconds              // a number of seconds is a duration
	Millis               // of milliseconds
	Minutes              // of minutes
	Lanes                // the code of a number of virtual lanes, 1 to 5, is that number
	MTU                  // the code of an MTU, 1 to 5, is bytes
	Enable               // 0, 1 and 2 are ignore, disable and enable
	Eighteen             // TRUE is 18
	Address              // a number of 64 bits is text
	File                 // the planner copies the file
	Planned              // the planner decides
)

// Option is a row of the table.
type Option struct {
	Name  string // ends in * for all names that begin so
	Usual string // OpenSM's default; further values with the same effect after |
	Class Class  // of every other value
	Key   string // of portcullisd.yaml that takes it or stands in its place
	Form  Form
	Least int64 // of a number that the key takes
	Most  int64
	Text  string // for Class: what is different, why it is not needed, what happens without it, what is done instead
	Here  string // what counts here while the option is at Usual, where that is another default
	// With is an option that switches this one on. While that is at its usual value, this one has no effect.
	With   string
	Secret bool // the value must never be shown
	// Harmless says that nothing of traffic, access or supervision is lost with it.
	Harmless bool
}

// Prefix reports whether a row stands for all names that begin alike.
func (o *Option) Prefix() bool { return strings.HasSuffix(o.Name, "*") }

// Options returns the rows of the table.
func Options() []Option {
	return slices.Concat(keyOptions, accessOptions, portOptions, routingOptions, managerOptions, timingOptions, qosOptions, congestionOptions, outputOptions, vendorOptions)
}

var table = Options()

// Find returns the row of an option; false if no option has the name.
func Find(name string) (Option, bool) {
	best := -1
	for i := range table {
		o := &table[i]
		if o.Name == name {
			return *o, true
		}
		if o.Prefix() && strings.HasPrefix(name, o.Name[:len(o.Name)-1]) && (best < 0 || len(o.Name) > len(table[best].Name)) {
			best = i
		}
	}
	if best < 0 {
		return Option{}, false
	}
	return table[best], true
}

// Nearest returns the option that a name was most likely meant to be, "" if none is near.
func Nearest(name string) string { return nearest(table, name) }

func nearest(rows []Option, name string) string {
	best, least := "", max(2, len(name)/4)+1
	for i := range rows {
		o := &rows[i]
		if o.Prefix() || len(name) > 2*len(o.Name) {
			continue
		}
		if d := spelling.Distance(strings.ToLower(name), strings.ToLower(o.Name)); d < least {
			best, least = o.Name, d
		}
	}
	return best
}

// IsUsual reports whether a value has the same effect as OpenSM's default.
func (o *Option) IsUsual(value string) bool {
	for usual := range strings.SplitSeq(o.Usual, "|") {
		if same(usual, value) {
			return true
		}
	}
	return false
}

// same reports whether two values are the same to OpenSM.
func same(a, b string) bool {
	if a == b || opensmconf.IsNull(a) && opensmconf.IsNull(b) {
		return true
	}
	m, err := opensmconf.Number(a, 64)
	n, err2 := opensmconf.Number(b, 64)
	return err == nil && err2 == nil && m == n
}
