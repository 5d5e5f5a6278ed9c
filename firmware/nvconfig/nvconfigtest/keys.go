// Package nvconfigtest has worthless keys that sign settings in tests.
package nvconfigtest

import (
	"crypto/rsa"
	"embed"
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	"portcullis/firmware/nvconfig"
)

//go:embed keys
var files embed.FS

// KeyUUID names both test keys; the vectors in testdata of package nvconfig are
// signed under it.
var KeyUUID = nvconfig.UUID{0xC0, 0xFF, 0xEE, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC}

// Key returns the test key of 2048 or 4096 bits.
func Key(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	text, err := files.ReadFile(fmt.Sprintf("keys/test-rsa%d.json", bits))
	if err != nil {
		t.Fatal(err)
	}
	var hex map[string]string
	if err := json.Unmarshal(text, &hex); err != nil {
		t.Fatal(err)
	}
	number := func(name string) *big.Int {
		n, ok := new(big.Int).SetString(hex[name], 16)
		if !ok {
			t.Fatalf("test key of %d bits: no %s", bits, name)
		}
		return n
	}
	k := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: number("modulus"), E: int(number("publicExponent").Int64())},
		D:         number("privateExponent"),
		Primes:    []*big.Int{number("prime1"), number("prime2")},
	}
	k.Precompute()
	if err := k.Validate(); err != nil {
		t.Fatal(err)
	}
	return k
}

// Pinned returns the public half of a test key, as a site pins it.
func Pinned(t testing.TB, bits int) nvconfig.PinnedKey {
	t.Helper()
	return nvconfig.PinnedKey{UUID: KeyUUID, Public: &Key(t, bits).PublicKey}
}
