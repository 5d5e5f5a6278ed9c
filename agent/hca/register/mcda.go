package register

import "encoding/binary"

// BlockSize is the most that one MCDA carries, in bytes.
const BlockSize = 128

// MCDA carries a block of a component.
type MCDA struct {
	Handle uint32          `reg:"0x00.0,24"`
	Offset uint32          `reg:"0x04.0,32"` // in the component, in bytes
	Length uint16          `reg:"0x08.0,16"` // of the block, in bytes
	Dwords [BlockSize]byte `reg:"0x10"`      // the block, as on the wire: the bytes of each dword turned round
}

// ID implements Layout.
func (MCDA) ID() ID { return IDMCDA }

// Size implements Sized.
func (MCDA) Size() int { return 0x90 }

// NewMCDA makes the block at an offset. It takes BlockSize bytes of block at most; the rest of the last dword is zero.
func NewMCDA(handle, offset uint32, block []byte) MCDA {
	m := MCDA{Handle: handle, Offset: offset}
	m.Length = uint16(copy(m.Dwords[:], block))
	turn(&m.Dwords)
	return m
}

// Block is the bytes of the component that m carries; false if it says that
// there are more than it has room for.
func (m MCDA) Block() ([]byte, bool) {
	if m.Length > BlockSize {
		return nil, false
	}
	turn(&m.Dwords)
	return m.Dwords[:m.Length], true
}

func turn(b *[BlockSize]byte) {
	for i := 0; i < BlockSize; i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.LittleEndian.Uint32(b[i:]))
	}
}
