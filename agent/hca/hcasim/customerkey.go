package hcasim

import (
	"crypto/rsa"
	"encoding/binary"
	"math/big"
	"slices"

	"portcullis/firmware/nvconfig"
)

// customerKey is the public key in items 412 to 414 that are in force: exponent and UUID in the first, the halves of the
// modulus in the others. Cards of Traits.EnrollsKeys know these items. It is not published whether real cards respect them.
func (c *Card) customerKey() (nvconfig.PinnedKey, bool) {
	id, high, low := c.store.globalInForce(keyIndex), c.store.globalInForce(keyIndex+1), c.store.globalInForce(keyIndex+2)
	if len(id) < 32 || [16]byte(id[16:32]) == ([16]byte{}) {
		return nvconfig.PinnedKey{}, false
	}
	modulus := new(big.Int).SetBytes(slices.Concat(high, low))
	if modulus.Sign() == 0 {
		return nvconfig.PinnedKey{}, false
	}
	return nvconfig.PinnedKey{
		UUID:   nvconfig.UUID(id[16:32]),
		Public: &rsa.PublicKey{N: modulus, E: int(binary.BigEndian.Uint32(id[12:16]))},
	}, true
}
