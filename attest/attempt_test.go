package attest_test

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// attempt is one submission of evidence, and what a case may change in it.
// The functions are called in the order of the fields.
type attempt struct {
	*lab
	ch      *attest.Challenge
	session *attest.Session
	asIs    bool   // nothing more is measured
	swapped []byte // sent in place of the statement that was measured
	ev      *attest.Evidence
	exp     attest.Expected
	now     time.Time
}

// begin opens a session for what the host measured.
func (a *attempt) begin() (*attest.Challenge, *attest.Session) {
	a.t.Helper()
	req := a.host.Ask
	if !a.asIs {
		req = a.host.Request
	}
	ch, s, err := attest.Begin(rand.Reader, attesttest.Epoch, req(), a.host.Expected(), a.policy)
	if err != nil {
		a.t.Fatalf("begin: %v", err)
	}
	return ch, s
}

// sentStatement is the statement as the host has it.
func (a *attempt) sentStatement() []byte {
	a.t.Helper()
	b, err := a.host.Statement.Encode()
	if err != nil {
		a.t.Fatal(err)
	}
	return b
}

// measure makes the host measure bytes that need not be a valid statement.
func (a *attempt) measure(b []byte) {
	a.asIs = true
	a.host.MeasureBytes(b)
}

// measureAltered measures the host's statement after a change of its text.
func (a *attempt) measureAltered(old, new string) {
	a.t.Helper()
	b, err := a.host.Statement.Encode()
	if err != nil {
		a.t.Fatal(err)
	}
	altered := strings.Replace(string(b), old, new, 1)
	if altered == string(b) {
		a.t.Fatalf("statement has no %q", old)
	}
	a.measure([]byte(altered))
}

// alterSignature decodes, changes and encodes the signature.
func (a *attempt) alterSignature(change func(*tpm2.TPMSSignatureECC)) {
	a.t.Helper()
	sig, err := tpm2.Unmarshal[tpm2.TPMTSignature](a.ev.Signature)
	if err != nil {
		a.t.Fatal(err)
	}
	ecc, err := sig.Signature.ECDSA()
	if err != nil {
		a.t.Fatal(err)
	}
	change(ecc)
	a.ev.Signature = tpm2.Marshal(*sig)
}

// resign signs the quote bytes as they are now.
func (a *attempt) resign() {
	a.t.Helper()
	sig, err := attesttest.Sign(a.host.AK1, a.ev.Quote)
	if err != nil {
		a.t.Fatal(err)
	}
	a.ev.Signature = sig
}

func (a *attempt) setSignature(alg tpm2.TPMAlgID, u tpm2.TPMUSignature) {
	a.ev.Signature = tpm2.Marshal(tpm2.TPMTSignature{SigAlg: alg, Signature: u})
}

// quoteInfo replaces what the quote says about registers.
func quoteInfo(q *tpm2.TPMSAttest, sel tpm2.TPMLPCRSelection, digest []byte) {
	q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestQuote, &tpm2.TPMSQuoteInfo{
		PCRSelect: sel, PCRDigest: tpm2.TPM2BDigest{Buffer: digest},
	})
}

// selected quotes another selection with the digest of the right values.
func selected(sel tpm2.TPMLPCRSelection) func(*attempt, *tpm2.TPMSAttest) {
	return func(a *attempt, q *tpm2.TPMSAttest) {
		info, err := q.Attested.Quote()
		if err != nil {
			a.t.Fatal(err)
		}
		quoteInfo(q, sel, info.PCRDigest.Buffer)
	}
}

func selections(s ...tpm2.TPMLPCRSelection) (all tpm2.TPMLPCRSelection) {
	for _, l := range s {
		all.PCRSelections = append(all.PCRSelections, l.PCRSelections...)
	}
	return all
}
