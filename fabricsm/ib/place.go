package ib

import (
	"fmt"
	"strconv"
	"strings"
)

// Place is where an end port is cabled: an external port of a switch. A host cannot choose it, so grants are bound to it.
// The zero Place means "not seen" or "not declared".
type Place struct {
	Switch GUID    // node GUID of the switch
	Port   PortNum // external port, 1 to 254
}

// ParsePlace reads "0x...guid/port", for example "0x0010000100000001/7".
func ParsePlace(s string) (Place, error) {
	guid, port, ok := strings.Cut(s, "/")
	if !ok {
		return Place{}, fmt.Errorf("place %q: want SWITCH-GUID/PORT", s)
	}
	g, err := ParseGUID(guid)
	if err != nil {
		return Place{}, fmt.Errorf("place %q: %w", s, err)
	}
	n, err := ParsePortNum(port)
	if err != nil {
		return Place{}, fmt.Errorf("place %q: %w", s, err)
	}
	return Place{Switch: g, Port: n}, nil
}

// String returns "0x...guid/port".
func (p Place) String() string {
	text := p.Switch.text()
	return string(strconv.AppendUint(append(text[:], '/'), uint64(p.Port), 10))
}

// IsZero reports whether there is no place.
func (p Place) IsZero() bool { return p == Place{} }

// MarshalText implements encoding.TextMarshaler; for the zero Place it returns "".
func (p Place) MarshalText() ([]byte, error) {
	if p.IsZero() {
		return nil, nil
	}
	return []byte(p.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Place) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*p = Place{}
		return nil
	}
	*p, err = ParsePlace(string(b))
	return err
}
