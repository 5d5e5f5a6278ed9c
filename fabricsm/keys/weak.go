package keys

import (
	"errors"
	"fmt"
	"math/bits"
)

// WeakError says why a key or seed is rejected. It does not show it.
type WeakError struct{ Why string }

func (e *WeakError) Error() string {
	return "weak key: " + e.Why + "; let the service draw keys, or take 16 hexadecimal digits from a random source"
}

// Check rejects keys that can be guessed: 0 and all ones, which have meanings of their own; values below 2^32, such as the
// 0x1 that managers have set by default; and repeated or counting bytes. The error is a *WeakError.
func Check(k Key) error {
	v := k.Reveal()
	switch {
	case v == 0:
		return &WeakError{"it is 0, which means no protection"}
	case v == ^uint64(0):
		return &WeakError{"it is all ones, which means a random one to OpenSM and UFM"}
	case v < 1<<32:
		return &WeakError{"it is below 2^32, which can be guessed"}
	case v == bits.RotateLeft64(v, 32):
		return &WeakError{"its bytes repeat"}
	}
	var b [8]byte
	for i := range b {
		b[i] = byte(v >> (56 - 8*i))
	}
	if counting(b[:]) {
		return &WeakError{"its bytes or digits count up or down"}
	}
	return nil
}

// counting reports whether bytes, or their hexadecimal digits, have the same distance from each to the next. Distance 0 is
// included.
func counting(b []byte) bool {
	digits := make([]byte, 0, 2*len(b))
	for _, x := range b {
		digits = append(digits, x>>4, x&15)
	}
	return even(b, 255) || even(digits, 15)
}

func even(b []byte, mask byte) bool {
	step := (b[1] - b[0]) & mask
	for i := 2; i < len(b); i++ {
		if (b[i]-b[i-1])&mask != step {
			return false
		}
	}
	return true
}

// leastDistinct is how many different bytes 64 random ones have at least, except for one case in 10^30; the mean is 57.
const leastDistinct = 32

// checkMaster rejects 64 bytes that no random source can have returned.
func checkMaster(b []byte) error {
	if len(b) != MasterSize {
		return fmt.Errorf("master of %d bytes: want %d from a random source", len(b), MasterSize)
	}
	var seen [256]bool
	distinct := 0
	for _, x := range b {
		if !seen[x] {
			seen[x] = true
			distinct++
		}
	}
	switch {
	case distinct < leastDistinct:
		return errors.New("master: too few of its bytes differ for a random one; draw 64 bytes from a random source")
	case even(b, 255):
		return errors.New("master: its bytes count up or down; draw 64 bytes from a random source")
	case string(b[:MasterSize/2]) == string(b[MasterSize/2:]):
		return errors.New("master: its halves are equal; draw 64 bytes from a random source")
	default:
		return nil
	}
}
