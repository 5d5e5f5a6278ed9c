package imagetest

import (
	"crypto/rand"
	"crypto/rsa"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/big"
)

//go:embed testdata/test-rsa2048.json
var json2048 []byte

//go:embed testdata/test-rsa4096.json
var json4096 []byte

// KeyUUID names both test keys.
var KeyUUID = [16]byte{0xC0, 0xFF, 0xEE, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC}

// Key2048 is the test key of RSA-2048, which is worthless by design.
func Key2048() *rsa.PrivateKey { return parseKey(json2048) }

// Key4096 is the test key of RSA-4096.
func Key4096() *rsa.PrivateKey { return parseKey(json4096) }

// NewKey creates a key that is not pinned.
func NewKey(bits int) *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return k
}

func parseKey(data []byte) *rsa.PrivateKey {
	var f map[string]string
	if err := json.Unmarshal(data, &f); err != nil {
		panic(fmt.Sprintf("imagetest: test key: %v", err))
	}
	n := func(name string) *big.Int {
		v, ok := new(big.Int).SetString(f[name], 16)
		if !ok {
			panic("imagetest: test key without " + name)
		}
		return v
	}
	k := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: n("modulus"), E: int(n("publicExponent").Int64())},
		D:         n("privateExponent"), Primes: []*big.Int{n("prime1"), n("prime2")},
	}
	if err := k.Validate(); err != nil {
		panic(fmt.Sprintf("imagetest: test key: %v", err))
	}
	k.Precompute()
	return k
}
