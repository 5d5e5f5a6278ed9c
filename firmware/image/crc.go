package image

import "math/bits"

// polynomial of both checksums: x^16 + x^12 + x^3 + x + 1.
const polynomial = 0x100B

var softTable, hardTable = softCRCTable(), hardCRCTable()

func softCRCTable() (t [256]uint16) {
	for i := range t {
		r := uint16(i) << 8
		for range 8 {
			if r&0x8000 != 0 {
				r = r<<1 ^ polynomial
			} else {
				r <<= 1
			}
		}
		t[i] = r
	}
	return t
}

func hardCRCTable() (t [256]uint16) {
	reflected := bits.Reverse16(polynomial)
	for i := range t {
		r := uint16(i)
		for range 8 {
			if r&1 != 0 {
				r = r>>1 ^ reflected
			} else {
				r >>= 1
			}
		}
		t[i] = r
	}
	return t
}

// softCRC is the checksum of tables, sections, tools area and BOOT2, over a
// multiple of four bytes. Its zero value is not ready: use newSoftCRC.
type softCRC uint16

func newSoftCRC() softCRC { return 0xFFFF }

// Write never fails.
func (c *softCRC) Write(p []byte) (int, error) {
	r := uint16(*c)
	for _, b := range p {
		r = (r<<8 | uint16(b)) ^ softTable[r>>8]
	}
	*c = softCRC(r)
	return len(p), nil
}

func (c softCRC) sum() uint16 {
	_, _ = c.Write([]byte{0, 0})
	return uint16(c) ^ 0xFFFF
}

func softSum(p []byte) uint16 {
	c := newSoftCRC()
	_, _ = c.Write(p)
	return c.sum()
}

// hardSum is the checksum that the chip computes over a hardware pointer: the
// pointer and the two bytes after it.
func hardSum(p []byte) uint16 {
	r := uint16(0xFFFF)
	for i, b := range p {
		if i < 2 {
			b = ^b
		}
		r = r>>8 ^ hardTable[byte(r)^b]
	}
	return bits.ReverseBytes16(r)
}
