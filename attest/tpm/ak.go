package tpm

import (
	"context"
	"fmt"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"

	"portcullis/attest"
)

// AK is a fresh attestation key below the EK, loaded in the TPM. It signs only
// while a register holds the value it was made for.
type AK struct {
	k      *Keys
	handle tpm2.NamedHandle
	public []byte
	// private is TPM2B_PRIVATE without its size: wrapped by the EK.
	private []byte
	pcr     int
	closed  bool
}

// maxAKTries bounds how often an AK is created again because its coordinates have leading zeros that some TPMs leave out.
const maxAKTries = 4

// NewAK makes a key that is usable only while the register of the SHA-256 bank
// holds value. Close must be called.
func (k *Keys) NewAK(ctx context.Context, pcr int, value []byte) (*AK, error) {
	policy := attest.PCRPolicy(pcr, value)
	var lastErr error
	for range maxAKTries {
		created, err := tpm2.Create{
			ParentHandle: k.ek.auth(), InPublic: tpm2.New2B(attest.AKTemplate(policy)),
		}.Execute(k.t.with(ctx))
		if err != nil {
			return nil, explain("create an attestation key", err)
		}
		public := created.OutPublic.Bytes()
		if _, lastErr = attest.AKName(public, policy); lastErr != nil {
			continue
		}
		loaded, err := tpm2.Load{
			ParentHandle: k.ek.auth(), InPrivate: created.OutPrivate, InPublic: created.OutPublic,
		}.Execute(k.t.with(ctx))
		if err != nil {
			return nil, explain("load an attestation key", err)
		}
		return &AK{k: k, handle: tpm2.NamedHandle{Handle: loaded.ObjectHandle, Name: loaded.Name}, public: public, private: created.OutPrivate.Buffer, pcr: pcr}, nil
	}
	return nil, fmt.Errorf("TPM: create an attestation key: %w: %w", ErrBroken, lastErr)
}

// Public is the TPMT_PUBLIC of the key.
func (a *AK) Public() []byte { return a.public }

// Name is the TPM's name of the key.
func (a *AK) Name() []byte { return a.handle.Name.Buffer }

// Close flushes the key, once. It works after the caller's context has ended.
func (a *AK) Close(ctx context.Context) error {
	if a.closed {
		return nil
	}
	a.closed = true
	return a.k.t.flush(context.WithoutCancel(ctx), a.handle.Handle)
}

// signer authorises use of the key: its register must hold its value.
func (a *AK) signer() tpm2.AuthHandle {
	return whileRegister(a.handle, a.pcr)
}

// whileRegister authorises use of a key whose policy is about a register.
func whileRegister(key tpm2.NamedHandle, pcr int) tpm2.AuthHandle {
	policy := func(t transport.TPM, session tpm2.TPMISHPolicy, _ tpm2.TPM2BNonce) error {
		_, err := tpm2.PolicyPCR{PolicySession: session, Pcrs: selection([]int{pcr})}.Execute(t)
		return err
	}
	return tpm2.AuthHandle{Handle: key.Handle, Name: key.Name, Auth: tpm2.Policy(tpm2.TPMAlgSHA256, 16, policy)}
}

// admin authorises what needs the key's empty password.
func (a *AK) admin() tpm2.AuthHandle {
	return tpm2.AuthHandle{Handle: a.handle.Handle, Name: a.handle.Name, Auth: tpm2.PasswordAuth(nil)}
}

// Activate recovers the secret of a credential; the TPM does so only if it
// holds the EK and the AK the credential was made for. The answer is encrypted
// on its way from the TPM.
func (a *AK) Activate(ctx context.Context, blob, seed []byte) ([]byte, error) {
	rsp, err := tpm2.ActivateCredential{
		ActivateHandle: a.admin(),
		KeyHandle:      a.k.ek.auth(),
		CredentialBlob: tpm2.TPM2BIDObject{Buffer: blob},
		Secret:         tpm2.TPM2BEncryptedSecret{Buffer: seed},
	}.Execute(a.k.t.with(ctx), a.k.ek.session(a.k.ek.encryption()))
	if err != nil {
		return nil, explain("activate the credential", err)
	}
	return rsp.CertInfo.Buffer, nil
}

// Certified is a TPMS_ATTEST and its TPMT_SIGNATURE.
type Certified struct {
	Attest    []byte
	Signature []byte
}

// Key is a key that can be certified: its holder consents with its empty password.
type Key interface{ admin() tpm2.AuthHandle }

// Certify signs that the TPM holds another key.
func (a *AK) Certify(ctx context.Context, other Key, qualifying []byte) (*Certified, error) {
	rsp, err := tpm2.Certify{
		ObjectHandle:   other.admin(),
		SignHandle:     a.signer(),
		QualifyingData: tpm2.TPM2BData{Buffer: qualifying},
		InScheme:       tpm2.TPMTSigScheme{Scheme: tpm2.TPMAlgNull},
	}.Execute(a.k.t.with(ctx))
	if err != nil {
		return nil, explain("certify a key", err)
	}
	return &Certified{Attest: rsp.CertifyInfo.Bytes(), Signature: tpm2.Marshal(rsp.Signature)}, nil
}
