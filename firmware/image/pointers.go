package image

import "fmt"

// Pointer is the number of a hardware pointer.
type Pointer int

// The hardware pointers of FS4 that are used here. FS5 has other meanings for
// most, but IMAGE_INFO is at the same.
const (
	PointerBootRecord      Pointer = 0
	PointerBOOT2           Pointer = 1
	PointerTOC             Pointer = 2
	PointerTools           Pointer = 3
	PointerImageInfo       Pointer = 10
	PointerSecurityVersion Pointer = 13 // the version itself, not an address
	PointerHashes          Pointer = 15
)

const (
	pointersAt  = 0x18
	pointerSize = 8
	numPointers = 16
)

// pointers are the hardware pointers, as they stand in the image.
type pointers struct {
	raw [numPointers * pointerSize]byte
}

func readPointers(s source) (p pointers, err error) {
	err = s.fill("hardware pointers", pointersAt, p.raw[:])
	return p, err
}

// at returns a pointer; 0 is none.
func (p *pointers) at(i Pointer) int64 {
	v := u32(p.raw[:], int(i)*pointerSize)
	if v == 0xFFFFFFFF {
		return 0
	}
	return int64(v)
}

// check compares the checksum of each pointer. Some chips compute the one,
// some the other.
func (p *pointers) check() (found []Finding) {
	for i := range Pointer(numPointers) {
		b := p.raw[int(i)*pointerSize:][:pointerSize]
		got := u16(b, 6)
		if u32(b, 0) == 0xFFFFFFFF || got == hardSum(b[:6]) || got == softSum(b[:4]) {
			continue
		}
		found = append(found, Finding{fmt.Sprintf("hardware pointer %d", i), fmt.Sprintf("its checksum is 0x%04x, not 0x%04x", got, hardSum(b[:6]))})
	}
	return found
}
