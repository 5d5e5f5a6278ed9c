package image

import (
	"bytes"
	"fmt"
	"strings"
)

// Algorithm says how a key signs.
type Algorithm uint8

// The algorithms, by the numbers of the authentication configuration.
const (
	SHA256        Algorithm = 1 // no signature: a bare digest
	RSA2048SHA256 Algorithm = 3
	RSA4096SHA512 Algorithm = 4
)

func (a Algorithm) String() string {
	switch a {
	case SHA256:
		return "sha-256"
	case RSA2048SHA256:
		return "rsa-2048-sha-256"
	case RSA4096SHA512:
		return "rsa-4096-sha-512"
	default:
		return fmt.Sprintf("algorithm %d", uint8(a))
	}
}

// MarshalText implements encoding.TextMarshaler.
func (a Algorithm) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// ParseAlgorithm reads the name of an algorithm of signatures.
func ParseAlgorithm(s string) (Algorithm, error) {
	for _, a := range []Algorithm{RSA2048SHA256, RSA4096SHA512} {
		if a.String() == s {
			return a, nil
		}
	}
	return 0, fmt.Errorf("algorithm %q: want %v or %v", s, RSA2048SHA256, RSA4096SHA512)
}

// Bits is the size of its modulus.
func (a Algorithm) Bits() int {
	switch a {
	case RSA2048SHA256:
		return 2048
	case RSA4096SHA512:
		return 4096
	default:
		return 0
	}
}

// Purposes are what a key may sign, bits of the authentication configuration.
type Purposes uint32

// The purposes.
const (
	SignsFirmware      Purposes = 1 << 31
	SignsCSToken       Purposes = 1 << 30
	SignsVendorConf    Purposes = 1 << 29
	SignsMlnxConf      Purposes = 1 << 28
	SignsFRC           Purposes = 1 << 27
	SignsBTCToken      Purposes = 1 << 26
	SignsCRToken       Purposes = 1 << 25
	SignsVendorCert    Purposes = 1 << 23
	SignsMlnxCert      Purposes = 1 << 22
	allPurposes                 = SignsFirmware | SignsCSToken | SignsVendorConf | SignsMlnxConf | SignsFRC | SignsBTCToken | SignsCRToken | SignsVendorCert | SignsMlnxCert
	maskAuthentication          = 0xFF
)

var purposeNames = []struct {
	bit  Purposes
	name string
}{
	{SignsFirmware, "firmware"},
	{SignsCSToken, "cs-token"},
	{SignsVendorConf, "vendor-nvconfig"},
	{SignsMlnxConf, "mlnx-nvconfig"},
	{SignsFRC, "frc"},
	{SignsBTCToken, "btc-token"},
	{SignsCRToken, "cr-token"},
	{SignsVendorCert, "vendor-certificate"},
	{SignsMlnxCert, "mlnx-certificate"},
}

// ParsePurpose reads one name, such as "firmware".
func ParsePurpose(s string) (Purposes, error) {
	names := []string{}
	for _, n := range purposeNames {
		if n.name == s {
			return n.bit, nil
		}
		names = append(names, n.name)
	}
	return 0, fmt.Errorf("%q is not something that a key signs: want one of %s", s, strings.Join(names, ", "))
}

// Names lists the purposes.
func (p Purposes) Names() []string {
	names := []string{}
	for _, n := range purposeNames {
		if p&n.bit != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// PublicKey is a key inside an image: the next set of its device, and no reason to trust this image.
type PublicKey struct {
	Section   SectionType
	UUID      UUID
	Algorithm Algorithm
	Signs     Purposes
	Exponent  uint32
	Modulus   []byte // big-endian
}

// Signature is one signature section.
type Signature struct {
	Algorithm Algorithm
	ID        UUID // of the signature; its meaning is not known
	Key       UUID
	Value     []byte // 256 or 512 bytes, big-endian
	tail      []byte
}

// Blank reports a section in which nothing was written.
func (s *Signature) Blank() bool {
	return s.ID.IsZero() && s.Key.IsZero() && zero(s.Value) && s.Tidy()
}

// Bare reports a section that holds no signature but a digest: no key is named.
func (s *Signature) Bare() bool { return s.Key.IsZero() && !s.Blank() }

// Tidy reports that nothing stands behind the signature in its section.
func (s *Signature) Tidy() bool { return zero(s.tail) }

// Digest is what a bare section holds. False is a section that holds something
// else beside or instead of it.
func (s *Signature) Digest() (d [32]byte, ok bool) {
	copy(d[:], s.Value)
	return d, s.Bare() && s.Algorithm == RSA2048SHA256 && zero(s.Value[len(d):]) && s.Tidy()
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

const (
	signatureHead = 0x20
	signatureTail = 0x20
)

// signatureSections are the sections a signature of the whole image can be in.
var signatureSections = map[SectionType]Algorithm{SectionSignature256: RSA2048SHA256, SectionSignature512: RSA4096SHA512}

func readSignature(s source, e Section) (*Signature, error) {
	a := signatureSections[e.Type]
	value := int64(a.Bits() / 8)
	size := signatureHead + value + signatureTail
	if e.Size != size {
		return nil, malformed(e.Type.String(), "it has %d bytes, not %d", e.Size, size)
	}
	b, err := s.block(e.Type.String(), e.Offset, size)
	if err != nil {
		return nil, err
	}
	return &Signature{
		Algorithm: a, ID: UUID(b[:0x10]), Key: UUID(b[0x10:0x20]),
		Value: b[signatureHead : signatureHead+value], tail: b[signatureHead+value:],
	}, nil
}

// keySlot is how a key stands in a section of eight.
type keySlot struct {
	size, auth, exponent, uuid, modulus, modulusSize int
}

const keySlots = 8

var keyLayouts = map[SectionType]keySlot{
	SectionKeys2048: {size: 288, auth: 0, exponent: 0x0C, uuid: 0x10, modulus: 0x20, modulusSize: 256},
	SectionKeys4096: {size: 544, auth: 0, exponent: 0x0C, uuid: 0x10, modulus: 0x20, modulusSize: 512},
	SectionBootKeys: {size: 544, auth: 0x214, exponent: 0x00, uuid: 0x04, modulus: 0x14, modulusSize: 512},
}

func readKeys(s source, e Section) ([]PublicKey, error) {
	l := keyLayouts[e.Type]
	b, err := sectionBlock(s, e, int64(keySlots*l.size))
	if err != nil {
		return nil, err
	}
	var keys []PublicKey
	for i := range keySlots {
		slot := b[i*l.size:][:l.size]
		modulus := slot[l.modulus:][:l.modulusSize]
		uuid := UUID(slot[l.uuid:][:16])
		if zero(modulus) && uuid.IsZero() {
			continue
		}
		auth := u32(slot, l.auth)
		keys = append(keys, PublicKey{
			Section: e.Type, UUID: uuid, Exponent: u32(slot, l.exponent), Modulus: bytes.Clone(modulus),
			Algorithm: Algorithm(auth & maskAuthentication), Signs: Purposes(auth) & allPurposes,
		})
	}
	return keys, nil
}
