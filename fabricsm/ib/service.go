package ib

import "fmt"

// ServiceID names a service: that of a path, or that of a service record. Zero means "none".
type ServiceID uint64

// ParseServiceID reads 0x and 1 to 16 hexadecimal digits.
func ParseServiceID(s string) (ServiceID, error) {
	v, err := parseHex(s, 64)
	if err != nil {
		return 0, fmt.Errorf("ServiceID %q: %w", s, err)
	}
	return ServiceID(v), nil
}

// String returns 0x and 16 digits.
func (s ServiceID) String() string { return fmt.Sprintf("0x%016x", uint64(s)) }

// MarshalText implements encoding.TextMarshaler.
func (s ServiceID) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *ServiceID) UnmarshalText(b []byte) (err error) {
	*s, err = ParseServiceID(string(b))
	return err
}
