package attest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest/tpmwire"
)

const coordinateSize = 32 // of P-256

// AKTemplate is the public area of an attestation key: a restricted ECDSA P-256
// signing key that cannot leave its TPM, and signs only under policy. With
// AdminWithPolicy clear it activates with its empty password.
func AKTemplate(policy []byte) tpm2.TPMTPublic { return signingKey(true, policy, nil, nil) }

// signingKey is the public area of a P-256 key. One that is restricted signs only
// what the TPM itself made.
func signingKey(restricted bool, policy, x, y []byte) tpm2.TPMTPublic {
	return tpm2.TPMTPublic{
		Type:    tpm2.TPMAlgECC,
		NameAlg: tpm2.TPMAlgSHA256,
		ObjectAttributes: tpm2.TPMAObject{
			FixedTPM: true, FixedParent: true, SensitiveDataOrigin: true,
			NoDA: true, Restricted: restricted, SignEncrypt: true,
		},
		AuthPolicy: tpm2.TPM2BDigest{Buffer: policy},
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
func parseAK(public, policy []byte) (*attestationKey, error) {
	k, err := parseKey(true, public, policy)
	if errors.Is(err, errTemplate) {
		err = fmt.Errorf("public area is not the attestation key template (a restricted, TPM-generated, fixed ECDSA P-256 key with SHA-256, and the policy %x)", policy)
	}
	return k, err
}

var errTemplate = errors.New("public area is not the template")

func parseKey(restricted bool, public, policy []byte) (*attestationKey, error) {
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
	want := signingKey(restricted, policy, x, y)
	if !bytes.Equal(tpm2.Marshal(want), public) {
		return nil, errTemplate
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

// AKName is the TPM's name of an attestation key with a policy. It fails for a
// public area that is not exactly the template.
func AKName(public, policy []byte) ([]byte, error) {
	ak, err := parseAK(public, policy)
	if err != nil {
		return nil, err
	}
	return ak.name, nil
}

// PCRPolicy is the policy digest of a key that may be used only while a
// register of the SHA-256 bank holds a value (TPM 2.0 part 3, TPM2_PolicyPCR).
func PCRPolicy(pcr int, value []byte) []byte {
	sum := sha256.Sum256(value)
	selection := tpm2.Marshal(tpm2.TPMLPCRSelection{PCRSelections: []tpm2.TPMSPCRSelection{
		{Hash: tpm2.TPMAlgSHA256, PCRSelect: pcrMask([]int{pcr})},
	}})
	h := sha256.New()
	h.Write(make([]byte, digestSize))
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(tpm2.TPMCCPolicyPCR)))
	h.Write(selection)
	h.Write(sum[:])
	return h.Sum(nil)
}

// keyPair is the two attestation keys of a session.
type keyPair struct{ open, capped *attestationKey }

// parsePair rebuilds the policies of both keys from what was measured.
func parsePair(ak1, ak2 []byte, agentPCR int, open []byte) (keyPair, error) {
	one, err := parseAK(ak1, PCRPolicy(agentPCR, open))
	if err != nil {
		return keyPair{}, fmt.Errorf("first key, for PCR %d with what was measured: %w", agentPCR, err)
	}
	two, err := parseAK(ak2, PCRPolicy(agentPCR, CappedPCRValue(open)))
	if err != nil {
		return keyPair{}, fmt.Errorf("second key, for PCR %d capped: %w", agentPCR, err)
	}
	return keyPair{one, two}, nil
}
