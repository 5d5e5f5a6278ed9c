package mad

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
)

// Byte offsets of the directed-route part of an SMP (IBTA volume 1, 14.2.1.2).
const (
	offHopPointer  = 6
	offHopCount    = 7
	offDrSLID      = 32
	offDrDLID      = 34
	offInitialPath = 128
	offReturnPath  = 192

	directionBit = 0x8000 // D, the top bit of the status word
	smpVersion   = 1
)

// NewSMP makes m a fresh SMP. With a route it is a pure directed-route SMP
// (both DR LIDs permissive), with nil a LID-routed one; h.Class and
// h.ClassVersion are set to match. The data area is zero.
func NewSMP(m *MAD, h Header, route *Route, key ib.MKey) {
	*m = MAD{}
	h.Class, h.ClassVersion = ClassSubn, smpVersion
	if route != nil {
		h.Class = ClassSubnDR
	}
	m.SetHeader(h)
	m.SetMKey(key)
	if route != nil {
		m.SetRoute(route)
	}
}

// SetRoute writes the directed-route part for a sender at the start of r:
// outbound, hop pointer 0, both DR LIDs permissive, empty return path.
func (m *MAD) SetRoute(r *Route) {
	m.SetReturning(false)
	m.SetHopPointer(0)
	m[offHopCount] = r.hops
	m.SetDrSLID(ib.PermissiveLID)
	m.SetDrDLID(ib.PermissiveLID)
	copy(m.InitialPath(), r.path[:])
	clear(m.ReturnPath())
}

// Route is the initial path: the egress ports from the sender to the target.
func (m *MAD) Route() Route { return pathRoute(m.HopCount(), m.InitialPath()) }

// ReturnRoute is the return path: the ingress ports met on the way out, in the
// order of the way out. It is complete once the request reached its target.
func (m *MAD) ReturnRoute() Route { return pathRoute(m.HopCount(), m.ReturnPath()) }

// Returning is the D bit: false on the way out, true on the way back.
func (m *MAD) Returning() bool { return binary.BigEndian.Uint16(m[offStatus:])&directionBit != 0 }

// SetReturning writes the D bit.
func (m *MAD) SetReturning(on bool) {
	m[offStatus] &^= directionBit >> 8
	if on {
		m[offStatus] |= directionBit >> 8
	}
}

// HopPointer is the hop a directed-route SMP is at. The sender leaves it 0.
func (m *MAD) HopPointer() uint8 { return m[offHopPointer] }

// SetHopPointer writes the hop pointer.
func (m *MAD) SetHopPointer(v uint8) { m[offHopPointer] = v }

// HopCount is the number of hops of the path. An SMP with more than MaxHops is
// to be discarded.
func (m *MAD) HopCount() uint8 { return m[offHopCount] }

// DrSLID is where the directed part begins; PermissiveLID means at the sender.
func (m *MAD) DrSLID() ib.LID { return ib.LID(binary.BigEndian.Uint16(m[offDrSLID:])) }

// SetDrSLID writes DrSLID.
func (m *MAD) SetDrSLID(v ib.LID) { binary.BigEndian.PutUint16(m[offDrSLID:], uint16(v)) }

// DrDLID is where the directed part ends; PermissiveLID means at the target.
func (m *MAD) DrDLID() ib.LID { return ib.LID(binary.BigEndian.Uint16(m[offDrDLID:])) }

// SetDrDLID writes DrDLID.
func (m *MAD) SetDrDLID(v ib.LID) { binary.BigEndian.PutUint16(m[offDrDLID:], uint16(v)) }

// InitialPath is a view of the 64 bytes of egress ports; byte 0 is not used.
func (m *MAD) InitialPath() []byte {
	return m[offInitialPath : offInitialPath+pathSize : offInitialPath+pathSize]
}

// ReturnPath is a view of the 64 bytes of ingress ports; byte 0 is not used.
func (m *MAD) ReturnPath() []byte { return m[offReturnPath : offReturnPath+pathSize] }
