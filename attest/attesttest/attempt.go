package attesttest

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
)

// Attack says how evidence differs from valid evidence, and the reason for which it must be refused. Its functions are
// called in the order of the fields; nil ones do nothing.
type Attack struct {
	Name string
	Want attest.Reason
	// Host changes the host before it measures, or policy and inventory before
	// the session.
	Host func(*Attempt)
	// Quote changes the signed structure, which only a key outside a TPM could do.
	Quote func(*Attempt, *tpm2.TPMSAttest)
	// Certify does so for the second key's certification.
	Certify func(*Attempt, *tpm2.TPMSAttest)
	// Sent changes the evidence. The proof is then made again, because root on the host knows the activated secret.
	Sent func(*Attempt)
	// Wire changes what arrives, after the proof.
	Wire func(*Attempt)
	// Service changes what the service knows while the session is open. An attack
	// that has it cannot be sent.
	Service func(*Attempt)
}

// Attempt is one submission of evidence.
type Attempt struct {
	Vendor    *Vendor
	Host      *Host
	Policy    *attest.Policy
	Expected  attest.Expected
	Channel   []byte // exporter value of the connection
	Challenge *attest.Challenge
	Session   *attest.Session
	Evidence  *attest.Evidence
	Now       time.Time

	asIs    bool   // nothing more is measured
	swapped []byte // sent in place of the statement that was measured
}

// NewAttempt is a host and a site that trusts its TPM's vendor and demands
// everything.
func NewAttempt() *Attempt {
	v, err := NewVendor("Example TPM")
	a := &Attempt{Vendor: v, Policy: attest.DefaultPolicy(), Channel: make([]byte, attest.ExporterSize), Now: Epoch}
	a.fail(err)
	a.Host = a.NewHost("compute-01", 1)
	a.Expected = a.Host.Expected()
	a.fail(a.Policy.AddCertificates(v.PEM()))
	return a
}

// fail ends whatever goes on: a lab that cannot be built is no result of a test.
func (a *Attempt) fail(err error) {
	if err != nil {
		panic("attesttest: " + err.Error())
	}
}

// NewHost is another host of the vendor.
func (a *Attempt) NewHost(id string, n int) *Host {
	h, err := a.Vendor.NewHost(id, n)
	a.fail(err)
	return h
}

// Request measures the statements and asks for a session.
func (a *Attempt) Request() *attest.SessionRequest {
	if a.asIs {
		return a.Host.Ask()
	}
	return a.Host.Request()
}

// Begin opens a session in this process.
func (a *Attempt) Begin() error {
	var err error
	a.Challenge, a.Session, err = attest.Begin(rand.Reader, Epoch, a.Request(), a.Expected, a.Policy)
	return err
}

// Answer makes the evidence for the open session, wrong as the attack says.
func (k *Attack) Answer(a *Attempt) {
	secret, err := a.Host.Activate(a.Session)
	a.fail(err)
	a.Evidence, err = a.Host.Evidence(a.Session, a.Channel, secret, func(q, c *tpm2.TPMSAttest) {
		if k.Quote != nil {
			k.Quote(a, q)
		}
		if k.Certify != nil {
			k.Certify(a, c)
		}
	})
	a.fail(err)
	if k.Sent != nil {
		k.Sent(a)
		a.Evidence.Proof = attest.Proof(secret, a.Session.ID, a.Evidence)
	}
	if k.Wire != nil {
		k.Wire(a)
	}
}

// Verdict carries the attack out in this process.
func (k *Attack) Verdict() attest.Verdict {
	a := NewAttempt()
	if k.Host != nil {
		k.Host(a)
	}
	a.fail(a.Begin())
	k.Answer(a)
	if k.Service != nil {
		k.Service(a)
	}
	return attest.Verify(a.Now, a.Challenge, a.Channel, a.Evidence, a.Expected, a.Policy)
}

// Demanded are the registers that the default policy demands.
func Demanded() []int { return []int{0, 1, 2, 3, 4, 5, 6, 7, attest.DefaultAgentPCR} }

// statement is the statement as the host has it.
func (a *Attempt) statement() []byte {
	b, err := a.Host.Statement.Encode()
	a.fail(err)
	return b
}

// measure makes the host measure bytes that need not be a valid statement.
func (a *Attempt) measure(b []byte) {
	a.asIs = true
	a.Host.MeasureBytes(b)
}

// measureAltered measures the host's statement after a change of its text.
func (a *Attempt) measureAltered(old, new string) {
	b := string(a.statement())
	altered := strings.Replace(b, old, new, 1)
	if altered == b {
		panic("attesttest: statement has no " + old)
	}
	a.measure([]byte(altered))
}

// alterSignature decodes, changes and encodes the signature.
func (a *Attempt) alterSignature(change func(*tpm2.TPMSSignatureECC)) {
	sig, err := tpm2.Unmarshal[tpm2.TPMTSignature](a.Evidence.Signature)
	a.fail(err)
	ecc, err := sig.Signature.ECDSA()
	a.fail(err)
	change(ecc)
	a.Evidence.Signature = tpm2.Marshal(*sig)
}

// resign signs the quote bytes as they are now.
func (a *Attempt) resign() {
	var err error
	a.Evidence.Signature, err = Sign(a.Host.AK1, a.Evidence.Quote)
	a.fail(err)
}

func (a *Attempt) setSignature(alg tpm2.TPMAlgID, u tpm2.TPMUSignature) {
	a.Evidence.Signature = tpm2.Marshal(tpm2.TPMTSignature{SigAlg: alg, Signature: u})
}

// QuoteInfo replaces what a quote says about registers.
func QuoteInfo(q *tpm2.TPMSAttest, sel tpm2.TPMLPCRSelection, digest []byte) {
	q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestQuote, &tpm2.TPMSQuoteInfo{
		PCRSelect: sel, PCRDigest: tpm2.TPM2BDigest{Buffer: digest},
	})
}

// selected quotes another selection with the digest of the right values.
func selected(sel tpm2.TPMLPCRSelection) func(*Attempt, *tpm2.TPMSAttest) {
	return func(a *Attempt, q *tpm2.TPMSAttest) {
		info, err := q.Attested.Quote()
		a.fail(err)
		QuoteInfo(q, sel, info.PCRDigest.Buffer)
	}
}

func selections(s ...tpm2.TPMLPCRSelection) (all tpm2.TPMLPCRSelection) {
	for _, l := range s {
		all.PCRSelections = append(all.PCRSelections, l.PCRSelections...)
	}
	return all
}

// certifies replaces which key a certification is of.
func certifies(q *tpm2.TPMSAttest, name, qualified []byte) {
	q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestCertify, &tpm2.TPMSCertifyInfo{
		Name: tpm2.TPM2BName{Buffer: name}, QualifiedName: tpm2.TPM2BName{Buffer: qualified},
	})
}
