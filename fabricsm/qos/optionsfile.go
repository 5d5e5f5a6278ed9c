package qos

import (
	"errors"
	"fmt"
	"strings"
)

// ParseOptions reads the options qos and qos_* from a file in the grammar of
// OpenSM's opensm.conf: a name, white space and a value on each line, comments
// after #. Options of other names are left alone, so that a whole opensm.conf can
// be given; one that begins with qos_ and is not known is an error, unless it
// names a file. All problems, at most 50, are reported together, each with its
// place as name:line. The file is at most MaxPolicySize bytes.
func ParseOptions(name string, data []byte) (o Options, err error) {
	if len(data) > MaxPolicySize {
		return o, fmt.Errorf("QoS options %s: %w: %d bytes, the most is %d", name, ErrTooLarge, len(data), MaxPolicySize)
	}
	p := parser{file: name}
	for text := range strings.Lines(string(data)) {
		p.line++
		text, _, _ = strings.Cut(text, "#")
		option, value, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(text), "\t", " "), " ")
		switch known, err := o.Set(option, strings.TrimSpace(value)); {
		case err != nil:
			p.wrong("%w", err)
		case !known && strings.HasPrefix(option, "qos_") && !strings.HasSuffix(option, "_file"):
			p.wrong("option %q is not known", short(option))
		}
	}
	if len(p.problems) > 0 {
		return Options{}, errors.Join(p.problems...)
	}
	return o, nil
}
