package ib

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// GID is a 128-bit global identifier: a subnet prefix and a port GUID, or a
// multicast group. The zero GID means "none".
type GID [16]byte

// Prefix is the upper half of a unicast GID.
type Prefix uint64

// DefaultPrefix is the link-local subnet prefix fe80::/64.
const DefaultPrefix Prefix = 0xFE80_0000_0000_0000

// String returns 0x and 16 digits.
func (p Prefix) String() string { return fmt.Sprintf("0x%016x", uint64(p)) }

// ParsePrefix reads 0x and 1 to 16 hexadecimal digits.
func ParsePrefix(s string) (Prefix, error) {
	v, err := parseHex(s, 64)
	if err != nil {
		return 0, fmt.Errorf("subnet prefix %q: %w", s, err)
	}
	return Prefix(v), nil
}

// MarshalText returns the form of String.
func (p Prefix) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Prefix) UnmarshalText(b []byte) (err error) { *p, err = ParsePrefix(string(b)); return err }

// MakeGID joins a subnet prefix and a port GUID.
func MakeGID(p Prefix, g GUID) (gid GID) {
	binary.BigEndian.PutUint64(gid[:8], uint64(p))
	binary.BigEndian.PutUint64(gid[8:], uint64(g))
	return gid
}

// ParseGID reads the IPv6 notation of a GID, without a zone.
func ParseGID(s string) (GID, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Zone() != "" {
		return GID{}, fmt.Errorf("GID %q: want IPv6 notation, for example fe80::2:c903:a1:b2c3", s)
	}
	return a.As16(), nil
}

// String returns the IPv6 notation.
func (g GID) String() string { return netip.AddrFrom16(g).String() }

// Prefix is the subnet prefix of a unicast GID.
func (g GID) Prefix() Prefix { return Prefix(binary.BigEndian.Uint64(g[:8])) }

// GUID is the port GUID of a unicast GID.
func (g GID) GUID() GUID { return GUID(binary.BigEndian.Uint64(g[8:])) }

// IsMulticast reports whether g names a multicast group (ff00::/8).
func (g GID) IsMulticast() bool { return g[0] == 0xFF }

// MarshalText implements encoding.TextMarshaler.
func (g GID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (g *GID) UnmarshalText(b []byte) (err error) { *g, err = ParseGID(string(b)); return err }
