package mad

import (
	"encoding/binary"
	"unsafe"
)

// Fill sets every field of v to a value that its width can hold, from the words that next returns, for tests and for
// simulated devices. The same words lead to the same value. Reserved bits are not changed.
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
