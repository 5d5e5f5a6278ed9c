package trust

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxOptionsSize is the size of a file of options at most, in bytes.
const MaxOptionsSize = 1 << 20

// elsewhere are options of subnet administration that others read.
var elsewhere = []string{"sa_key", "sa_db_file", "sa_db_dump", "sa_pr_full_world_queries_allowed"}

// ParseOptions reads options from a file in the grammar of OpenSM's opensm.conf: a name, white space and a value on each
// line, comments after #. Options that are not in the file stay as in o. Other names are ignored, so that a whole
// opensm.conf can be read; an unknown name that begins with sa_ is an error. The SA_Key is not read here. All problems, at
// most 50, are reported together, each with its place as name:line. The file has at most MaxOptionsSize bytes.
func ParseOptions(file string, data []byte, o Options) (Options, error) {
	if len(data) > MaxOptionsSize {
		return o, fmt.Errorf("options %s: %w: %d bytes, the most is %d", file, ErrTooLarge, len(data), MaxOptionsSize)
	}
	read := o
	var errs []error
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		text, _, _ = strings.Cut(text, "#")
		name, value, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(text), "\t", " "), " ")
		switch known, err := read.Set(name, strings.TrimSpace(value)); {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s:%d: %w", file, line, err))
		case !known && strings.HasPrefix(name, "sa_") && !slices.Contains(elsewhere, name):
			errs = append(errs, fmt.Errorf("%s:%d: option %q is not known", file, line, short(name)))
		}
		if len(errs) == maxProblems {
			break
		}
	}
	if len(errs) == 0 {
		if err := read.Check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return o, err
	}
	return read, nil
}
