package lockkey

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"portcullis/fabricsm/ib"
)

// Check returns the part of a key that may be shown, so that a rehearsal of recovery can compare: 32 bits of the SHA-256 of
// its 16 hexadecimal digits. With it an attacker who guesses keys knows which 2^32 of 2^64 are left, and still has to try
// those at the adapter.
func Check(k ib.LockKey) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%016x", k.Reveal()))
	return hex.EncodeToString(sum[:4])
}
