package imagetest

import "math/bits"

// Soft is the checksum of sections and tables, bit by bit as it is described.
func Soft(b []byte) uint16 {
	r := uint16(0xFFFF)
	shift := func(bit uint16) {
		top := r & 0x8000
		if r = r<<1 | bit; top != 0 {
			r ^= 0x100B
		}
	}
	for _, c := range b {
		for i := 7; i >= 0; i-- {
			shift(uint16(c>>i) & 1)
		}
	}
	for range 16 {
		shift(0)
	}
	return r ^ 0xFFFF
}

// Hard is the checksum of a hardware pointer: 6 bytes.
func Hard(b []byte) uint16 {
	r := uint16(0xFFFF)
	for i, c := range b {
		if i < 2 {
			c = ^c
		}
		r ^= uint16(c)
		for range 8 {
			low := r & 1
			if r >>= 1; low != 0 {
				r ^= 0xD008
			}
		}
	}
	return bits.ReverseBytes16(r)
}
