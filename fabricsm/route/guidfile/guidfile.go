// Package guidfile reads lists of GUIDs, the format of OpenSM's root_guid_file,
// cn_guid_file and io_guid_file: one GUID a line, "#" begins a comment.
package guidfile

import (
	"errors"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// maxErrors is how many problems of one file are reported.
const maxErrors = 20

// Parse reads a list. Errors use name for the file. All wrong lines are reported, with their numbers: lines that are no
// GUID (as [ib.ParseGUID] reads it), GUIDs that no device can have, and GUIDs listed twice. A list without GUIDs is an
// error too: an operator who names a file wants its content to be used.
func Parse(name string, data []byte) ([]ib.GUID, error) {
	var guids []ib.GUID
	var errs []error
	seen, number := make(map[ib.GUID]int), 0
	for line := range strings.Lines(string(data)) {
		number++
		text, _, _ := strings.Cut(line, "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		g, err := parse(text, seen)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, number, err))
			continue
		}
		seen[g] = number
		guids = append(guids, g)
	}
	if len(guids) == 0 && len(errs) == 0 {
		return nil, fmt.Errorf("%s: lists no GUID; write one a line", name)
	}
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors], fmt.Errorf("%s: and %d more lines are wrong", name, more))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return guids, nil
}

// parse reads one GUID that no line before has.
func parse(text string, seen map[ib.GUID]int) (ib.GUID, error) {
	g, err := ib.ParseGUID(text)
	if err != nil {
		return 0, err
	}
	if !g.Valid() {
		return 0, fmt.Errorf("%v is no GUID that a device can have", g)
	}
	if first := seen[g]; first != 0 {
		return 0, fmt.Errorf("%v is on line %d already", g, first)
	}
	return g, nil
}
