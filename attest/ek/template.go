package ek

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/hex"
	"fmt"

	"github.com/google/go-tpm/tpm2"
)

// Kind names an EK template of the TCG EK Credential Profile.
type Kind string

// Kinds, in the order the agent prefers them: RSA primaries are the slowest.
const (
	P256    Kind = "ecc-p256" // template L-2
	P384    Kind = "ecc-p384" // template H-3
	RSA2048 Kind = "rsa-2048" // template L-1
)

// Kinds lists every kind, best first.
func Kinds() []Kind { return []Kind{P256, P384, RSA2048} }

// CertificateIndex is the NV index of the kind's EK certificate, 0 for an
// unknown kind (EK Credential Profile, 2.2.1.4).
func (k Kind) CertificateIndex() tpm2.TPMHandle {
	switch k {
	case RSA2048:
		return 0x01c00002
	case P256:
		return 0x01c0000a
	case P384:
		return 0x01c00016
	default:
		return 0
	}
}

// Template is the public area to create the EK from.
func (k Kind) Template() (tpm2.TPMTPublic, error) {
	switch k {
	case RSA2048:
		return tpm2.RSAEKTemplate, nil
	case P256:
		return tpm2.ECCEKTemplate, nil
	case P384:
		return p384Template(), nil
	default:
		return tpm2.TPMTPublic{}, fmt.Errorf("%w: kind %q is not one of %v", ErrKind, string(k), Kinds())
	}
}

// policyB384 is PolicyB with SHA-384: PolicyOR of PolicyA and PolicyC (EK
// Credential Profile, B.6).
const policyB384 = "b26e7d28d11a50bc53d882bcf5fd3a1a074148bb35d3b4e4cb1c0ad9bde419ca" +
	"cb47ba09699646150f9fc000f3f80e12"

func p384Template() tpm2.TPMTPublic {
	policy, err := hex.DecodeString(policyB384)
	if err != nil {
		panic("ek: " + err.Error())
	}
	return tpm2.TPMTPublic{
		Type:    tpm2.TPMAlgECC,
		NameAlg: tpm2.TPMAlgSHA384,
		ObjectAttributes: tpm2.TPMAObject{
			FixedTPM: true, FixedParent: true, SensitiveDataOrigin: true,
			UserWithAuth: true, AdminWithPolicy: true,
			Restricted: true, Decrypt: true,
		},
		AuthPolicy: tpm2.TPM2BDigest{Buffer: policy},
		Parameters: tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{
			Symmetric: tpm2.TPMTSymDefObject{
				Algorithm: tpm2.TPMAlgAES,
				KeyBits:   tpm2.NewTPMUSymKeyBits(tpm2.TPMAlgAES, tpm2.TPMKeyBits(256)),
				Mode:      tpm2.NewTPMUSymMode(tpm2.TPMAlgAES, tpm2.TPMAlgCFB),
			},
			CurveID: tpm2.TPMECCNistP384,
		}),
		Unique: tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{}),
	}
}

// Public rebuilds the EK's public area from its key.
func (k Kind) Public(key crypto.PublicKey) (*tpm2.TPMTPublic, error) {
	pub, err := k.Template()
	if err != nil {
		return nil, err
	}
	switch key := key.(type) {
	case *rsa.PublicKey:
		if k != RSA2048 || key.N.BitLen() != 2048 {
			return nil, fmt.Errorf("%w: an RSA-%d key does not fit %s", ErrKind, key.N.BitLen(), k)
		}
		pub.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgRSA,
			&tpm2.TPM2BPublicKeyRSA{Buffer: key.N.FillBytes(make([]byte, 256))})
	case *ecdsa.PublicKey:
		if !(k == P256 && key.Curve == elliptic.P256()) && !(k == P384 && key.Curve == elliptic.P384()) {
			return nil, fmt.Errorf("%w: an ECC %s key does not fit %s", ErrKind, key.Params().Name, k)
		}
		point, err := key.Bytes() // checks that the point is on the curve
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrWeak, err)
		}
		half := (len(point) - 1) / 2
		pub.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{
			X: tpm2.TPM2BECCParameter{Buffer: point[1 : 1+half]},
			Y: tpm2.TPM2BECCParameter{Buffer: point[1+half:]},
		})
	default:
		return nil, fmt.Errorf("%w: key type %T", ErrKind, key)
	}
	return &pub, nil
}
