package mst

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Query is what "query full" says: values by key, as printed. A key that is not
// there is not known; none has a default.
type Query struct{ values map[string]string }

// Keys of a query.
const (
	KeyVersion         = "FW Version" // in flash
	KeyRunning         = "FW Version(Running)"
	KeyReleaseDate     = "FW Release Date"
	KeyPartNumber      = "Part Number"
	KeyPSID            = "PSID"
	KeyOrigPSID        = "Orig PSID"
	KeyBaseGUID        = "Base GUID"
	KeyOrigBaseGUID    = "Orig Base GUID"
	KeyBaseMAC         = "Base MAC"
	KeyOrigBaseMAC     = "Orig Base MAC"
	KeyAttributes      = "Security Attributes"
	KeyLifeCycle       = "Life cycle"
	KeySecureBoot      = "Secure Boot Capable"
	KeyEFUSEVersion    = "EFUSE Security Ver"
	KeyImageSecVersion = "Image Security Ver"
	KeyEncryption      = "Encryption"
)

// Get returns the value of a key, and false if the tool did not print it or printed that it does not know it ("N/A").
func (q *Query) Get(key string) (string, bool) {
	v, ok := q.values[key]
	return v, ok && v != "" && v != "N/A"
}

// First is Get for a value that has columns behind it, such as the count of
// GUIDs.
func (q *Query) First(key string) (string, bool) {
	v, ok := q.Get(key)
	if !ok {
		return "", false
	}
	first := strings.Fields(v)[0]
	return first, first != "N/A"
}

// Query asks for everything that the tool knows of an adapter: a PCI address, an
// RDMA device or a node of fwctl.
func (s *Suite) Query(ctx context.Context, device string) (*Query, error) {
	if err := checkDevice(device); err != nil {
		return nil, err
	}
	out, err := s.runner.run(ctx, QueryTime, s.flint, "-d", device, "query", "full")
	if err != nil {
		return nil, err
	}
	q, err := ParseQuery(out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.flint, err)
	}
	return q, nil
}

// checkDevice refuses names that a tool could take for something else.
func checkDevice(name string) error {
	const most = 59 // characters that the tools have room for
	bad := strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-", r)
	})
	if name == "" || name[0] == '-' || len(name) > most || bad {
		return fmt.Errorf("adapter %q: want a PCI address, an RDMA device or a node of fwctl", name)
	}
	return nil
}

// keyColumns is how far from the left the colon after a key may be.
const keyColumns = 22

var errNotQuery = errors.New("it printed no query")

// ParseQuery reads what "query full" prints: "Key:   value" on each line. A line
// without a colon near the left continues the one before. The key Description
// comes a second time, as the title of a table; no other does.
func ParseQuery(out string) (*Query, error) {
	if err := notText(out); err != nil {
		return nil, err
	}
	q := &Query{values: map[string]string{}}
	last := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || strings.HasPrefix(line, "-I-") || strings.HasPrefix(line, "-W-") {
			continue
		}
		if strings.HasPrefix(line, "-E-") {
			return nil, fmt.Errorf("%w: %q", errNotQuery, clip(line))
		}
		colon := strings.IndexByte(line, ':')
		if colon < 0 || colon > keyColumns {
			if last == "" {
				return nil, fmt.Errorf("%w: %q", errNotQuery, clip(line))
			}
			q.values[last] += "\n" + strings.TrimSpace(line)
			continue
		}
		key, value := strings.TrimSpace(line[:colon]), strings.TrimSpace(line[colon+1:])
		if last = key; key == "Description" && strings.HasPrefix(value, "UID ") {
			last = "GUID table"
		}
		if _, twice := q.values[last]; twice || last == "" {
			return nil, fmt.Errorf("key %q comes twice, or is empty", clip(last))
		}
		q.values[last] = value
	}
	if len(q.values) == 0 {
		return nil, errNotQuery
	}
	return q, nil
}
