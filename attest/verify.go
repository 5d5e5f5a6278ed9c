package attest

import (
	"bytes"
	"crypto/hmac"
	"encoding/hex"
	"strings"
	"time"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest/reference"
)

// Verify checks evidence against the challenge it answers. channel is the TLS
// exporter value of the connection it came over. The caller must have
// consumed ch before, and must write the verdict to the audit log before it
// answers. Verify never panics and looks at nothing over its size.
func Verify(now time.Time, ch *Challenge, channel []byte, ev *Evidence, exp Expected, pol *Policy) Verdict {
	return VerifyInParts(now, ch, channel, ev, exp, pol, func(Part) {})
}

// Part is a part of what evidence shows. Parts are verified one after another, in the order of Parts.
type Part string

// Parts of evidence.
const (
	PartCredential Part = "credential" // that the TPM of the EK opened the credential of the session
	PartQuote      Part = "quote"      // keys, quote, certified key and registers
	PartStatement  Part = "statement"  // of the agent, on the adapters
	PartBoot       Part = "boot"       // event log, reference values and age
	PartInventory  Part = "inventory"  // adapters and GUIDs as inventory has them
	PartFirmware   Part = "firmware"   // versions of the adapters' firmware
	PartAdapters   Part = "adapters"   // their assurance, debugging and lock
)

// Parts returns all parts, in the order in which they are verified.
func Parts() []Part {
	return []Part{PartCredential, PartQuote, PartStatement, PartBoot, PartInventory, PartFirmware, PartAdapters}
}

// VerifyInParts is Verify, and calls verified after each part, also after the one that is refused, which is then the last.
// What verified does has no part in the verdict.
func VerifyInParts(now time.Time, ch *Challenge, channel []byte, ev *Evidence, exp Expected, pol *Policy, verified func(Part)) Verdict {
	v := &verifier{now: now, ch: ch, channel: channel, ev: ev, exp: exp, pol: pol}
	if r := v.run(verified); r != nil {
		return Verdict{Code: r.Code, Detail: r.Detail, Facts: v.facts, Measured: v.boot, AnyBoot: v.anyBoot}
	}
	return Verdict{OK: true, Facts: v.facts, Measured: v.boot, AnyBoot: v.anyBoot}
}

// verifier holds one verification. Each step may rely on those before it.
type verifier struct {
	now     time.Time
	ch      *Challenge
	channel []byte
	ev      *Evidence
	exp     Expected
	pol     *Policy

	keys      keyPair
	quote     *tpm2.TPMSAttest
	statement *Statement
	boot      *reference.Boot
	anyBoot   bool
	facts     Facts
}

// run takes the steps in the order that spends least on bad evidence and
// never uses a value before it is authenticated.
func (v *verifier) run(verified func(Part)) *Refusal {
	for _, part := range []struct {
		name  Part
		steps []func() *Refusal
	}{
		{PartCredential, []func() *Refusal{v.checkPolicy, v.checkSizes, v.checkSession, v.checkProof}},
		{PartQuote, []func() *Refusal{
			v.checkKeys, v.checkQuote, v.checkCertify, v.checkSelection, v.checkPCRValues, v.checkAgentPCR, v.checkTPM, v.checkDigest,
		}},
		{PartStatement, []func() *Refusal{v.checkStatement}},
		{PartBoot, []func() *Refusal{v.checkEventLog, v.checkBoot, v.checkReference, v.checkAge}},
		{PartInventory, []func() *Refusal{v.checkInventory}},
		{PartFirmware, []func() *Refusal{v.checkFirmware}},
		{PartAdapters, []func() *Refusal{v.checkAdapters}},
	} {
		r := inOrder(part.steps)
		verified(part.name)
		if r != nil {
			return r
		}
	}
	return nil
}

// inOrder returns the first refusal.
func inOrder(steps []func() *Refusal) *Refusal {
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
		Host: v.ch.Host, Session: v.ch.ID, EKDigest: v.ch.EKDigest, EKNotes: v.ch.EKNotes, EKIssuers: v.ch.Issuers,
		TPM: v.ch.TPM, Start: v.ch.Start, PolicyVersion: v.pol.Version, Verified: v.now.UTC(), Waived: v.pol.Waived(),
	}
	return nil
}

func (v *verifier) checkSizes() *Refusal {
	switch ev := v.ev; {
	case len(ev.Statement) > MaxStatement:
		return refuse(ReasonSize, "statement of %d bytes, at most %d", len(ev.Statement), MaxStatement)
	case max(len(ev.Quote), len(ev.Signature), len(ev.Certify), len(ev.CertifySignature)) > MaxTPMStructure:
		return refuse(ReasonSize, "quote, certification or signature of more than %d bytes", MaxTPMStructure)
	case len(ev.EventLog) > MaxEventLog:
		return refuse(ReasonSize, "event log of %d bytes, at most %d", len(ev.EventLog), MaxEventLog)
	case len(ev.PCRValues) > numPCRs:
		return refuse(ReasonSize, "%d PCR values", len(ev.PCRValues))
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
		return refuse(ReasonChannel, "the connection has no channel binding of %d bytes", ExporterSize)
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

// checkKeys rebuilds both keys' public areas once more from what the session
// said was measured.
func (v *verifier) checkKeys() *Refusal {
	pair, err := parsePair(v.ch.AK1Public, v.ch.AK2Public, v.ch.AgentPCR, v.ch.open())
	if err != nil {
		return refuse(ReasonAK, "%v", err)
	}
	v.keys = pair
	v.facts.AKName = hex.EncodeToString(pair.open.name)
	return nil
}

// checkDigest wants the statement that the session was opened for.
func (v *verifier) checkDigest() *Refusal {
	sum := StatementDigest(v.ev.Statement)
	if n := len(v.ch.StatementDigests); n == 0 || !bytes.Equal(v.ch.StatementDigests[n-1], sum) {
		return refuse(ReasonDigests, "the last of %d statements measured is not %x, the one sent", n, sum)
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
	if (Start{Agent: s.Agent, Image: s.Image}) != v.ch.Start {
		return refuse(ReasonStart, "the statement is of agent %q and image %q, measured was agent %q and image %q",
			s.Agent, s.Image, v.ch.Start.Agent, v.ch.Start.Image)
	}
	v.statement, v.facts.Statement = s, s
	return nil
}

// checkAgentPCR wants the register to hold the records of the session and no
// others.
func (v *verifier) checkAgentPCR() *Refusal {
	got, open := v.value(v.ch.AgentPCR), v.ch.open()
	switch {
	case bytes.Equal(got, open):
		return nil
	case bytes.Equal(got, CappedPCRValue(open)):
		return refuse(ReasonAgentPCR, "PCR %d is capped: the host was handed over in this boot; reboot it", v.ch.AgentPCR)
	default:
		return refuse(ReasonAgentPCR, "PCR %d does not hold exactly the start of agent %q and %d statements; something else was measured into it: reboot the host",
			v.ch.AgentPCR, v.ch.Start.Agent, len(v.ch.StatementDigests))
	}
}

// checkEventLog wants the log that the statement was made with, or none where
// the statement says so.
func (v *verifier) checkEventLog() *Refusal {
	sum := ""
	if len(v.ev.EventLog) > 0 {
		sum = hex.EncodeToString(StatementDigest(v.ev.EventLog))
	}
	if sum != v.statement.EventLog {
		return refuse(ReasonEventLog, "the event log has digest %q, the statement says %q", sum, v.statement.EventLog)
	}
	return nil
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
