package signkey

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"portcullis/firmware/nvconfig"
)

// ParsePEM reads one private RSA key of 2048 or 4096 bits, in PKCS#1 or PKCS#8.
// Keys under a password are refused: a token keeps a key better.
func ParsePEM(data []byte) (*rsa.PrivateKey, error) {
	block, rest := pem.Decode(data)
	if block == nil {
		return nil, errors.New("no PEM in it: want a private RSA key")
	}
	defer clear(block.Bytes)
	if len(bytes.TrimSpace(rest)) != 0 {
		return nil, errors.New("there is more after the key: want one key and nothing else")
	}
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		if block.Headers["DEK-Info"] != "" {
			return nil, errPassword
		}
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY":
		return nil, errPassword
	default:
		return nil, fmt.Errorf("it is a %q: want a private RSA key", clip(block.Type))
	}
	if err != nil {
		return nil, fmt.Errorf("not a private key: %w", err)
	}
	k, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("it is a key of type %T: adapters take RSA", key)
	}
	return k, checkSize(&k.PublicKey)
}

var errPassword = errors.New("the key has a password, which is not supported: keep it in a PKCS#11 token, or hand it over as a credential")

// ParsePublic reads a public RSA key in PEM (SubjectPublicKeyInfo).
func ParsePublic(data []byte) (*rsa.PublicKey, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "PUBLIC KEY" || len(bytes.TrimSpace(rest)) != 0 {
		return nil, errors.New("want one PUBLIC KEY in PEM, as openssl rsa -pubout writes it")
	}
	return publicDER(block.Bytes)
}

func publicDER(der []byte) (*rsa.PublicKey, error) {
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("not a public key: %w", err)
	}
	k, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("it is a key of type %T: adapters take RSA", key)
	}
	return k, checkSize(k)
}

func checkSize(k *rsa.PublicKey) error {
	if n := k.N.BitLen(); n != 2048 && n != 4096 {
		return fmt.Errorf("an RSA key of %d bits: adapters take 2048 or 4096", n)
	}
	if k.E != nvconfig.Exponent {
		return fmt.Errorf("an RSA key with exponent %d: want %d, as openssl genrsa makes it", k.E, nvconfig.Exponent)
	}
	return nil
}

// clip shortens text from outside, for errors.
func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "..."
	}
	return s
}
