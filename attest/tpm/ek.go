package tpm

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"

	"portcullis/attest"
	"portcullis/attest/ek"
)

// endorsement is the EK, loaded.
type endorsement struct {
	kind   ek.Kind
	handle tpm2.TPMHandle
	name   tpm2.TPM2BName
	public tpm2.TPMTPublic
	claim  attest.EKClaim
	digest string
}

// endorse creates the best EK the TPM has: one with a certificate before one
// without, then in the order of kinds.
func (t *TPM) endorse(ctx context.Context, kinds []ek.Kind) (*endorsement, error) {
	var errs []error
	for _, kind := range kinds {
		certs, err := t.certificates(ctx, kind)
		if err != nil {
			errs = append(errs, err)
		}
		if len(certs) == 0 {
			continue
		}
		e, err := t.createEK(ctx, kind, certs)
		if err == nil {
			return e, nil
		}
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	for _, kind := range kinds {
		e, err := t.createEK(ctx, kind, nil)
		if err == nil {
			return e, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNoEK, errors.Join(errs...))
}

// createEK creates the EK from its template. It does not use persistent handles, because TPM2_Clear removes them and any
// user of the TPM can put another key there. The key must be the one in the certificate: salted sessions rely on it.
func (t *TPM) createEK(ctx context.Context, kind ek.Kind, certs [][]byte) (*endorsement, error) {
	template, err := kind.Template()
	if err != nil {
		return nil, err
	}
	rsp, err := tpm2.CreatePrimary{
		PrimaryHandle: tpm2.AuthHandle{Handle: tpm2.TPMRHEndorsement, Auth: tpm2.PasswordAuth(nil)},
		InPublic:      tpm2.New2B(template),
	}.Execute(t.with(ctx))
	if err != nil {
		return nil, explain("create the EK "+string(kind), err)
	}
	e := &endorsement{kind: kind, handle: rsp.ObjectHandle, name: rsp.Name}
	if err := e.describe(rsp.OutPublic, certs); err != nil {
		return nil, errors.Join(err, t.flush(ctx, e.handle))
	}
	return e, nil
}

func (e *endorsement) describe(out tpm2.TPM2BPublic, certs [][]byte) error {
	public, err := out.Contents()
	if err != nil {
		return fmt.Errorf("TPM: EK %s: %w: %v", e.kind, ErrBroken, err)
	}
	e.public = *public
	key, err := tpm2.Pub(*public)
	if err != nil {
		return fmt.Errorf("TPM: EK %s: %w: %v", e.kind, ErrBroken, err)
	}
	spki, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return fmt.Errorf("TPM: EK %s: %w: %v", e.kind, ErrBroken, err)
	}
	if e.digest, err = ek.Digest(key); err != nil {
		return err
	}
	e.claim = attest.EKClaim{Kind: string(e.kind), Certificates: certs, Public: spki}
	if len(certs) == 0 {
		return nil
	}
	certified, err := ek.FromCertificate(e.kind, certs[0])
	if err != nil {
		return err
	}
	if certified.Digest != e.digest || hex.EncodeToString(certified.Name) != hex.EncodeToString(e.name.Buffer) {
		return fmt.Errorf("TPM: EK %s: %w", e.kind, ErrEKMismatch)
	}
	return nil
}

// auth authorises use of the EK: the endorsement hierarchy's (empty) password
// by policy. A policy is not subject to the dictionary attack lockout that a
// former tenant may have caused.
func (e *endorsement) auth() tpm2.AuthHandle {
	return tpm2.AuthHandle{Handle: e.handle, Name: e.name, Auth: tpm2.Policy(e.public.NameAlg, 16, e.policy)}
}

// policyA384 and policyC384 are the branches of PolicyB for SHA-384 (EK
// Credential Profile, B.6).
const (
	policyA384 = "8bbf2266537c171cb56e403c4dc1d4b64f432611dc386e6f532050c3278c930e143e8bb1133824ccb431053871c6db53"
	policyC384 = "d6032ce61f2fb3c240eb3cf6a33237ef2b6a16f4293c22b455e261cffd217ad5b4947c2d73e63005eed2dc2b3593d165"
)

func (e *endorsement) policy(t transport.TPM, session tpm2.TPMISHPolicy, nonce tpm2.TPM2BNonce) error {
	_, err := tpm2.PolicySecret{
		AuthHandle:    tpm2.AuthHandle{Handle: tpm2.TPMRHEndorsement, Auth: tpm2.PasswordAuth(nil)},
		PolicySession: session, NonceTPM: nonce,
	}.Execute(t)
	if err != nil || e.kind != ek.P384 {
		return err
	}
	_, err = tpm2.PolicyOr{PolicySession: session, PHashList: tpm2.TPMLDigest{Digests: []tpm2.TPM2BDigest{
		{Buffer: mustHex(policyA384)}, {Buffer: mustHex(policyC384)},
	}}}.Execute(t)
	return err
}

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic("tpm: " + err.Error())
	}
	return b
}

// session is an HMAC session salted to the EK: an attacker on the bus between CPU and TPM can neither alter the command
// nor, with options, read it.
func (e *endorsement) session(options ...tpm2.AuthOption) tpm2.Session {
	return tpm2.HMAC(e.public.NameAlg, 16, append(options, tpm2.Salted(e.handle, e.public))...)
}

// encryption hides the first answer parameter with the EK's own strength.
func (e *endorsement) encryption() tpm2.AuthOption {
	if e.kind == ek.P384 {
		return tpm2.AESEncryption(256, tpm2.EncryptOut)
	}
	return tpm2.AESEncryption(128, tpm2.EncryptOut)
}
