package tpm

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"

	"portcullis/attest"
	"portcullis/attest/tpmwire"
)

// StoredKey is a host's key as it may be kept: private is sealed by this TPM, and
// of no use elsewhere.
type StoredKey struct {
	Public  []byte `json:"public"`  // TPMT_PUBLIC
	Private []byte `json:"private"` // TPM2B_PRIVATE without its size
	PCR     int    `json:"pcr"`     // register it needs
	Reset   uint32 `json:"reset"`   // of the boot that it needs
	Restart uint32 `json:"restart"` // the same
}

func (k *StoredKey) boot() attest.Boot { return attest.Boot{Reset: k.Reset, Restart: k.Restart} }

// HostKey is a host's key, loaded: it signs any digest in the boot it was made in, while
// its register holds the value it was made for.
type HostKey struct {
	t      *TPM
	handle tpm2.NamedHandle
	stored StoredKey
}

// NewHostKey makes a key below the storage root key of the owner's hierarchy that is
// usable only in this boot, while the register of the SHA-256 bank holds value. It takes two of the
// three places for objects of a TPM without resource manager. Close must be called.
func (t *TPM) NewHostKey(ctx context.Context, pcr int, value []byte) (*HostKey, error) {
	boot, err := t.Boot(ctx)
	if err != nil {
		return nil, err
	}
	policy := attest.HostKeyPolicy(pcr, value, boot)
	return t.belowStorageRoot(ctx, func(root tpm2.AuthHandle) (*HostKey, error) {
		var lastErr error
		for range maxAKTries {
			created, err := tpm2.Create{
				ParentHandle: root, InPublic: tpm2.New2B(attest.HostKeyTemplate(policy)),
			}.Execute(t.with(ctx))
			if err != nil {
				return nil, explain("create the host's key", err)
			}
			k := StoredKey{Public: created.OutPublic.Bytes(), Private: created.OutPrivate.Buffer, PCR: pcr, Reset: boot.Reset, Restart: boot.Restart}
			if _, lastErr = attest.HostKeyName(k.Public, policy); lastErr == nil {
				return t.load(ctx, root, k)
			}
		}
		return nil, fmt.Errorf("TPM: create the host's key: %w: %w", ErrBroken, lastErr)
	})
}

// LoadHostKey loads a key that was kept. Close must be called.
func (t *TPM) LoadHostKey(ctx context.Context, k StoredKey) (*HostKey, error) {
	return t.belowStorageRoot(ctx, func(root tpm2.AuthHandle) (*HostKey, error) { return t.load(ctx, root, k) })
}

func (t *TPM) load(ctx context.Context, root tpm2.AuthHandle, k StoredKey) (*HostKey, error) {
	loaded, err := tpm2.Load{
		ParentHandle: root, InPrivate: tpm2.TPM2BPrivate{Buffer: k.Private}, InPublic: tpm2.BytesAs2B[tpm2.TPMTPublic](k.Public),
	}.Execute(t.with(ctx))
	if errors.Is(err, tpm2.TPMRCIntegrity) {
		return nil, fmt.Errorf("TPM: load the host's key: %w (%v)", ErrForeignKey, err)
	}
	if err != nil {
		return nil, explain("load the host's key", err)
	}
	return &HostKey{t: t, handle: tpm2.NamedHandle{Handle: loaded.ObjectHandle, Name: loaded.Name}, stored: k}, nil
}

// belowStorageRoot creates the storage root key from its template, as TCG's provisioning guidance says, for as long as do
// takes. It does not use a persistent one, because any user of the TPM can put another key there.
func (t *TPM) belowStorageRoot(ctx context.Context, do func(tpm2.AuthHandle) (*HostKey, error)) (*HostKey, error) {
	rsp, err := tpm2.CreatePrimary{
		PrimaryHandle: tpm2.AuthHandle{Handle: tpm2.TPMRHOwner, Auth: tpm2.PasswordAuth(nil)},
		InPublic:      tpm2.New2B(tpm2.ECCSRKTemplate),
	}.Execute(t.with(ctx))
	if errors.Is(err, tpm2.TPMRCBadAuth) || errors.Is(err, tpm2.TPMRCAuthFail) {
		return nil, fmt.Errorf("TPM: create the storage root key: %w (%v)", ErrOwnerAuth, err)
	}
	if err != nil {
		return nil, explain("create the storage root key", err)
	}
	k, err := do(tpm2.AuthHandle{Handle: rsp.ObjectHandle, Name: rsp.Name, Auth: tpm2.PasswordAuth(nil)})
	if flushed := t.flush(context.WithoutCancel(ctx), rsp.ObjectHandle); flushed != nil {
		if k != nil {
			flushed = errors.Join(flushed, k.Close(ctx))
		}
		return nil, errors.Join(err, flushed)
	}
	return k, err
}

// Stored returns the key to be kept.
func (k *HostKey) Stored() StoredKey { return k.stored }

// Name is the TPM's name of the key.
func (k *HostKey) Name() []byte { return k.handle.Name.Buffer }

// Close flushes the key. It works after the caller's context has ended.
func (k *HostKey) Close(ctx context.Context) error {
	return k.t.flush(context.WithoutCancel(ctx), k.handle.Handle)
}

// inBoot authorises use of a key whose policy is about a register and a boot.
func inBoot(key tpm2.NamedHandle, pcr int, b attest.Boot) tpm2.AuthHandle {
	policy := func(t transport.TPM, session tpm2.TPMISHPolicy, _ tpm2.TPM2BNonce) error {
		if _, err := (tpm2.PolicyPCR{PolicySession: session, Pcrs: selection([]int{pcr})}).Execute(t); err != nil {
			return err
		}
		return policyCounterTimer(t, session, b)
	}
	return tpm2.AuthHandle{Handle: key.Handle, Name: key.Name, Auth: tpm2.Policy(tpm2.TPMAlgSHA256, 16, policy)}
}

// policyCounterTimer is TPM2_PolicyCounterTimer (TPM 2.0 part 3, 23.10) of the counts of a
// boot, which the library has not.
func policyCounterTimer(t transport.TPM, session tpm2.TPMISHPolicy, b attest.Boot) error {
	operand, offset := attest.BootCounts(b)
	body := binary.BigEndian.AppendUint32(nil, uint32(session))
	body = binary.BigEndian.AppendUint16(body, uint16(len(operand)))
	body = append(body, operand...)
	body = binary.BigEndian.AppendUint16(body, offset)
	body = binary.BigEndian.AppendUint16(body, uint16(tpm2.TPMEOEq))
	const header = 10 // tag, size, code, in command and response
	cmd := binary.BigEndian.AppendUint16(nil, uint16(tpm2.TPMSTNoSessions))
	cmd = binary.BigEndian.AppendUint32(cmd, uint32(header+len(body)))
	cmd = binary.BigEndian.AppendUint32(cmd, uint32(tpm2.TPMCCPolicyCounterTimer))
	rsp, err := t.Send(append(cmd, body...))
	if err != nil {
		return err
	}
	if len(rsp) != header || binary.BigEndian.Uint32(rsp[2:]) != header {
		return fmt.Errorf("%w: an answer of %d bytes", ErrBroken, len(rsp))
	}
	if rc := tpm2.TPMRC(binary.BigEndian.Uint32(rsp[6:])); rc != tpm2.TPMRCSuccess {
		return rc
	}
	return nil
}

func (k *HostKey) admin() tpm2.AuthHandle {
	return tpm2.AuthHandle{Handle: k.handle.Handle, Name: k.handle.Name, Auth: tpm2.PasswordAuth(nil)}
}

// Sign signs a SHA-256 digest and returns a TPMT_SIGNATURE.
func (k *HostKey) Sign(ctx context.Context, digest []byte) ([]byte, error) {
	sig, err := k.sign(ctx, digest)
	if err != nil {
		return nil, err
	}
	return tpm2.Marshal(*sig), nil
}

func (k *HostKey) sign(ctx context.Context, digest []byte) (*tpm2.TPMTSignature, error) {
	rsp, err := tpm2.Sign{
		KeyHandle: inBoot(k.handle, k.stored.PCR, k.stored.boot()), Digest: tpm2.TPM2BDigest{Buffer: digest},
		InScheme:   tpm2.TPMTSigScheme{Scheme: tpm2.TPMAlgNull},
		Validation: tpm2.TPMTTKHashCheck{Tag: tpm2.TPMSTHashCheck, Hierarchy: tpm2.TPMRHNull},
	}.Execute(k.t.with(ctx))
	if err != nil {
		return nil, explain("sign with the host's key", err)
	}
	return &rsp.Signature, nil
}

// Signer is a kept key for crypto/tls. It opens the TPM for each signature and not
// for longer, so that others can use it meanwhile.
type Signer struct {
	ctx    context.Context //nolint:containedctx // crypto.Signer has none
	device string
	key    StoredKey
	public *ecdsa.PublicKey
}

// NewSigner makes a Signer for a key in the TPM at device, as in Open. It signs until
// ctx ends.
func NewSigner(ctx context.Context, device string, k StoredKey) (*Signer, error) {
	pub, err := tpmwire.Read[tpm2.TPMTPublic](k.Public)
	if err != nil {
		return nil, fmt.Errorf("host's key: %w", err)
	}
	point, err := pub.Unique.ECC()
	if err != nil || pub.Type != tpm2.TPMAlgECC {
		return nil, errors.New("host's key: not an ECC key")
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), bytes.Join([][]byte{{4}, point.X.Buffer, point.Y.Buffer}, nil))
	if err != nil {
		return nil, fmt.Errorf("host's key: %w", err)
	}
	return &Signer{ctx: ctx, device: device, key: k, public: key}, nil
}

// Public implements crypto.Signer.
func (s *Signer) Public() crypto.PublicKey { return s.public }

// Sign implements crypto.Signer, for SHA-256 alone.
func (s *Signer) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) (_ []byte, err error) {
	if opts.HashFunc() != crypto.SHA256 || len(digest) != sha256.Size {
		return nil, fmt.Errorf("host's key: it signs SHA-256 and not %v", opts.HashFunc())
	}
	t, err := Open(s.ctx, s.device)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	k, err := t.LoadHostKey(s.ctx, s.key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.Close(s.ctx)) }()
	sig, err := k.sign(s.ctx, digest)
	if err != nil {
		return nil, err
	}
	ecc, err := sig.Signature.ECDSA()
	if err != nil {
		return nil, fmt.Errorf("TPM: signature of the host's key: %w: %v", ErrBroken, err)
	}
	return asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(ecc.SignatureR.Buffer), new(big.Int).SetBytes(ecc.SignatureS.Buffer)})
}
