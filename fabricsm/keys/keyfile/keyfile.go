// Package keyfile reads and writes the files in which OpenSM and UFM keep keys, and in which diagnostic tools look for
// them: guid2mkey and similar files, and neighbors, all in OpenSM's cache directory.
//
// A file is taken whole or not at all: a device whose key is missing is locked. Errors about a wrong line never show the
// line.
package keyfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

const (
	// MaxSize bounds a file: four times as many devices as a subnet has LIDs.
	MaxSize = 8 << 20
	// maxMistakes is how many wrong lines are reported.
	maxMistakes = 20
)

// ErrTooBig means that a file is larger than MaxSize.
var ErrTooBig = errors.New("larger than any list of keys")

// Entry is the key of a device. A zero Key says that it has none.
type Entry struct {
	GUID ib.GUID // port GUID, of a switch that of port 0
	Key  keys.Key
}

// Name returns the file that holds the keys of a kind, "" if none does.
func Name(k keys.Kind) string {
	switch k {
	case keys.MKey:
		return "guid2mkey"
	case keys.CCKey:
		return "guid2cckey"
	case keys.VSKey:
		return "guid2vskey"
	case keys.N2NKey:
		return "guid2_m2n_key"
	case keys.N2NNodeKey:
		return "guid2_n2n_key"
	default:
		return ""
	}
}

// Parse reads a file of keys. The entries are in its order. Every wrong line is
// reported as "NAME:LINE: ...", up to some number.
func Parse(name string, data []byte) ([]Entry, error) {
	var out []Entry
	lines := make(map[ib.GUID]int)
	err := eachLine(name, data, func(number int, fields []string) error {
		if len(fields) != 2 {
			return errors.New("want a port GUID and its key")
		}
		guid, err := hexNumber(fields[0])
		if g := ib.GUID(guid); err != nil || !g.Valid() {
			return errors.New("want a port GUID first, 0x and up to 16 hexadecimal digits")
		}
		key, err := hexNumber(fields[1])
		if err != nil || key == ^uint64(0) {
			return errors.New("want a key after the GUID, 0x and up to 16 hexadecimal digits, not all ones")
		}
		e := Entry{ib.GUID(guid), keys.New(key)}
		if at, twice := lines[e.GUID]; twice {
			return fmt.Errorf("port %v has a key in line %d already", e.GUID, at)
		}
		lines[e.GUID] = number
		out = append(out, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// eachLine calls take with the fields of every line that is not empty and no comment, and collects the errors.
func eachLine(name string, data []byte, take func(number int, fields []string) error) error {
	if len(data) > MaxSize {
		return fmt.Errorf("%s: %w", name, ErrTooBig)
	}
	var errs []error
	number := 0
	for line := range bytes.Lines(data) {
		number++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if err := take(number, fields); err != nil {
			if errs = append(errs, fmt.Errorf("%s:%d: %w", name, number, err)); len(errs) == maxMistakes {
				errs = append(errs, fmt.Errorf("%s: and perhaps more; nothing of the file was taken", name))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// hexNumber reads 0x and up to 16 digits. Its error does not show the text, of
// which strconv's has a copy.
func hexNumber(s string) (uint64, error) {
	digits, ok := strings.CutPrefix(strings.ToLower(s), "0x")
	v, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil || len(digits) > 16 || strings.Contains(digits, "_") {
		return 0, errors.New("no hexadecimal number")
	}
	return v, nil
}

// Format writes a file as OpenSM does, by GUID. It is to be kept at mode 0600.
func Format(entries []Entry) []byte {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b Entry) int { return cmp.Compare(a.GUID, b.GUID) })
	var b bytes.Buffer
	for _, e := range sorted {
		fmt.Fprintf(&b, "0x%016x 0x%016x\n\n", uint64(e.GUID), e.Key.Reveal())
	}
	return b.Bytes()
}

// Export returns the entries of one kind that tools need: the known key of each device. While the key of a device is
// changing, its entry has the old one, which devices with dual keys accept.
func Export(records []keys.Record, kind keys.Kind) []Entry {
	var out []Entry
	for i := range records {
		if r := &records[i]; r.Kind == kind && !r.Current.IsZero() {
			out = append(out, Entry{r.GUID, r.Current.Key})
		}
	}
	return out
}
