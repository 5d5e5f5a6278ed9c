package ek

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"math/big"
)

// Digest is the hex SHA-256 of the key's SubjectPublicKeyInfo in DER: how
// inventory names an EK.
func Digest(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrKind, err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}

// checkStrength refuses keys that could be computed from their public part.
func checkStrength(key crypto.PublicKey) error {
	switch key := key.(type) {
	case *rsa.PublicKey:
		switch {
		case key.N.BitLen() < 2048:
			return fmt.Errorf("%w: RSA modulus has %d bits, want 2048", ErrWeak, key.N.BitLen())
		case key.E != 65537:
			return fmt.Errorf("%w: RSA exponent %d, want 65537", ErrWeak, key.E)
		case isROCA(key.N):
			return fmt.Errorf("%w: RSA modulus has the ROCA pattern (CVE-2017-15361); update the TPM's firmware and make a new EK", ErrWeak)
		}
		return nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
			return fmt.Errorf("%w: curve %s, want P-256 or P-384", ErrWeak, key.Params().Name)
		}
		return nil
	default:
		return fmt.Errorf("%w: key type %T", ErrKind, key)
	}
}

// isROCA reports the fingerprint of moduli made by a flawed generator: modulo
// every small prime they are a power of 65537. An honest modulus passes by
// chance once in 2^27.
func isROCA(n *big.Int) bool {
	for _, p := range []int64{11, 13, 17, 19, 37, 53, 61, 71, 73, 79, 97, 103, 107, 109, 127, 151, 157} {
		if !isPower(new(big.Int).Mod(n, big.NewInt(p)).Int64(), p) {
			return false
		}
	}
	return true
}

// isPower reports whether r is a power of 65537 modulo p.
func isPower(r, p int64) bool {
	for i, v := int64(0), int64(1); i < p; i, v = i+1, v*65537%p {
		if v == r {
			return true
		}
	}
	return false
}
