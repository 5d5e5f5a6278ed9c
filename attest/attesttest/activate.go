package attesttest

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
)

// ErrIntegrity is what TPM_RC_INTEGRITY is to a TPM: the credential is not
// for this EK and this AK.
var ErrIntegrity = errors.New("credential integrity")

// Activate recovers the secret of a session as TPM2_ActivateCredential does
// for a P-256 EK (TPM 2.0 part 1, 24 and C.6).
func (h *Host) Activate(s *attest.Session) ([]byte, error) {
	seed, err := h.decapsulate(s.EncryptedSecret)
	if err != nil {
		return nil, err
	}
	name := h.AK1Name()
	if len(s.CredentialBlob) < 2+sha256.Size {
		return nil, fmt.Errorf("%w: blob of %d bytes", ErrIntegrity, len(s.CredentialBlob))
	}
	mac, enc := s.CredentialBlob[2:2+sha256.Size], s.CredentialBlob[2+sha256.Size:]
	m := hmac.New(sha256.New, tpm2.KDFa(crypto.SHA256, seed, "INTEGRITY", nil, nil, 256))
	m.Write(enc)
	m.Write(name)
	if !hmac.Equal(m.Sum(nil), mac) {
		return nil, ErrIntegrity
	}
	block, err := aes.NewCipher(tpm2.KDFa(crypto.SHA256, seed, "STORAGE", name, nil, 128))
	if err != nil {
		return nil, err
	}
	plain := make([]byte, len(enc))
	//nolint:staticcheck // SA1019: a TPM's credential cipher is CFB; integrity is checked above
	cipher.NewCFBDecrypter(block, make([]byte, aes.BlockSize)).XORKeyStream(plain, enc)
	d, err := tpm2.Unmarshal[tpm2.TPM2BDigest](plain)
	if err != nil {
		return nil, err
	}
	return d.Buffer, nil
}

// decapsulate derives the seed from the ephemeral point.
func (h *Host) decapsulate(encrypted []byte) ([]byte, error) {
	point, err := tpm2.Unmarshal[tpm2.TPMSECCPoint](encrypted)
	if err != nil {
		return nil, fmt.Errorf("encrypted seed: %w", err)
	}
	raw := append(append([]byte{4}, point.X.Buffer...), point.Y.Buffer...)
	ephemeral, err := ecdh.P256().NewPublicKey(raw)
	if err != nil {
		return nil, fmt.Errorf("encrypted seed: %w", err)
	}
	key, err := h.EK.ECDH()
	if err != nil {
		return nil, err
	}
	z, err := key.ECDH(ephemeral)
	if err != nil {
		return nil, err
	}
	ekX, _ := coordinates(&h.EK.PublicKey)
	return tpm2.KDFe(crypto.SHA256, z, "IDENTITY", point.X.Buffer, ekX, 256), nil
}
