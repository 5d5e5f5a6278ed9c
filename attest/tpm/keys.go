package tpm

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
	"portcullis/attest/ek"
)

// Keys are the EK and one fresh attestation key (AK), loaded in the TPM.
type Keys struct {
	t        *TPM
	ek       *endorsement
	ak       tpm2.NamedHandle
	akPublic []byte
}

// NewKeys creates the EK and an AK. The EK is the best of the given kinds, or
// of all: one with a certificate before one without. Close must be called.
func (t *TPM) NewKeys(ctx context.Context, kinds ...ek.Kind) (*Keys, error) {
	if len(kinds) == 0 {
		kinds = ek.Kinds()
	}
	e, err := t.endorse(ctx, kinds)
	if err != nil {
		return nil, err
	}
	k := &Keys{t: t, ek: e}
	if err := k.createAK(ctx); err != nil {
		return nil, errors.Join(err, t.flush(ctx, e.handle))
	}
	return k, nil
}

// maxAKTries bounds how often an AK is made anew because its coordinates have
// leading zeros that some TPMs leave out.
const maxAKTries = 4

func (k *Keys) createAK(ctx context.Context) error {
	var lastErr error
	for range maxAKTries {
		created, err := tpm2.Create{
			ParentHandle: k.ek.auth(), InPublic: tpm2.New2B(attest.AKTemplate()),
		}.Execute(k.t.with(ctx))
		if err != nil {
			return explain("create the attestation key", err)
		}
		public := created.OutPublic.Bytes()
		if _, lastErr = attest.AKName(public); lastErr != nil {
			continue
		}
		loaded, err := tpm2.Load{
			ParentHandle: k.ek.auth(), InPrivate: created.OutPrivate, InPublic: created.OutPublic,
		}.Execute(k.t.with(ctx))
		if err != nil {
			return explain("load the attestation key", err)
		}
		k.ak = tpm2.NamedHandle{Handle: loaded.ObjectHandle, Name: loaded.Name}
		k.akPublic = public
		return nil
	}
	return fmt.Errorf("TPM: create the attestation key: %w: %w", ErrBroken, lastErr)
}

// Claim names the EK to the service.
func (k *Keys) Claim() attest.EKClaim { return k.ek.claim }

// EKDigest is how inventory names this TPM: hex SHA-256 of the EK's
// SubjectPublicKeyInfo.
func (k *Keys) EKDigest() string { return k.ek.digest }

// HasCertificate reports whether the TPM holds a certificate for the EK.
func (k *Keys) HasCertificate() bool { return len(k.ek.claim.Certificates) > 0 }

// AKPublic is the TPMT_PUBLIC of the attestation key.
func (k *Keys) AKPublic() []byte { return k.akPublic }

// AKName is the TPM's name of the attestation key.
func (k *Keys) AKName() []byte { return k.ak.Name.Buffer }

// Activate recovers the secret of a credential; the TPM does so only if it
// holds the EK and the AK the credential was made for. The answer is encrypted
// on its way from the TPM.
func (k *Keys) Activate(ctx context.Context, blob, seed []byte) ([]byte, error) {
	rsp, err := tpm2.ActivateCredential{
		ActivateHandle: tpm2.AuthHandle{Handle: k.ak.Handle, Name: k.ak.Name, Auth: tpm2.PasswordAuth(nil)},
		KeyHandle:      k.ek.auth(),
		CredentialBlob: tpm2.TPM2BIDObject{Buffer: blob},
		Secret:         tpm2.TPM2BEncryptedSecret{Buffer: seed},
	}.Execute(k.t.with(ctx), k.ek.session(k.ek.encryption()))
	if err != nil {
		return nil, explain("activate the credential", err)
	}
	return rsp.CertInfo.Buffer, nil
}

// Close flushes both keys. It works after the caller's context has ended.
func (k *Keys) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	return errors.Join(k.t.flush(ctx, k.ak.Handle), k.t.flush(ctx, k.ek.handle))
}
