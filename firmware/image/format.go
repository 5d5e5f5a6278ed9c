package image

import (
	"bytes"
	"fmt"
)

// Format is the generation of an image's layout. The zero Format is none.
type Format uint8

// The layouts: ConnectX-4, Connect-IB and Spectrum have FS3, ConnectX-5 to -7 and
// BlueField-1 to -3 FS4, ConnectX-8 and later FS5.
const (
	FS3 Format = 3
	FS4 Format = 4
	FS5 Format = 5
)

func (f Format) String() string {
	switch f {
	case FS3, FS4, FS5:
		return fmt.Sprintf("FS%d", uint8(f))
	default:
		return "unknown"
	}
}

// MarshalText implements encoding.TextMarshaler.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// magicSize is that of the words an image begins with.
const magicSize = 16

var (
	magicFS3 = []byte{0x4D, 0x54, 0x46, 0x57, 0x8C, 0xDF, 0xD0, 0x00, 0xDE, 0xAD, 0x92, 0x70, 0x41, 0x54, 0xBE, 0xEF}
	magicFS4 = []byte{0x4D, 0x54, 0x46, 0x57, 0xAB, 0xCD, 0xEF, 0x00, 0xFA, 0xDE, 0x12, 0x34, 0x56, 0x78, 0xDE, 0xAD}
	// blank is in the place of the magic in an update component: the burning program writes the magic last.
	blank = bytes.Repeat([]byte{0xFF}, magicSize)
)

// starts are the places of a flash where an image may begin.
var starts = [...]int64{0, 0x10000, 0x20000, 0x40000, 0x80000, 0x100000, 0x200000, 0x400000, 0x800000, 0x1000000, 0x2000000}

// Places of the word that has the number of the layout.
const (
	versionFS3 = 0x24
	versionFS4 = 0x10
)

// locate finds where the image begins and its format. More than one image is a LayoutError, because it is unclear which of
// them is meant.
func locate(s source) (start int64, format Format, component bool, err error) {
	found := 0
	for _, at := range starts {
		if !s.holds(at, magicSize) {
			break
		}
		b, err := s.block("magic", at, magicSize)
		if err != nil {
			return 0, 0, false, err
		}
		if !bytes.Equal(b, magicFS3) && !bytes.Equal(b, magicFS4) {
			continue
		}
		found++
		if found > 1 {
			return 0, 0, false, malformed(fmt.Sprintf("image at 0x%x", at), "another image begins at 0x%x", start)
		}
		start = at
		if format, err = formatAt(s, at, bytes.Equal(b, magicFS3)); err != nil {
			return 0, 0, false, err
		}
	}
	if found == 1 {
		return start, format, false, nil
	}
	b, err := s.block("magic", 0, magicSize)
	if err != nil || !bytes.Equal(b, blank) {
		return 0, 0, false, fmt.Errorf("%w: it begins neither with the magic of one nor with 16 bytes of 0xff", ErrUnknown)
	}
	if format, err = formatAt(s, 0, false); err != nil {
		format, err = formatAt(s, 0, true)
	}
	return 0, format, true, err
}

// formatAt reads the number of the layout of the image at an address.
func formatAt(s source, at int64, old bool) (Format, error) {
	off := at + versionFS4
	if old {
		off = at + versionFS3
	}
	if !s.holds(off, 4) {
		return 0, fmt.Errorf("%w: it ends after its magic", ErrUnknown)
	}
	b, err := s.block("layout number", off, 4)
	if err != nil {
		return 0, err
	}
	switch {
	case old && b[0] == 3:
		return FS3, nil
	case !old && b[0] == 1:
		return FS4, nil
	case !old && b[0] == 2:
		return FS5, nil
	default:
		return 0, fmt.Errorf("%w: its layout number at 0x%x is %d", ErrUnknown, off, b[0])
	}
}
