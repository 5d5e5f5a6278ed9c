package nvconfig

import (
	"encoding/binary"
	"fmt"
)

// Sizes of items in bytes. The field of lengths has 9 bits, and lengths are
// multiples of 4.
const (
	HeaderSize = 12
	MaxData    = 508
)

// Priority is the writer of an item: bits 29-28 of dword 0. The order of life cycles is MLNX, OEM, USER.
type Priority uint8

// Priorities. A write through the registers of a host has User.
const (
	User Priority = 0
	OEM  Priority = 1
	MLNX Priority = 3
)

func (p Priority) String() string {
	switch p {
	case User:
		return "USER"
	case OEM:
		return "OEM"
	case MLNX:
		return "MLNX"
	default:
		return fmt.Sprintf("priority %d", uint8(p))
	}
}

// MarshalText implements encoding.TextMarshaler.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Later reports whether p comes after q in the order of life cycles, so that p may write over an item of q only where the
// item allows it. An unknown priority is later than every other. So no unknown priority is assumed to protect an item from
// others.
func (p Priority) Later(q Priority) bool { return p.rank() > q.rank() }

func (p Priority) rank() int {
	switch p {
	case MLNX:
		return 0
	case OEM:
		return 1
	case User:
		return 2
	default:
		return 3
	}
}

// Access says which of the values of an item is meant: bits 23-22 of dword 0.
type Access uint8

// Access modes.
const (
	Next    Access = 0 // what holds after the next reset of the firmware
	Current Access = 1
	Default Access = 2 // of the factory
)

func (a Access) String() string {
	switch a {
	case Next:
		return "next boot"
	case Current:
		return "current"
	case Default:
		return "default"
	default:
		return fmt.Sprintf("access mode %d", uint8(a))
	}
}

// Writer is which program or path wrote an item: bits 20-16 of dword 0. The
// firmware sets it; a write may ask for 6 to 0xB.
type Writer uint8

// Writers.
const (
	WriterNone      Writer = 0
	WriterMlxconfig Writer = 9
	WriterOurs      Writer = 0xA // free for tools of the site
	WriterRaw       Writer = 0xC // set_raw
)

// Header is an item's header without the length, which is that of its data. All bits are kept, so that a device's answer
// can be shown as it was.
type Header struct {
	Priority Priority
	// OverrideEnabled (ovr_en) lets later priorities write over the item. Unset,
	// only the same priority may.
	OverrideEnabled bool
	// ReadEnabled (rd_en): published descriptions contradict each other on which value lets others read. This package does
	// not rely on it.
	ReadEnabled bool
	Access      Access
	Writer      Writer
	Version     uint8 // 0 to 15
	// WriterHost has bits 11-9: in answers the host that wrote, in requests bit 9
	// says that the host of the address is meant.
	WriterHost uint8
	Address    Address
	// Reserved0 and Reserved2 have the bits of dwords 0 and 2 without a name.
	Reserved0, Reserved2 uint32
}

const (
	bitOverride = 1 << 25
	bitRead     = 1 << 24
	reserved0   = 3<<30 | 3<<26 | 1<<21
	maskLength  = 0x1FF
)

// Append adds the 12 bytes of the header of an item with so many bytes of data.
// It panics if the length does not fit its field.
func (h Header) Append(b []byte, length int) []byte {
	if length < 0 || length > maskLength {
		panic(fmt.Sprintf("nvconfig: item of %d bytes", length))
	}
	d := uint32(h.Priority&3)<<28 | uint32(h.Access&3)<<22 | uint32(h.Writer&0x1F)<<16 |
		uint32(h.Version&0xF)<<12 | uint32(h.WriterHost&7)<<9 | uint32(length) | h.Reserved0&reserved0
	if h.OverrideEnabled {
		d |= bitOverride
	}
	if h.ReadEnabled {
		d |= bitRead
	}
	b = binary.BigEndian.AppendUint32(b, d)
	b = binary.BigEndian.AppendUint32(b, uint32(h.Address))
	return binary.BigEndian.AppendUint32(b, h.Reserved2)
}

// ParseHeader reads the first 12 bytes of b, and the length in them. It refuses only too few bytes; Check refuses the rest.
func ParseHeader(b []byte) (h Header, length int, err error) {
	if len(b) < HeaderSize {
		return Header{}, 0, fmt.Errorf("header of an item: %d bytes, want %d", len(b), HeaderSize)
	}
	d := binary.BigEndian.Uint32(b)
	return Header{
		Priority:        Priority(d >> 28 & 3),
		OverrideEnabled: d&bitOverride != 0,
		ReadEnabled:     d&bitRead != 0,
		Access:          Access(d >> 22 & 3),
		Writer:          Writer(d >> 16 & 0x1F),
		Version:         uint8(d >> 12 & 0xF),
		WriterHost:      uint8(d >> 9 & 7),
		Address:         Address(binary.BigEndian.Uint32(b[4:])),
		Reserved0:       d & reserved0,
		Reserved2:       binary.BigEndian.Uint32(b[8:]),
	}, int(d & maskLength), nil
}

// Check refuses bits without a name, and values of fields that nothing explains.
func (h Header) Check() error {
	if err := h.Address.Check(); err != nil {
		return err
	}
	switch {
	case h.Reserved0&reserved0 != 0 || h.Reserved2 != 0:
		return fmt.Errorf("%v: reserved bits of its header are set", h.Address)
	case h.Priority != User && h.Priority != OEM && h.Priority != MLNX:
		return fmt.Errorf("%v: %v is unknown", h.Address, h.Priority)
	case h.Access > Default:
		return fmt.Errorf("%v: %v is unknown", h.Address, h.Access)
	}
	return nil
}

// Locked reports whether a process that has only the registers of the host cannot write over the item: its priority is
// above USER and it lets no later one.
func (h Header) Locked() bool {
	return User.Later(h.Priority) && !h.OverrideEnabled
}
