package group

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
)

// A multicast GID is FF, four bits of flags, four of scope, and for some kinds of group
// a signature (IBTA volume 1, 4.1.1; RFC 4391).
const (
	flagTransient = 1

	scopeLinkLocal = 2

	signatureChosen = 0xA01B // by subnet administration
	signatureIPv4   = 0x401B
	signatureIPv6   = 0x601B
)

func flagsOf(m ib.GID) uint8      { return m[1] >> 4 }
func scopeOf(m ib.GID) uint8      { return m[1] & 0xF }
func signatureOf(m ib.GID) uint16 { return binary.BigEndian.Uint16(m[2:]) }

// isIPoIB reports whether an MGID belongs to a group of IP over InfiniBand.
func isIPoIB(m ib.GID) bool {
	s := signatureOf(m)
	return m.IsMulticast() && (s == signatureIPv4 || s == signatureIPv6)
}

// pkeyOf is the P_Key in the GID of an IPoIB group.
func pkeyOf(m ib.GID) ib.PKey { return ib.PKey(binary.BigEndian.Uint16(m[4:])) }

// Broadcast is the GID of the IPoIB broadcast group of a partition (RFC 4391, 4).
func Broadcast(k ib.PKey, scope uint8) (m ib.GID) {
	m[0], m[1] = 0xFF, flagTransient<<4|scope&0xF
	binary.BigEndian.PutUint16(m[2:], signatureIPv4)
	binary.BigEndian.PutUint16(m[4:], uint16(k.Full()))
	binary.BigEndian.PutUint32(m[12:], 0xFFFFFFFF)
	return m
}

// solicited reports the group of an IPv6 solicited-node address, ff02::1:ffxx:xxxx, and
// which groups it may share a multicast LID with.
func solicited(g *Group) (snm, bool) {
	m := g.MGID
	if signatureOf(m) != signatureIPv6 || binary.BigEndian.Uint32(m[6:]) != 0 || m[10] != 0 || m[11] != 1 || m[12] != 0xFF {
		return snm{}, false
	}
	return snm{likeness(&g.Params), scopeOf(m)}, true
}

// validMGID reports whether a client may choose a GID for a group.
func validMGID(m ib.GID) bool {
	switch {
	case !m.IsMulticast():
		return false
	case isIPoIB(m):
		return true
	case flagsOf(m)&^flagTransient != 0:
		return false
	default:
		return signatureOf(m) != signatureChosen || scopeOf(m) != scopeLinkLocal // these are ours
	}
}

// chooseMGID returns a GID that no group has.
func (r *Registry) chooseMGID(scope uint8) (m ib.GID) {
	m = ib.MakeGID(0, 0)
	m[0], m[1] = 0xFF, flagTransient<<4|scope&0xF
	binary.BigEndian.PutUint16(m[2:], signatureChosen)
	binary.BigEndian.PutUint64(m[4:], uint64(r.cfg.Prefix))
	for {
		r.lastID++
		binary.BigEndian.PutUint32(m[12:], r.lastID)
		if r.Group(m) == nil {
			return m
		}
	}
}
