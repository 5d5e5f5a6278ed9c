package mad

import (
	"encoding/binary"
	"unsafe"
)

// Fill gives every field of v a value that its width can hold, from the words
// that next gives, for tests and for simulated devices. The same words make
// the same value. Reserved bits are not touched.
func Fill[T any](v *T, next func() uint64) {
	l := LayoutOf[T]()
	var b [(maxSize + wordBytes - 1) / wordBytes * wordBytes]byte
	for i := 0; i < l.size; i += wordBytes {
		binary.BigEndian.PutUint64(b[i:], next())
	}
	if err := l.decode(b[:l.size], unsafe.Pointer(v)); err != nil {
		panic("mad: " + err.Error())
	}
}
