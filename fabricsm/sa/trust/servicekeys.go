package trust

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"portcullis/fabricsm/ib"
)

const (
	// nameSize is the size of ServiceRecord.ServiceName in bytes.
	nameSize = 64
	// MaxServiceKeysSize is the size of a map of service keys at most, in bytes.
	MaxServiceKeysSize = 1 << 20
	maxServiceKeys     = 8192
	maxProblems        = 50
)

// ErrTooLarge is wrapped by errors about files that are larger than they may be.
var ErrTooLarge = errors.New("too large")

// ServiceKeys says which ServiceNames need which ServiceKey. It is not written to after
// it was made; nil has none.
type ServiceKeys struct {
	keys map[string]ib.ServiceKey
}

// ParseServiceKeys reads a map in UFM's form (service_name2key_map_file): on each line a
// ServiceName and a key of 16 bytes in IPv6 notation, comments after #. Names have 1 to
// 64 bytes, no white space and no control characters; none stands there twice. All
// problems, at most 50, are reported together, each with its place as file:line, and
// without the key.
func ParseServiceKeys(file string, data []byte) (*ServiceKeys, error) {
	if len(data) > MaxServiceKeysSize {
		return nil, fmt.Errorf("service keys %s: %w: %d bytes, the most is %d", file, ErrTooLarge, len(data), MaxServiceKeysSize)
	}
	s := &ServiceKeys{keys: make(map[string]ib.ServiceKey)}
	var errs []error
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		text, _, _ = strings.Cut(text, "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := s.add(words); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", file, line, err))
		}
		if len(errs) == maxProblems {
			break
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *ServiceKeys) add(words []string) error {
	if len(words) != 2 {
		return fmt.Errorf("%d words: want a service name and a key", len(words))
	}
	// The error does not show the wrong word: it may be the key.
	key, err := netip.ParseAddr(words[1])
	if err != nil || !key.Is6() || key.Zone() != "" || key.IsUnspecified() {
		return errors.New("the second word is no key: want 16 bytes in IPv6 notation, not all zero, for example 1111:2222:3333:4444:5555:6666:7777:8888")
	}
	name := words[0]
	switch {
	case len(name) > nameSize:
		return fmt.Errorf("a service name of %d bytes: want at most %d", len(name), nameSize)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("service name %q: want printable characters", name)
	}
	if _, twice := s.keys[name]; twice {
		return fmt.Errorf("service name %q is there twice", name)
	}
	if len(s.keys) == maxServiceKeys {
		return fmt.Errorf("more than %d service names", maxServiceKeys)
	}
	s.keys[name] = ib.NewServiceKey(key.As16())
	return nil
}

// Len is how many names need a key.
func (s *ServiceKeys) Len() int {
	if s == nil {
		return 0
	}
	return len(s.keys)
}

// Check judges a Set or Delete of a ServiceRecord. field is its ServiceName, up to the first NUL; for a Delete it is that
// of the record to delete. shown is the ServiceKey of the request, or zero without that component. A name that needs a key
// needs it from all requesters.
func (s *ServiceKeys) Check(o *Options, field []byte, shown ib.ServiceKey, trusted bool) Verdict {
	name, _, _ := bytes.Cut(field, []byte{0})
	if s != nil {
		if want, ok := s.keys[string(name)]; ok {
			if !want.Equal(shown) {
				return WrongServiceKey
			}
			return OK
		}
	}
	if !trusted && o.reserved(string(name)) {
		return ReservedName
	}
	return OK
}

// reserved reports whether a name begins with a reserved prefix.
func (o *Options) reserved(name string) bool {
	for _, p := range o.ReservedNames {
		if len(name) >= len(p) && strings.EqualFold(name[:len(p)], p) {
			return true
		}
	}
	return false
}
