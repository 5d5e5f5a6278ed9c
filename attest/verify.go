package attest

import (
	"bytes"
	"crypto/hmac"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Verify checks evidence against the challenge it answers. channel is the TLS
// exporter value of the connection it came over. The caller must have
// consumed ch before, and must write the verdict to the audit log before it
// answers. Verify never panics and looks at nothing over its size.
func Verify(now time.Time, ch *Challenge, channel []byte, ev *Evidence, exp Expected, pol *Policy) Verdict {
	v := &verifier{now: now, ch: ch, channel: channel, ev: ev, exp: exp, pol: pol}
	if r := v.run(); r != nil {
		return Verdict{Code: r.Code, Detail: r.Detail, Facts: v.facts}
	}
	return Verdict{OK: true, Facts: v.facts}
}

// verifier holds one verification. Each step may rely on those before it.
type verifier struct {
	now     time.Time
	ch      *Challenge
	channel []byte
	ev      *Evidence
	exp     Expected
	pol     *Policy

	ak        *attestationKey
	quote     *quote
	statement *Statement
	facts     Facts
}

// run takes the steps in the order that spends least on bad evidence and
// never uses a value before it is authenticated.
func (v *verifier) run() *Refusal {
	steps := []func() *Refusal{
		v.checkPolicy, v.checkSizes, v.checkSession, v.checkProof, v.checkAK,
		v.checkSignature, v.checkQuote, v.checkNonce, v.checkSigner,
		v.checkSelection, v.checkPCRValues,
		v.checkDigests, v.checkStatement, v.checkAgentPCR, v.checkAge,
		v.checkInventory, v.checkFirmware,
	}
	for _, step := range steps {
		if r := step(); r != nil {
			return r
		}
	}
	return nil
}

func (v *verifier) checkPolicy() *Refusal {
	if v.ch == nil || v.ev == nil {
		return refuse(ReasonSession, "no challenge or no evidence")
	}
	if r := v.pol.check(); r != nil {
		return r
	}
	v.facts = Facts{
		Host: v.ch.Host, Session: v.ch.ID, EKDigest: v.ch.EKDigest, EKNotes: v.ch.EKNotes,
		PolicyVersion: v.pol.Version, Verified: v.now.UTC(),
	}
	return nil
}

func (v *verifier) checkSizes() *Refusal {
	switch ev := v.ev; {
	case len(ev.Statement) > MaxStatement:
		return refuse(ReasonSize, "statement of %d bytes, at most %d", len(ev.Statement), MaxStatement)
	case len(ev.Quote) > MaxTPMStructure || len(ev.Signature) > MaxTPMStructure:
		return refuse(ReasonSize, "quote or signature of more than %d bytes", MaxTPMStructure)
	case len(ev.StatementDigests) > MaxStatements:
		return refuse(ReasonSize, "%d statements in one boot, at most %d; reboot the host", len(ev.StatementDigests), MaxStatements)
	case len(ev.PCRValues) > numPCRs:
		return refuse(ReasonSize, "%d PCR values", len(ev.PCRValues))
	}
	for _, d := range v.ev.StatementDigests {
		if len(d) != digestSize {
			return refuse(ReasonSize, "statement digest of %d bytes, want %d", len(d), digestSize)
		}
	}
	for _, d := range v.ev.PCRValues {
		if len(d) > MaxTPMStructure {
			return refuse(ReasonSize, "PCR value of %d bytes", len(d))
		}
	}
	return nil
}

// checkSession also refuses a record that inventory changed since Begin.
func (v *verifier) checkSession() *Refusal {
	switch {
	case v.now.After(v.ch.Expires) || v.now.Before(v.ch.Issued.Add(-v.pol.ClockSkew)):
		return refuse(ReasonSession, "session %s ended %s; begin a new one", v.ch.ID, v.ch.Expires.UTC().Format(time.RFC3339))
	case v.ch.Host != v.exp.Host:
		return refuse(ReasonSession, "session %s is of host %q, not %q", v.ch.ID, v.ch.Host, v.exp.Host)
	case !v.pol.sameRegisters(v.ch):
		return refuse(ReasonSession, "session %s was opened under another policy; begin a new one", v.ch.ID)
	case v.ch.Channel == ChannelExporter && len(v.channel) != ExporterSize:
		return refuse(ReasonChannel, "the connection gave no channel binding of %d bytes", ExporterSize)
	case v.ch.Channel == ChannelNone:
		v.channel = nil
	}
	if r := v.exp.check(); r != nil {
		return r
	}
	if !strings.EqualFold(v.exp.EKDigest, v.ch.EKDigest) {
		return refuse(ReasonEKPin, "inventory now has EK %q for host %q, the session was opened with %s", v.exp.EKDigest, v.exp.Host, v.ch.EKDigest)
	}
	return nil
}

func (v *verifier) checkProof() *Refusal {
	if len(v.ch.Secret) != secretSize || !hmac.Equal(Proof(v.ch.Secret, v.ch.ID, v.ev), v.ev.Proof) {
		return refuse(ReasonProof, "the TPM with EK %s did not activate this AK, or the evidence was altered", v.ch.EKDigest)
	}
	return nil
}

func (v *verifier) checkAK() *Refusal {
	ak, err := parseAK(v.ch.AKPublic)
	if err != nil {
		return refuse(ReasonAK, "%v", err)
	}
	v.ak = ak
	v.facts.AKName = hex.EncodeToString(ak.name)
	return nil
}

// checkDigests ties the statement's bytes to the list of measured statements.
func (v *verifier) checkDigests() *Refusal {
	n := len(v.ev.StatementDigests)
	sum := StatementDigest(v.ev.Statement)
	if n == 0 || !bytes.Equal(v.ev.StatementDigests[n-1], sum) {
		return refuse(ReasonDigests, "the last of %d statement digests is not %x, that of the statement", n, sum)
	}
	v.facts.StatementDigest = hex.EncodeToString(sum)
	return nil
}

func (v *verifier) checkStatement() *Refusal {
	s, err := ParseStatement(v.ev.Statement)
	if err != nil {
		return refuse(ReasonStatement, "%v", err)
	}
	if s.Host != v.ch.Host {
		return refuse(ReasonStatementHost, "the statement is of host %q, the session of host %q", s.Host, v.ch.Host)
	}
	v.statement, v.facts.Statement = s, s
	return nil
}

func (v *verifier) checkAgentPCR() *Refusal {
	want := AgentPCRValue(v.statement.Agent, v.ev.StatementDigests)
	for i, n := range v.ch.PCRs {
		if n == v.ch.AgentPCR && bytes.Equal(v.ev.PCRValues[i], want) {
			return nil
		}
	}
	return refuse(ReasonAgentPCR, "PCR %d does not hold exactly the start of agent %q and %d statements; something else was measured into it: reboot the host",
		v.ch.AgentPCR, v.statement.Agent, len(v.ev.StatementDigests))
}

func (v *verifier) checkAge() *Refusal {
	age := v.now.Sub(v.statement.CollectedAt)
	switch at := v.statement.CollectedAt.UTC().Format(time.RFC3339); {
	case age > v.pol.StatementAge:
		return refuse(ReasonStatementAge, "collected at %s, %s ago; at most %s is accepted", at, age.Round(time.Second), v.pol.StatementAge)
	case age < -v.pol.ClockSkew:
		return refuse(ReasonStatementAge, "collected at %s, %s in the future; set the host's clock", at, (-age).Round(time.Second))
	}
	return nil
}

func (v *verifier) checkInventory() *Refusal { return compareInventory(v.statement, v.exp) }

func (v *verifier) checkFirmware() *Refusal {
	return checkFirmware(v.statement, v.pol.FirmwareFloors)
}

// String gives "reset 12 restart 0".
func (b Boot) String() string { return fmt.Sprintf("reset %d restart %d", b.Reset, b.Restart) }
