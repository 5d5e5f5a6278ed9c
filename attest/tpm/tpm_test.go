package tpm_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gotpm "github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"

	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/ek"
	"portcullis/attest/reference"
	"portcullis/attest/tpm"
	"portcullis/attest/tpm/tpmtest"
)

func open(t *testing.T, dev *tpmtest.TPM) *tpm.TPM {
	t.Helper()
	d, err := tpm.Open(t.Context(), dev.Device())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// site is the service's side for one TPM.
type site struct {
	policy  *attest.Policy
	exp     attest.Expected
	channel []byte
	log     func() []byte // of the present boot

	// sealed is called once the seal was accepted; may be nil.
	sealed func(*tpm.Keys, *tpm.Pair, *attest.Session, *attest.SealChallenge)
}

func newSite(t *testing.T, dev *tpmtest.TPM, statement *attest.Statement) *site {
	t.Helper()
	s := &site{policy: attest.DefaultPolicy(), channel: make([]byte, attest.ExporterSize), log: dev.EventLog}
	roots, err := dev.RootsPEM()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.policy.AddCertificates(roots); err != nil {
		t.Fatal(err)
	}
	s.exp = attest.Expected{Host: statement.Host, EKDigest: dev.EKDigest(), Class: reference.DefaultClass, References: attesttest.References()}
	for _, h := range statement.HCAs {
		x := attest.ExpectedHCA{NodeGUID: h.NodeGUID, SystemImageGUID: h.SystemImageGUID}
		for _, p := range h.Ports {
			x.Ports = append(x.Ports, attest.ExpectedPort{Num: p.Num, GUID: p.GUID})
		}
		s.exp.HCAs = append(s.exp.HCAs, x)
	}
	return s
}

func sampleStatement(t *testing.T) attest.Statement {
	t.Helper()
	v, err := attesttest.NewVendor("unused")
	if err != nil {
		t.Fatal(err)
	}
	h, err := v.NewHost("compute-01", 1)
	if err != nil {
		t.Fatal(err)
	}
	h.Statement.CollectedAt = time.Now().UTC().Truncate(time.Second)
	return h.Statement
}

// attestOnce runs the whole protocol with a real TPM, without the seal unless requested.
func attestOnce(t *testing.T, d *tpm.TPM, s *site, statement *attest.Statement, earlier [][]byte, seal bool, kinds ...ek.Kind) (attest.Verdict, [][]byte) {
	t.Helper()
	ctx := t.Context()
	keys, err := d.NewKeys(ctx, kinds...)
	must(t, err)
	defer func() { must(t, keys.Close(ctx)) }()
	s.exp.EKDigest = keys.EKDigest()
	body, err := statement.Encode()
	must(t, err)
	start := attest.Start{Agent: statement.Agent, Image: statement.Image}
	if len(earlier) == 0 {
		must(t, keys.Extend(ctx, s.policy.AgentPCR, start.Digest()))
	}
	sum := attest.StatementDigest(body)
	must(t, keys.Extend(ctx, s.policy.AgentPCR, sum))
	digests := append(earlier[:len(earlier):len(earlier)], sum)
	pair, err := keys.NewPair(ctx, s.policy.AgentPCR, attest.OpenPCRValue(start, digests))
	must(t, err)
	defer func() { must(t, pair.Close(ctx)) }()
	ch, session, err := attest.Begin(rand.Reader, time.Now(), &attest.SessionRequest{
		Host: statement.Host, EK: keys.Claim(), Start: start, StatementDigests: digests,
		AK1Public: pair.AK1.Public(), AK2Public: pair.AK2.Public(),
	}, s.exp, s.policy)
	must(t, err)
	secret, err := pair.AK1.Activate(ctx, session.CredentialBlob, session.EncryptedSecret)
	must(t, err)
	q := attest.QualifyingData(session.ID, session.Nonce, sum, s.channel, pair.AK1.Name())
	quote, err := pair.AK1.Quote(ctx, session.PCRs, q)
	if err != nil {
		return attest.Verdict{Code: "agent", Detail: err.Error()}, digests
	}
	certified, err := pair.AK1.Certify(ctx, pair.AK2, q)
	must(t, err)
	ev := &attest.Evidence{
		Statement: body, Quote: quote.Attest, Signature: quote.Signature, PCRValues: quote.Values,
		Certify: certified.Attest, CertifySignature: certified.Signature, EventLog: s.log(),
	}
	ev.Proof = attest.Proof(secret, session.ID, ev)
	v := attest.Verify(time.Now(), ch, s.channel, ev, s.exp, s.policy)
	if v.OK && seal {
		sealOnce(t, s, keys, pair, session, ch, &v)
	}
	return v, digests
}

// sealOnce caps the register and seals; each key signs only in its own state.
func sealOnce(t *testing.T, s *site, keys *tpm.Keys, pair *tpm.Pair, session *attest.Session, ch *attest.Challenge, v *attest.Verdict) {
	t.Helper()
	ctx := t.Context()
	sc, seal, err := attest.BeginSeal(rand.Reader, time.Now(), ch, &v.Facts, s.policy)
	must(t, err)
	q := attest.SealQualifyingData(session.ID, seal.Nonce, sc.Statement, s.channel, pair.AK2.Name())
	if _, err := pair.AK2.Quote(ctx, session.PCRs, q); !errors.Is(err, tpm.ErrPolicy) {
		t.Errorf("second key before the cap: got %v, want %v", err, tpm.ErrPolicy)
	}
	must(t, keys.Extend(ctx, s.policy.AgentPCR, attest.HandOverDigest()))
	if _, err := pair.AK1.Quote(ctx, session.PCRs, q); !errors.Is(err, tpm.ErrPolicy) {
		t.Errorf("first key after the cap: got %v, want %v", err, tpm.ErrPolicy)
	}
	quote, err := pair.AK2.Quote(ctx, session.PCRs, q)
	must(t, err)
	boot, _, refusal := attest.VerifySeal(time.Now(), sc, s.channel, &attest.SealEvidence{Quote: quote.Attest, Signature: quote.Signature}, s.policy)
	if refusal != nil || !boot.Same(v.Facts.Boot) {
		t.Errorf("seal: got boot %v, %v; want boot %v", boot, refusal, v.Facts.Boot)
	}
	if s.sealed != nil {
		s.sealed(keys, pair, session, sc)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestProtocol attests with each EK template, twice in one boot and again
// after a power cycle.
func TestProtocol(t *testing.T) {
	t.Parallel()
	for _, kind := range ek.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			dev := tpmtest.New(t, tpmtest.Options{P256: true})
			statement := sampleStatement(t)
			s := newSite(t, dev, &statement)
			d := open(t, dev)
			first, digests := attestOnce(t, d, s, &statement, nil, false, kind)
			if !first.OK {
				t.Fatalf("first statement: %s: %s", first.Code, first.Detail)
			}
			statement.HCAs[0].Firmware.ReleaseDate = "2025-01-05"
			if v, _ := attestOnce(t, d, s, &statement, digests, true, kind); !v.OK {
				t.Fatalf("second statement: %s: %s", v.Code, v.Detail)
			}
			must(t, d.Close())
			must(t, dev.PowerCycle(t.Context()))
			after, _ := attestOnce(t, open(t, dev), s, &statement, nil, true, kind)
			if !after.OK {
				t.Fatalf("after a power cycle: %s: %s", after.Code, after.Detail)
			}
			if got, want := after.Facts.Boot.Reset, first.Facts.Boot.Reset+1; got != want {
				t.Errorf("got reset count %d, want %d", got, want)
			}
		})
	}
}

// TestForeignRecord shows that an undeclared measurement is found.
func TestForeignRecord(t *testing.T) {
	t.Parallel()
	dev := tpmtest.New(t, tpmtest.Options{})
	d := open(t, dev)
	keys, err := d.NewKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	must(t, keys.Extend(t.Context(), attest.DefaultAgentPCR, make([]byte, 32)))
	must(t, keys.Close(t.Context()))
	statement := sampleStatement(t)
	v, _ := attestOnce(t, d, newSite(t, dev, &statement), &statement, nil, false)
	if !strings.Contains(v.Detail, tpm.ErrPolicy.Error()) {
		t.Errorf("got %q, %q; want the TPM to refuse the quote", v.Code, v.Detail)
	}
}

// TestNothingAfterHandOver is a tenant with root, in the boot in which the host
// was handed over to him: neither TPM nor service lets him attest.
func TestNothingAfterHandOver(t *testing.T) {
	t.Parallel()
	dev := tpmtest.New(t, tpmtest.Options{})
	statement := sampleStatement(t)
	s, d := newSite(t, dev, &statement), open(t, dev)
	v, digests := attestOnce(t, d, s, &statement, nil, true)
	if !v.OK {
		t.Fatalf("refused: %s: %s", v.Code, v.Detail)
	}
	// The same evidence again: the key of the open state does not sign any more.
	ctx := t.Context()
	keys, err := d.NewKeys(ctx)
	must(t, err)
	start := attest.Start{Agent: statement.Agent, Image: statement.Image}
	pcr, open := s.policy.AgentPCR, attest.OpenPCRValue(start, digests)
	pair, err := keys.NewPair(ctx, pcr, open)
	must(t, err)
	if _, err := pair.AK1.Quote(ctx, []int{pcr}, make([]byte, 32)); !errors.Is(err, tpm.ErrPolicy) {
		t.Errorf("key of the open state: got %v, want %v", err, tpm.ErrPolicy)
	}
	must(t, pair.Close(ctx))
	// The hand-over as one more statement: the TPM would sign over what the
	// register then holds, the service sees through it.
	more := append(digests[:len(digests):len(digests)], attest.HandOverDigest())
	capped := attest.OpenPCRValue(start, more)
	pair, err = keys.NewPair(ctx, pcr, capped)
	must(t, err)
	if _, err := pair.AK1.Quote(ctx, []int{pcr}, make([]byte, 32)); err != nil {
		t.Errorf("a key for the capped register: %v", err)
	}
	_, _, err = attest.Begin(rand.Reader, time.Now(), &attest.SessionRequest{
		Host: statement.Host, EK: keys.Claim(), Start: start, StatementDigests: more,
		AK1Public: pair.AK1.Public(), AK2Public: pair.AK2.Public(),
	}, s.exp, s.policy)
	if r, ok := errors.AsType[*attest.Refusal](err); !ok || r.Code != attest.ReasonAgentPCR {
		t.Errorf("hand-over among the statements: got %v, want %s", err, attest.ReasonAgentPCR)
	}
	must(t, pair.Close(ctx))
	must(t, keys.Close(ctx))
	must(t, d.Close())
	// The register does not come back from Linux, which has locality 0.
	raw, err := linuxudstpm.Open(dev.Device()[len("unix:"):])
	must(t, err)
	defer raw.Close()
	_, err = gotpm.PCRReset{PCRHandle: gotpm.AuthHandle{Handle: gotpm.TPMHandle(pcr), Auth: gotpm.PasswordAuth(nil)}}.Execute(raw)
	if !errors.Is(err, gotpm.TPMRCLocality) {
		t.Errorf("reset of PCR %d: got %v, want %v", pcr, err, gotpm.TPMRCLocality)
	}
}

// TestNothingIsLeft loads keys many times: a TPM without resource manager has
// three slots, so one leak would show.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	dev := tpmtest.New(t, tpmtest.Options{})
	d := open(t, dev)
	for range 5 {
		keys, err := d.NewKeys(t.Context())
		must(t, err)
		pair, err := keys.NewPair(t.Context(), attest.DefaultAgentPCR, make([]byte, 32))
		must(t, err)
		_, err = pair.AK1.Activate(t.Context(), []byte{0, 32}, []byte{1})
		if err == nil {
			t.Fatal("nonsense was activated")
		}
		must(t, pair.Close(t.Context()))
		must(t, keys.Close(t.Context()))
	}
	// A client that dies leaves its objects; the next one clears them.
	_, err := d.NewKeys(t.Context())
	must(t, err)
	must(t, d.Close())
	for range 3 {
		d = open(t, dev)
		_, err := d.NewKeys(t.Context())
		must(t, err)
		must(t, d.Close())
	}
}

func TestWithoutCertificate(t *testing.T) {
	t.Parallel()
	dev := tpmtest.New(t, tpmtest.Options{NoEKCert: true})
	d := open(t, dev)
	keys, err := d.NewKeys(t.Context())
	must(t, err)
	claim := keys.Claim()
	must(t, keys.Close(t.Context()))
	if keys.HasCertificate() || len(claim.Public) == 0 || claim.Kind != string(ek.P256) {
		t.Errorf("got claim %+v", claim)
	}
	e, err := ek.FromKey(ek.P256, claim.Public)
	if err != nil || e.Digest != dev.EKDigest() {
		t.Errorf("got %v, %v; want digest %s", e, err, dev.EKDigest())
	}
}

// TestForeignCredential shows that another TPM refuses a credential.
func TestForeignCredential(t *testing.T) {
	t.Parallel()
	ca := tpmtest.ShortDir(t)
	var keys [2]*tpm.Keys
	var aks [2]*tpm.AK
	for i := range keys {
		dev := tpmtest.New(t, tpmtest.Options{CA: ca, Name: fmt.Sprintf("host-%d", i)})
		k, err := open(t, dev).NewKeys(t.Context())
		must(t, err)
		keys[i] = k
		aks[i], err = k.NewAK(t.Context(), attest.DefaultAgentPCR, make([]byte, 32))
		must(t, err)
	}
	e, err := ek.FromCertificate(ek.Kind(keys[0].Claim().Kind), keys[0].Claim().Certificates[0])
	must(t, err)
	secret := bytes.Repeat([]byte{7}, 32)
	blob, seed, err := e.Credential(rand.Reader, aks[0].Name(), secret)
	must(t, err)
	got, err := aks[0].Activate(t.Context(), blob, seed)
	if err != nil || !bytes.Equal(got, secret) {
		t.Errorf("own credential: got %x, %v", got, err)
	}
	if _, err := aks[1].Activate(t.Context(), blob, seed); !errors.Is(err, tpm.ErrCredential) {
		t.Errorf("foreign credential: got %v, want %v", err, tpm.ErrCredential)
	}
	blob[len(blob)-1] ^= 1
	if _, err := aks[0].Activate(t.Context(), blob, seed); !errors.Is(err, tpm.ErrCredential) {
		t.Errorf("flipped bit: got %v, want %v", err, tpm.ErrCredential)
	}
}

// TestEndorsementPassword is what a former tenant can leave behind.
func TestEndorsementPassword(t *testing.T) {
	t.Parallel()
	dev := tpmtest.New(t, tpmtest.Options{})
	raw, err := linuxudstpm.Open(dev.Device()[len("unix:"):])
	must(t, err)
	_, err = gotpm.HierarchyChangeAuth{
		AuthHandle: gotpm.TPMRHEndorsement,
		NewAuth:    gotpm.TPM2BAuth{Buffer: []byte("tenant")},
	}.Execute(raw)
	must(t, err)
	must(t, raw.Close())
	_, err = open(t, dev).NewKeys(t.Context())
	if !errors.Is(err, tpm.ErrEndorsementAuth) {
		t.Errorf("got %v, want %v", err, tpm.ErrEndorsementAuth)
	}
}

// TestEKRebuilt shows for every kind that the certificate and the template determine the EK's public area, on which
// credentials rely.
func TestEKRebuilt(t *testing.T) {
	t.Parallel()
	dev := tpmtest.New(t, tpmtest.Options{P256: true})
	d := open(t, dev)
	for _, kind := range ek.Kinds() {
		keys, err := d.NewKeys(t.Context(), kind)
		must(t, err)
		if !keys.HasCertificate() {
			t.Errorf("%s: no certificate", kind)
		}
		must(t, keys.Close(t.Context()))
	}
	if b, err := hex.DecodeString(dev.EKDigest()); err != nil || len(b) != 32 {
		t.Errorf("got digest %q", dev.EKDigest())
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	dev := tpmtest.New(t, tpmtest.Options{})
	d := open(t, dev)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.NewKeys(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
