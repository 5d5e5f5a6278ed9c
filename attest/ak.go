package attest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"fmt"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest/tpmwire"
)

const coordinateSize = 32 // of P-256

// AKTemplate is the public area of the attestation key: a restricted ECDSA
// P-256 signing key that cannot leave its TPM. With AdminWithPolicy clear it
// activates with its empty password.
func AKTemplate() tpm2.TPMTPublic { return akPublic(nil, nil) }

func akPublic(x, y []byte) tpm2.TPMTPublic {
	return tpm2.TPMTPublic{
		Type:    tpm2.TPMAlgECC,
		NameAlg: tpm2.TPMAlgSHA256,
		ObjectAttributes: tpm2.TPMAObject{
			FixedTPM: true, FixedParent: true, SensitiveDataOrigin: true,
			UserWithAuth: true, NoDA: true, Restricted: true, SignEncrypt: true,
		},
		Parameters: tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{
			Scheme: tpm2.TPMTECCScheme{
				Scheme: tpm2.TPMAlgECDSA,
				Details: tpm2.NewTPMUAsymScheme(tpm2.TPMAlgECDSA,
					&tpm2.TPMSSigSchemeECDSA{HashAlg: tpm2.TPMAlgSHA256}),
			},
			CurveID: tpm2.TPMECCNistP256,
		}),
		Unique: tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{
			X: tpm2.TPM2BECCParameter{Buffer: x},
			Y: tpm2.TPM2BECCParameter{Buffer: y},
		}),
	}
}

// attestationKey is an AK whose public area is exactly the template.
type attestationKey struct {
	name []byte
	key  *ecdsa.PublicKey
}

// parseAK compares the public area byte for byte with the template and the
// point in it. There is no looking at attributes one by one.
func parseAK(public []byte) (*attestationKey, error) {
	pub, err := tpmwire.Read[tpm2.TPMTPublic](public)
	if err != nil {
		return nil, fmt.Errorf("public area: %w", err)
	}
	point, err := pub.Unique.ECC()
	if err != nil {
		return nil, fmt.Errorf("public area: %w", err)
	}
	x, y := point.X.Buffer, point.Y.Buffer
	if len(x) != coordinateSize || len(y) != coordinateSize {
		return nil, fmt.Errorf("coordinates of %d and %d bytes, want %d", len(x), len(y), coordinateSize)
	}
	want := akPublic(x, y)
	if !bytes.Equal(tpm2.Marshal(want), public) {
		return nil, fmt.Errorf("public area is not the attestation key template (a restricted, TPM-generated, fixed ECDSA P-256 key with SHA-256 and no policy)")
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	if err != nil {
		return nil, fmt.Errorf("point: %w", err)
	}
	name, err := tpm2.ObjectName(&want)
	if err != nil {
		return nil, fmt.Errorf("name: %w", err)
	}
	return &attestationKey{name: name.Buffer, key: key}, nil
}

// AKName is the TPM's name of an attestation key. It fails for a public area
// that is not exactly the template.
func AKName(public []byte) ([]byte, error) {
	ak, err := parseAK(public)
	if err != nil {
		return nil, err
	}
	return ak.name, nil
}
