package attest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/google/go-tpm/tpm2"
)

// SealChallenge is the service's side of a seal: the accepted evidence, and the proof that the same TPM must deliver once
// the host's agent has capped its register.
type SealChallenge struct {
	Session   string    `json:"session"`
	Host      string    `json:"host"`
	Issued    time.Time `json:"issued"`
	Expires   time.Time `json:"expires"`
	Nonce     []byte    `json:"nonce"`
	EKDigest  string    `json:"ek_digest"`
	EKName    []byte    `json:"ek_name"`
	AK2Public []byte    `json:"ak2_public"`
	Open      []byte    `json:"open"` // V1
	Statement []byte    `json:"statement_digest"`
	PCRs      []int     `json:"pcrs"`
	AgentPCR  int       `json:"agent_pcr"`
	Channel   string    `json:"channel"`
	Digest    []byte    `json:"pcr_digest"` // of the registers, the agent's capped
	Boot      Boot      `json:"boot"`
	Firmware  string    `json:"tpm_firmware"`
}

// LogValue implements slog.LogValuer.
func (c *SealChallenge) LogValue() slog.Value {
	return slog.GroupValue(slog.String("session", c.Session), slog.String("host", c.Host), slog.Time("expires", c.Expires))
}

// BeginSeal makes the second challenge after evidence for ch was accepted with
// the facts.
func BeginSeal(rnd io.Reader, now time.Time, ch *Challenge, f *Facts, pol *Policy) (*SealChallenge, *Seal, error) {
	open := ch.open()
	h := sha256.New()
	for _, p := range f.PCRs {
		value, err := hex.DecodeString(p.Value)
		if err != nil {
			return nil, nil, fmt.Errorf("seal: value of PCR %d: %w", p.Index, err)
		}
		if p.Index == ch.AgentPCR {
			value = CappedPCRValue(open)
		}
		h.Write(value)
	}
	statement := ch.StatementDigests[len(ch.StatementDigests)-1]
	return (&SealChallenge{
		Session: ch.ID, Host: ch.Host,
		EKDigest: ch.EKDigest, EKName: ch.EKName, AK2Public: ch.AK2Public, Open: open, Statement: statement,
		PCRs: ch.PCRs, AgentPCR: ch.AgentPCR, Channel: ch.Channel, Digest: h.Sum(nil), Boot: f.Boot, Firmware: f.TPMFirmware,
	}).Renew(rnd, now, pol)
}

// Renew returns the challenge with a nonce of its own, and a life that begins now. The requirements on the seal stay the
// same. The caller must check that the evidence still counts, and was not sealed.
func (c *SealChallenge) Renew(rnd io.Reader, now time.Time, pol *Policy) (*SealChallenge, *Seal, error) {
	nonce := make([]byte, nonceSize)
	if _, err := io.ReadFull(rnd, nonce); err != nil {
		return nil, nil, fmt.Errorf("seal: random bytes: %w", err)
	}
	fresh := *c
	fresh.Issued, fresh.Expires, fresh.Nonce = now.UTC(), now.Add(pol.SealLife).UTC(), nonce
	return &fresh, fresh.Seal(), nil
}

// Seal is what the host learns of the challenge.
func (c *SealChallenge) Seal() *Seal { return &Seal{Nonce: c.Nonce, Expires: c.Expires} }

// VerifySeal checks the seal quote against the challenge it answers, and returns
// the boot it was made in. channel is the TLS exporter value of the connection
// it came over. answered reports whether the second key of the host's TPM signed
// this answer to c, accepted or not. The caller must consume c if it is true, and
// keep c if it is false: an unsigned answer may come from any sender.
func VerifySeal(now time.Time, c *SealChallenge, channel []byte, ev *SealEvidence, pol *Policy) (b Boot, answered bool, _ *Refusal) {
	if r := c.check(now, channel, ev, pol); r != nil {
		return Boot{}, false, r
	}
	if c.Channel == ChannelNone {
		channel = nil
	}
	key, err := parseAK(c.AK2Public, PCRPolicy(c.AgentPCR, CappedPCRValue(c.Open)))
	if err != nil {
		return Boot{}, false, refuse(ReasonAK, "second key: %v", err)
	}
	a := attestation{
		what: "seal quote", raw: ev.Quote, signature: ev.Signature, key: key,
		ekName: c.EKName, ekDigest: c.EKDigest, kind: tpm2.TPMSTAttestQuote,
		extra: SealQualifyingData(c.Session, c.Nonce, c.Statement, channel, key.name),
	}
	s, r := a.open()
	if r != nil {
		return Boot{}, false, r
	}
	if r := checkSelection(a.what, s, c.PCRs); r != nil {
		return Boot{}, true, r
	}
	b = bootOf(s)
	return b, true, c.compare(s, b)
}

func (c *SealChallenge) check(now time.Time, channel []byte, ev *SealEvidence, pol *Policy) *Refusal {
	if c == nil || ev == nil {
		return refuse(ReasonSession, "no challenge or no seal quote")
	}
	if r := pol.check(); r != nil {
		return r
	}
	switch {
	case now.After(c.Expires) || now.Before(c.Issued.Add(-pol.ClockSkew)):
		return refuse(ReasonSession, "the seal of session %s was due at %s", c.Session, c.Expires.UTC().Format(time.RFC3339))
	case max(len(ev.Quote), len(ev.Signature)) > MaxTPMStructure:
		return refuse(ReasonSize, "seal quote or signature of more than %d bytes", MaxTPMStructure)
	case c.Channel == ChannelExporter && len(channel) != ExporterSize:
		return refuse(ReasonChannel, "the connection has no channel binding of %d bytes", ExporterSize)
	}
	return nil
}

// compare requires the boot of the evidence, and its registers except for the cap.
func (c *SealChallenge) compare(s *tpm2.TPMSAttest, b Boot) *Refusal {
	switch {
	case !b.Same(c.Boot):
		return refuse(ReasonSeal, "the seal is of boot %v, the evidence of boot %v", b, c.Boot)
	case b.Safe && b.Clock < c.Boot.Clock:
		return refuse(ReasonClock, "the TPM's clock was at %d ms when it quoted the evidence, at %d ms when it sealed", c.Boot.Clock, b.Clock)
	case firmwareOf(s) != c.Firmware:
		return refuse(ReasonSeal, "the TPM's firmware was %s when it quoted the evidence, %s when it sealed", c.Firmware, firmwareOf(s))
	case !bytes.Equal(registersOf(s), c.Digest):
		return refuse(ReasonSeal, "PCR %d is not capped, or another register changed since the evidence", c.AgentPCR)
	}
	return nil
}
