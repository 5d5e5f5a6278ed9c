package sim

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// pkeyTable is the P_Key table of a port, as on the wire.
type pkeyTable []byte

// at is an entry; 0 beyond its end.
func (t pkeyTable) at(index uint16) ib.PKey {
	if at := 2 * int(index); at+1 < len(t) {
		return ib.PKey(binary.BigEndian.Uint16(t[at:]))
	}
	return 0
}

// first is the entry that GMPs are sent with by agents and by programs that know of no other: index 0.
func (t pkeyTable) first() ib.PKey { return t.at(0) }

// index is the place of the entry that lets a GMP in which has arrived.
func (t pkeyTable) index(key ib.PKey) uint16 {
	for i := 0; 2*i+1 < len(t); i++ {
		if t.at(uint16(i)).Matches(key) {
			return uint16(i)
		}
	}
	return 0
}

// holds looks for an entry that lets a P_Key pass.
func (t pkeyTable) holds(key ib.PKey, rule pkeyRule) bool {
	for at := 0; at+1 < len(t); at += 2 {
		if entry := ib.PKey(binary.BigEndian.Uint16(t[at:])); entry != 0 && rule(key, entry) {
			return true
		}
	}
	return false
}

// answer is the P_Key of an answer: the entry that the request matched, so that a limited member answers as one.
func (t pkeyTable) answer(request ib.PKey) ib.PKey {
	for at := 0; at+1 < len(t); at += 2 {
		if entry := ib.PKey(binary.BigEndian.Uint16(t[at:])); entry.Matches(request) {
			return entry
		}
	}
	return request
}

// guidTable is the GUID table of a port, as on the wire.
type guidTable [guidBlocks * mad.DataSize]byte

// setPort writes the entry that cannot be set from outside: the GUID of the port.
func (t *guidTable) setPort(guid ib.GUID) { binary.BigEndian.PutUint64(t[:], uint64(guid)) }

// gid is an entry of the GID table, which begins with the prefix of the subnet.
func (t *guidTable) gid(prefix ib.Prefix, index uint8) ib.GID {
	at := 8 * int(index)
	if at+8 > len(t) {
		return ib.GID{}
	}
	return ib.MakeGID(prefix, ib.GUID(binary.BigEndian.Uint64(t[at:])))
}

// index looks for a GID, under the prefix of the subnet or the link-local one.
func (t *guidTable) index(own ib.Prefix, g ib.GID) (index uint8, ok bool) {
	if prefix := g.Prefix(); prefix != own && prefix != ib.DefaultPrefix || g.GUID() == 0 {
		return 0, false
	}
	for at := 0; at < len(t); at += 8 {
		if ib.GUID(binary.BigEndian.Uint64(t[at:])) == g.GUID() {
			return uint8(at / 8), true
		}
	}
	return 0, false
}
