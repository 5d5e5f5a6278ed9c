package ek

import (
	"crypto"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/google/go-tpm/tpm2"
)

// Endorsement is an EK whose key is known to be strong and to fit its
// template.
type Endorsement struct {
	Kind   Kind
	Digest string   // hex SHA-256 of the SubjectPublicKeyInfo
	Public []byte   // TPMT_PUBLIC, rebuilt
	Name   []byte   // name algorithm and digest of Public
	Notes  []string // what was let pass, for the log
	Model  Model    // as the certificate names it; zero without one
	// Issuers are hex SHA-256 of the SubjectPublicKeyInfo of the CAs of the trusted chain, from the certificate up; empty
	// without a chain.
	Issuers []string
	public  *tpm2.TPMTPublic
}

// FromKey takes the EK of a TPM without certificate, as a DER
// SubjectPublicKeyInfo. It means nothing until its digest is compared with
// inventory.
func FromKey(kind Kind, spki []byte) (*Endorsement, error) {
	key, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrParse, err)
	}
	return endorse(kind, key)
}

// FromCertificate takes the EK out of its certificate and checks neither
// issuer nor usage. Like FromKey it means nothing until its digest is compared
// with inventory.
func FromCertificate(kind Kind, der []byte) (*Endorsement, error) {
	cert, err := parse(der)
	if err != nil {
		return nil, err
	}
	e, err := endorse(kind, cert.PublicKey)
	if err != nil {
		return nil, err
	}
	if m, err := modelOf(cert); err == nil { // a pinned key needs no well-formed name
		e.Model = m
	}
	return e, nil
}

func endorse(kind Kind, key crypto.PublicKey) (*Endorsement, error) {
	if err := checkStrength(key); err != nil {
		return nil, err
	}
	pub, err := kind.Public(key)
	if err != nil {
		return nil, err
	}
	name, err := tpm2.ObjectName(pub)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrKind, err)
	}
	digest, err := Digest(key)
	if err != nil {
		return nil, err
	}
	return &Endorsement{Kind: kind, Digest: digest, Public: tpm2.Marshal(*pub), Name: name.Buffer, public: pub}, nil
}

// Credential encrypts secret so that only the TPM holding this EK can recover
// it, and only for an object with akName (TPM 2.0 part 1, 24). It returns a
// TPMS_ID_OBJECT and the encrypted seed, both without outer size.
func (e *Endorsement) Credential(rnd io.Reader, akName, secret []byte) (blob, seed []byte, err error) {
	key, err := tpm2.ImportEncapsulationKey(e.public)
	if err != nil {
		return nil, nil, fmt.Errorf("credential for EK %s: %w", e.Digest, err)
	}
	blob, seed, err = tpm2.CreateCredential(rnd, key, akName, secret)
	if err != nil {
		return nil, nil, fmt.Errorf("credential for EK %s: %w", e.Digest, err)
	}
	return blob, seed, nil
}

// ChildQualifiedName is the qualified name of a SHA-256 named child of the EK in the endorsement hierarchy (TPM 2.0 part 1,
// 16). It distinguishes this EK's child from the same key loaded anywhere else.
func ChildQualifiedName(ekName, childName []byte) ([]byte, error) {
	parent, err := qualify(ekName, binary.BigEndian.AppendUint32(nil, uint32(tpm2.TPMRHEndorsement)))
	if err != nil {
		return nil, err
	}
	return qualify(childName, parent)
}

// qualify computes alg || H_alg(parentQN || name).
func qualify(name, parentQN []byte) ([]byte, error) {
	if len(name) < 2 {
		return nil, fmt.Errorf("%w: name of %d bytes", ErrKind, len(name))
	}
	data := append(append([]byte(nil), parentQN...), name...)
	switch alg := tpm2.TPMAlgID(binary.BigEndian.Uint16(name)); alg {
	case tpm2.TPMAlgSHA256:
		sum := sha256.Sum256(data)
		return append(name[:2:2], sum[:]...), nil
	case tpm2.TPMAlgSHA384:
		sum := sha512.Sum384(data)
		return append(name[:2:2], sum[:]...), nil
	default:
		return nil, fmt.Errorf("%w: name algorithm 0x%04x", ErrKind, uint16(alg))
	}
}
