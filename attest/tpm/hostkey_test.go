package tpm_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"testing"

	gotpm "github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"

	"portcullis/attest"
	"portcullis/attest/tpm"
	"portcullis/attest/tpm/tpmtest"
)

// certifyHostKey has a key made and certified in the capped state, as the agent does,
// with a software TPM that has room for three objects.
func certifyHostKey(t *testing.T, s *site, keys *tpm.Keys, d *tpm.TPM, pair *tpm.Pair, session *attest.Session, sc *attest.SealChallenge) *tpm.HostKey {
	t.Helper()
	ctx := t.Context()
	must(t, pair.AK1.Close(ctx))
	must(t, keys.Close(ctx))
	key, err := d.NewHostKey(ctx, s.policy.AgentPCR, attest.CappedPCRValue(sc.Open))
	must(t, err)
	data := func(f func(session string, nonce, statement, channel, name []byte) []byte) []byte {
		return f(session.ID, sc.Nonce, sc.Statement, s.channel, key.Name())
	}
	certified, err := pair.AK2.Certify(ctx, key, data(attest.HostKeyQualifyingData))
	must(t, err)
	sum := sha256.Sum256(data(attest.HostKeyHolder))
	holder, err := key.Sign(ctx, sum[:])
	must(t, err)
	public, refusal := attest.VerifyHostKey(sc, s.channel, &attest.HostKey{
		Public: key.Stored().Public, Certify: certified.Attest, CertifySignature: certified.Signature, Holder: holder,
	})
	if refusal != nil {
		t.Fatalf("refused: %v", refusal)
	}
	signer, err := tpm.NewSigner(ctx, "", key.Stored())
	if err != nil || !public.Equal(signer.Public()) {
		t.Errorf("signer of another key: %v", err)
	}
	return key
}

// TestHostKey makes a host's key in a TPM, has it certified, and uses it as TLS
// would: in this boot and TPM, and in no other.
func TestHostKey(t *testing.T) {
	t.Parallel()
	dev := tpmtest.New(t, tpmtest.Options{P256: true})
	statement := sampleStatement(t)
	s, d, ctx := newSite(t, dev, &statement), open(t, dev), t.Context()
	var stored tpm.StoredKey
	var capped []byte
	s.sealed = func(keys *tpm.Keys, pair *tpm.Pair, session *attest.Session, sc *attest.SealChallenge) {
		key := certifyHostKey(t, s, keys, d, pair, session, sc)
		stored, capped = key.Stored(), attest.CappedPCRValue(sc.Open)
		must(t, key.Close(ctx))
	}
	v, digests := attestOnce(t, d, s, &statement, nil, true)
	if !v.OK {
		t.Fatalf("refused: %s: %s", v.Code, v.Detail)
	}
	measured := append([][]byte{attest.Start{Agent: statement.Agent, Image: statement.Image}.Digest()}, digests...)
	must(t, d.Close())
	signer, err := tpm.NewSigner(ctx, dev.Device(), stored)
	must(t, err)
	sum := sha256.Sum256([]byte("handshake"))
	for range 4 { // nothing may be left in the TPM, which has three places
		sig, err := signer.Sign(rand.Reader, sum[:], crypto.SHA256)
		if err != nil || !ecdsa.VerifyASN1(signer.Public().(*ecdsa.PublicKey), sum[:], sig) {
			t.Fatalf("signature %x, %v", sig, err)
		}
	}
	if _, err := signer.Sign(rand.Reader, make([]byte, 48), crypto.SHA384); err == nil {
		t.Error("it signs SHA-384")
	}
	other := tpmtest.New(t, tpmtest.Options{})
	elsewhere, err := tpm.NewSigner(ctx, other.Device(), stored)
	must(t, err)
	if _, err := elsewhere.Sign(rand.Reader, sum[:], crypto.SHA256); !errors.Is(err, tpm.ErrForeignKey) {
		t.Errorf("in another TPM: %v, want %v", err, tpm.ErrForeignKey)
	}
	must(t, dev.PowerCycle(ctx))
	if _, err := signer.Sign(rand.Reader, sum[:], crypto.SHA256); !errors.Is(err, tpm.ErrPolicy) {
		t.Errorf("in the next boot: %v, want %v", err, tpm.ErrPolicy)
	}
	// Root of the next boot knows what was measured into the register, and does so again.
	next := open(t, dev)
	keys, err := next.NewKeys(ctx)
	must(t, err)
	for _, digest := range append(measured, attest.HandOverDigest()) {
		must(t, keys.Extend(ctx, s.policy.AgentPCR, digest))
	}
	must(t, keys.Close(ctx))
	values, err := next.ReadPCRs(ctx, []int{s.policy.AgentPCR})
	must(t, err)
	must(t, next.Close())
	if !bytes.Equal(values[0], capped) {
		t.Fatalf("the register holds %x, it held %x", values[0], capped)
	}
	if _, err := signer.Sign(rand.Reader, sum[:], crypto.SHA256); !errors.Is(err, tpm.ErrPolicy) {
		t.Errorf("in the next boot, with the register filled as before: %v, want %v", err, tpm.ErrPolicy)
	}
}

// TestOwnerPassword is what a former tenant can leave behind.
func TestOwnerPassword(t *testing.T) {
	t.Parallel()
	dev := tpmtest.New(t, tpmtest.Options{})
	raw, err := linuxudstpm.Open(dev.Device()[len("unix:"):])
	must(t, err)
	_, err = gotpm.HierarchyChangeAuth{AuthHandle: gotpm.TPMRHOwner, NewAuth: gotpm.TPM2BAuth{Buffer: []byte("tenant")}}.Execute(raw)
	must(t, err)
	must(t, raw.Close())
	if _, err := open(t, dev).NewHostKey(t.Context(), attest.DefaultAgentPCR, make([]byte, 32)); !errors.Is(err, tpm.ErrOwnerAuth) {
		t.Errorf("got %v, want %v", err, tpm.ErrOwnerAuth)
	}
}
