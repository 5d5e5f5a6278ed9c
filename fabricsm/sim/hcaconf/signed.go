package hcaconf

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
)

// Signed is a configuration of an adapter and the signature on it. The
// form is the simulator's own.
type Signed struct{ Message, Signature []byte }

// Message is the signed data.
type Message struct {
	Config Config
	GUID   ib.GUID // node GUID of the adapter it is for; 0: any
	Serial uint64  // counts up, so that an old one cannot come back
}

// A message is 28 bytes: the text of configMagic, one byte of flags, one with the
// number of virtual functions, two of zero, GUID and serial number.
const (
	configMagic    = "hcaconf1"
	configSize     = 28
	flagFirewall   = 1
	flagLocked     = 2
	flagVFSMPs     = 4
	flagsKnown     = flagFirewall | flagLocked | flagVFSMPs
	configFlagsAt  = 8
	configVFsAt    = 9
	configGUIDAt   = 12
	configSerialAt = 20
)

// Encode returns the bytes to sign.
func (c Message) Encode() []byte {
	b := make([]byte, configSize)
	copy(b, configMagic)
	if c.Config.SMPFirewall {
		b[configFlagsAt] |= flagFirewall
	}
	if c.Config.Locked {
		b[configFlagsAt] |= flagLocked
	}
	if c.Config.VFSMPs {
		b[configFlagsAt] |= flagVFSMPs
	}
	b[configVFsAt] = c.Config.VFs
	binary.BigEndian.PutUint64(b[configGUIDAt:], uint64(c.GUID))
	binary.BigEndian.PutUint64(b[configSerialAt:], c.Serial)
	return b
}

// parseConfig accepts only the output of Encode.
func parseConfig(b []byte) (c Message, err error) {
	if len(b) != configSize {
		return c, fmt.Errorf("the configuration has %d bytes, want %d", len(b), configSize)
	}
	flags := b[configFlagsAt]
	c.Config = Config{
		SMPFirewall: flags&flagFirewall != 0, Locked: flags&flagLocked != 0,
		VFs: b[configVFsAt], VFSMPs: flags&flagVFSMPs != 0,
	}
	c.GUID = ib.GUID(binary.BigEndian.Uint64(b[configGUIDAt:]))
	c.Serial = binary.BigEndian.Uint64(b[configSerialAt:])
	if flags&^flagsKnown != 0 || !bytes.Equal(c.Encode(), b) {
		return Message{}, errors.New("the configuration has another form, or flags that are not known")
	}
	return c, nil
}

var errSignature = errors.New("the configuration is not signed by a key that the adapter trusts")

// Ed25519Key trusts signatures of one Ed25519 key.
type Ed25519Key ed25519.PublicKey

// Verify implements Verifier.
func (k Ed25519Key) Verify(message, signature []byte) error {
	if len(k) != ed25519.PublicKeySize || !ed25519.Verify(ed25519.PublicKey(k), message, signature) {
		return errSignature
	}
	return nil
}

// RSAKey trusts RSASSA-PKCS1-v1_5 signatures of one key: with SHA-512 of keys
// of 4096 bits, with SHA-256 of shorter ones, as configuration files of real
// adapters have them.
type RSAKey struct{ Public *rsa.PublicKey }

// Verify implements Verifier.
func (k RSAKey) Verify(message, signature []byte) error {
	hash, sum := crypto.SHA256, sha256.Sum256(message)
	digest := sum[:]
	if k.Public.Size() >= 512 {
		long := sha512.Sum512(message)
		hash, digest = crypto.SHA512, long[:]
	}
	if rsa.VerifyPKCS1v15(k.Public, hash, digest, signature) != nil {
		return errSignature
	}
	return nil
}
