package pcap

import (
	"encoding/binary"
	"hash/crc32"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// End has the addresses of our own end for a capture, because packets do not have them. Missing fields are zero, and P_Keys
// are the default one.
type End struct {
	LID   ib.LID // base
	GIDs  []ib.GID
	PKeys []ib.PKey // in the order of the table
}

// Sizes of the headers of a datagram in bytes (IBTA volume 1, 5.2).
const (
	lrhSize  = 8
	grhSize  = 40
	bthSize  = 12
	dethSize = 8
	icrcSize = 4
	vcrcSize = 2
	maxFrame = lrhSize + grhSize + bthSize + dethSize + mad.Size + icrcSize + vcrcSize
)

const (
	lnhLocal  = 2 // a BTH follows the LRH
	lnhGlobal = 3 // or a GRH
	vlSMP     = 15

	grhVersion = 6
	grhNextBTH = 0x1B

	opSendUD = 0x64
)

// frame writes a packet as it is on the wire, from the local route header on, with both checksums, and returns its length.
// M_Keys and similar keys are zeros: see mad.Redact.
func (e *End) frame(b *[maxFrame]byte, p *transport.Packet, sent bool) int {
	clear(b[:])
	wire, smp := binary.BigEndian, p.MAD.IsSMP()
	at := lrhSize
	lnh := byte(lnhLocal)
	if p.GRH.Present {
		e.grh(b[at:], &p.GRH, sent)
		at += grhSize
		lnh = lnhGlobal
	}
	bth := at
	key := e.pkey(p.PKeyIndex)
	if smp {
		key = ib.DefaultPKeyFull
		b[0] = vlSMP << 4
	}
	ours, theirs := e.LID+ib.LID(p.PathBits), p.LID
	if theirs == ib.PermissiveLID {
		ours = ib.PermissiveLID
	}
	from, to := theirs, ours
	fromQP, toQP := p.QP, uint32(1)
	if smp {
		toQP = 0
	}
	if sent {
		from, to, fromQP, toQP = ours, theirs, toQP, p.QP
	}
	b[bth] = opSendUD
	wire.PutUint16(b[bth+2:], uint16(key))
	wire.PutUint32(b[bth+4:], toQP)
	deth := bth + bthSize
	if !smp {
		wire.PutUint32(b[deth:], mad.WellKnownQKey)
	}
	wire.PutUint32(b[deth+4:], fromQP)
	at = deth + dethSize
	m := p.MAD
	mad.Redact(&m)
	at += copy(b[at:], m[:])
	b[1] = byte(p.SL)<<4 | lnh
	wire.PutUint16(b[2:], uint16(to))
	wire.PutUint16(b[4:], uint16((at+icrcSize)/4))
	wire.PutUint16(b[6:], uint16(from))
	return checksums(b, at, bth)
}

func (e *End) grh(b []byte, g *transport.GRH, sent bool) {
	wire := binary.BigEndian
	wire.PutUint32(b, grhVersion<<28|uint32(g.TrafficClass)<<20|g.FlowLabel&0xFFFFF)
	wire.PutUint16(b[4:], bthSize+dethSize+mad.Size+icrcSize)
	b[6], b[7] = grhNextBTH, g.HopLimit
	var own ib.GID
	if int(g.GIDIndex) < len(e.GIDs) {
		own = e.GIDs[g.GIDIndex]
	}
	from, to := g.GID, own
	if sent {
		from, to = own, g.GID
	}
	copy(b[8:], from[:])
	copy(b[24:], to[:])
}

func (e *End) pkey(index uint16) ib.PKey {
	if int(index) < len(e.PKeys) {
		return e.PKeys[index]
	}
	return ib.DefaultPKeyFull
}

// checksums appends the invariant and the variant CRC to a packet of size bytes, and returns its whole length (IBTA volume
// 1, 7.8). For the invariant CRC, fields that switches change count as ones, and with a GRH also those that routers change.
func checksums(b *[maxFrame]byte, size, bth int) int {
	var inv [maxFrame]byte
	copy(inv[:], b[:size])
	inv[0] |= 0xF0
	inv[bth+4] = 0xFF
	if bth > lrhSize {
		for i := range lrhSize {
			inv[i] = 0xFF
		}
		inv[lrhSize] |= 0x0F // traffic class, flow label
		inv[lrhSize+1], inv[lrhSize+2], inv[lrhSize+3] = 0xFF, 0xFF, 0xFF
		inv[lrhSize+7] = 0xFF // hop limit
	}
	binary.LittleEndian.PutUint32(b[size:], crc32.ChecksumIEEE(inv[:size]))
	size += icrcSize
	binary.LittleEndian.PutUint16(b[size:], vcrc(b[:size]))
	return size + vcrcSize
}

// vcrcPoly is 0x100B with its bits reversed.
const vcrcPoly = 0xD008

func vcrc(b []byte) uint16 {
	crc := uint16(0xFFFF)
	for _, x := range b {
		crc ^= uint16(x)
		for range 8 {
			low := crc & 1
			if crc >>= 1; low != 0 {
				crc ^= vcrcPoly
			}
		}
	}
	return ^crc
}
