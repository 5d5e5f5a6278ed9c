package hcasim

import (
	"crypto/sha256"
	"encoding/binary"
)

// dice are the source of all that cannot be guessed without the seed.
type dice struct {
	seed  uint64
	drawn uint64 // times
}

// draw returns the bytes of a challenge.
func (d *dice) draw() [sha256.Size]byte {
	d.drawn++
	b := binary.BigEndian.AppendUint64([]byte("challenge"), d.seed)
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, d.drawn))
}

// handle returns a handle that changes with each draw.
func (d *dice) handle() uint32 { return uint32(d.seed+d.drawn)&0x7FFFFF | 0x800000 }
