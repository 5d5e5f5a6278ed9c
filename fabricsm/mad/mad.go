package mad

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
)

const (
	// Size is the length of every MAD in bytes.
	Size = 256
	// HeaderSize is the length of the common header in bytes.
	HeaderSize = 24
	// DataSize is the length of the attribute area of an SMP in bytes.
	DataSize = 64
)

// Byte offsets of the common header (IBTA volume 1, 13.4.3) and of an SMP
// (14.2.1).
const (
	offBaseVersion  = 0
	offClass        = 1
	offClassVersion = 2
	offMethod       = 3
	offStatus       = 4
	offTID          = 8
	offAttr         = 16
	offMod          = 20
	offMKey         = 24
	offData         = 64

	baseVersion = 1
)

// MAD is one management datagram as it is on the wire. Its methods are views
// of the block and allocate nothing.
type MAD [Size]byte

// Header is the common header of a MAD, without the base version, which is
// always 1.
type Header struct {
	Class        Class
	ClassVersion uint8 // 1 for SMPs, 2 for subnet administration and congestion control
	Method       Method
	Status       Status // without the D bit of a directed-route SMP
	TID          ib.TID
	Attr         AttrID
	Mod          uint32 // attribute modifier, its meaning depends on Attr
}

// Header returns the common header.
func (m *MAD) Header() Header {
	return Header{
		Class:        m.Class(),
		ClassVersion: m[offClassVersion],
		Method:       m.Method(),
		Status:       m.Status(),
		TID:          m.TID(),
		Attr:         m.Attr(),
		Mod:          m.Mod(),
	}
}

// SetHeader writes the common header with base version 1. The
// class-specific bytes 6 and 7, the reserved bytes 18 and 19 and, in a
// directed-route SMP, the D bit stay as they are.
func (m *MAD) SetHeader(h Header) {
	m[offBaseVersion] = baseVersion
	m[offClass] = byte(h.Class)
	m[offClassVersion] = h.ClassVersion
	m[offMethod] = byte(h.Method)
	m.SetStatus(h.Status)
	m.SetTID(h.TID)
	m.SetAttr(h.Attr)
	m.SetMod(h.Mod)
}

// BaseVersion is 1 in every valid MAD.
func (m *MAD) BaseVersion() uint8 { return m[offBaseVersion] }

// Class is the management class.
func (m *MAD) Class() Class { return Class(m[offClass]) }

// ClassVersion is the version of the class.
func (m *MAD) ClassVersion() uint8 { return m[offClassVersion] }

// Method is the method with its response bit.
func (m *MAD) Method() Method { return Method(m[offMethod]) }

// SetMethod writes the method.
func (m *MAD) SetMethod(v Method) { m[offMethod] = byte(v) }

// Status is the status word. In a directed-route SMP the D bit, which shares
// the word, is masked off.
func (m *MAD) Status() Status {
	s := binary.BigEndian.Uint16(m[offStatus:])
	if m.IsDR() {
		s &^= directionBit
	}
	return Status(s)
}

// SetStatus writes the status word and leaves the D bit of a directed-route
// SMP alone.
func (m *MAD) SetStatus(v Status) {
	s := uint16(v)
	if m.IsDR() {
		s = s&^directionBit | binary.BigEndian.Uint16(m[offStatus:])&directionBit
	}
	binary.BigEndian.PutUint16(m[offStatus:], s)
}

// TID is the transaction identifier.
func (m *MAD) TID() ib.TID { return ib.TID(binary.BigEndian.Uint64(m[offTID:])) }

// SetTID writes the transaction identifier.
func (m *MAD) SetTID(v ib.TID) { binary.BigEndian.PutUint64(m[offTID:], uint64(v)) }

// Attr is the attribute identifier.
func (m *MAD) Attr() AttrID { return AttrID(binary.BigEndian.Uint16(m[offAttr:])) }

// SetAttr writes the attribute identifier.
func (m *MAD) SetAttr(v AttrID) { binary.BigEndian.PutUint16(m[offAttr:], uint16(v)) }

// Mod is the attribute modifier.
func (m *MAD) Mod() uint32 { return binary.BigEndian.Uint32(m[offMod:]) }

// SetMod writes the attribute modifier.
func (m *MAD) SetMod(v uint32) { binary.BigEndian.PutUint32(m[offMod:], v) }

// IsSMP reports whether m is a subnet management packet, LID routed or directed route.
func (m *MAD) IsSMP() bool { return m.Class() == ClassSubn || m.Class() == ClassSubnDR }

// IsDR reports whether m is a directed-route SMP.
func (m *MAD) IsDR() bool { return m.Class() == ClassSubnDR }

// IsResponse reports whether m is an answer to a request: the R bit of the method, or TrapRepress, which answers a Trap
// without that bit.
func (m *MAD) IsResponse() bool { return m.Method().IsResponse() }

// MKey is the M_Key that the sender of an SMP offers. Other classes keep other
// things at that place.
func (m *MAD) MKey() ib.MKey { return ib.NewMKey(binary.BigEndian.Uint64(m[offMKey:])) }

// KeyBytes is a view of the 8 bytes where SMPs have their M_Key, and GMPs of classes with keys their key.
func (m *MAD) KeyBytes() []byte { return m[offMKey : offMKey+keySize : offMKey+keySize] }

// SetMKey writes the M_Key of an SMP.
func (m *MAD) SetMKey(k ib.MKey) { binary.BigEndian.PutUint64(m[offMKey:], k.Reveal()) }

// Data is the attribute of an SMP, bytes 64 to 127. It is a view of m: its
// capacity ends with it.
func (m *MAD) Data() []byte { return m[offData : offData+DataSize : offData+DataSize] }

// Respond turns the request m into its answer in place: method, status and,
// in a directed-route SMP, the D bit. TID, attribute, modifier, data and paths
// stay. A Trap becomes a TrapRepress.
func (m *MAD) Respond(s Status) {
	m.SetMethod(m.Method().Response())
	m.SetStatus(s)
	if m.IsDR() {
		m.SetReturning(true)
	}
}
