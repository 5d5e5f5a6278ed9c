package attest

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"portcullis/attest/ek"
)

// Defaults of a policy, and the bounds of the values that a site may set.
const (
	DefaultAgentPCR     = 15
	DefaultSessionLife  = 120 * time.Second
	DefaultSealLife     = 10 * time.Minute
	DefaultStatementAge = 15 * time.Minute
	DefaultClockSkew    = time.Minute

	maxSessionLife  = 10 * time.Minute
	maxSealLife     = time.Hour
	maxStatementAge = 24 * time.Hour
	maxClockSkew    = 10 * time.Minute
)

// DefaultPolicy is the recommended policy, without roots: it refuses every
// host until Roots is set.
func DefaultPolicy() *Policy {
	return &Policy{
		Version: "default", Mode: EKPinnedChain, Expiry: ExpiryIgnoreLeaf,
		PCRs: []int{0, 1, 2, 3, 4, 5, 6, 7}, AgentPCR: DefaultAgentPCR,
		Channel: ChannelExporter, SessionLife: DefaultSessionLife, SealLife: DefaultSealLife,
		StatementAge: DefaultStatementAge, ClockSkew: DefaultClockSkew,
		Assurance: G1, RequireLock: true,
	}
}

// check refuses a policy that is missing or unsafe: no policy means no host.
func (p *Policy) check() *Refusal {
	if p == nil {
		return refuse(ReasonPolicy, "no attestation policy is configured")
	}
	if err := p.Check(); err != nil {
		return refuse(ReasonPolicy, "%v", err)
	}
	return nil
}

// Check reports the first rule of the policy that is missing or unsafe.
func (p *Policy) Check() error {
	switch {
	case p.Mode != EKPinned && p.Mode != EKPinnedChain && p.Mode != EKChainApprove:
		return fmt.Errorf("EK mode %q, want %s, %s or %s", p.Mode, EKPinned, EKPinnedChain, EKChainApprove)
	case p.Mode != EKPinned && (p.Roots == nil || p.Roots.Equal(x509.NewCertPool())):
		return fmt.Errorf("EK mode %s needs the root certificates of TPM vendors, and none are configured", p.Mode)
	case p.Expiry != ExpiryStrict && p.Expiry != ExpiryIgnoreLeaf:
		return fmt.Errorf("EK expiry %q, want %s or %s", p.Expiry, ExpiryStrict, ExpiryIgnoreLeaf)
	case p.Channel != ChannelExporter && p.Channel != ChannelNone:
		return fmt.Errorf("channel binding %q, want %s or %s", p.Channel, ChannelExporter, ChannelNone)
	case p.SessionLife <= 0 || p.SessionLife > maxSessionLife:
		return fmt.Errorf("session life %s, want more than 0 and at most %s", p.SessionLife, maxSessionLife)
	case p.SealLife <= 0 || p.SealLife > maxSealLife:
		return fmt.Errorf("seal life %s, want more than 0 and at most %s", p.SealLife, maxSealLife)
	case p.Assurance > G3:
		return fmt.Errorf("assurance %d, want none or G0 to G3", uint8(p.Assurance))
	case p.StatementAge <= 0 || p.StatementAge > maxStatementAge:
		return fmt.Errorf("statement age %s, want more than 0 and at most %s", p.StatementAge, maxStatementAge)
	case p.ClockSkew < 0 || p.ClockSkew > maxClockSkew:
		return fmt.Errorf("clock skew %s, want 0 to %s", p.ClockSkew, maxClockSkew)
	}
	for _, f := range p.FirmwareFloors {
		if _, err := parseVersion(f.Min); err != nil || f.PSID == "" {
			return fmt.Errorf("firmware minimum %q of board %q: want a PSID and dotted numbers", f.Min, f.PSID)
		}
	}
	for _, f := range p.TPMFirmware {
		if err := f.check(); err != nil {
			return err
		}
	}
	for _, st := range p.Starts {
		if err := st.check(); err != nil {
			return err
		}
	}
	return p.checkPCRs()
}

// firmwarePCRs is how many registers, from 0 on, firmware measures into.
const firmwarePCRs = 8

// checkPCRs wants the firmware's registers, none that locality 0 can reset (16
// and 23), and an agent PCR that the kernel does not extend (10 is IMA's).
func (p *Policy) checkPCRs() error {
	if p.AgentPCR < 8 || p.AgentPCR > 15 || p.AgentPCR == 10 {
		return fmt.Errorf("agent PCR %d, want 8 to 15 and not 10", p.AgentPCR)
	}
	for i, n := range p.PCRs {
		switch {
		case n == 16 || n == 23:
			return fmt.Errorf("PCR %d can be reset by every process on the host and proves nothing; leave it out of the list", n)
		case n < 0 || n >= numPCRs:
			return fmt.Errorf("PCR %d, want 0 to %d", n, numPCRs-1)
		case n == p.AgentPCR:
			return fmt.Errorf("PCR %d is the agent's and always quoted; leave it out of the list", n)
		case i > 0 && n <= p.PCRs[i-1]:
			return fmt.Errorf("PCRs %v: want ascending order without duplicates", p.PCRs)
		}
	}
	for n := range firmwarePCRs {
		if !slices.Contains(p.PCRs, n) {
			return fmt.Errorf("PCRs %v to quote lack PCR %d; want at least the firmware's, 0 to 7", p.PCRs, n)
		}
	}
	return nil
}

// quoted is the list of registers a quote must cover, ascending.
func (p *Policy) quoted() []int {
	all := append(slices.Clone(p.PCRs), p.AgentPCR)
	slices.Sort(all)
	return all
}

// sameRegisters reports whether the policy still demands what the session was
// opened with.
func (p *Policy) sameRegisters(ch *Challenge) bool {
	return slices.Equal(ch.PCRs, p.quoted()) && ch.AgentPCR == p.AgentPCR && ch.Channel == p.Channel
}

// EKDigest is how inventory names an EK: hex SHA-256 of its
// SubjectPublicKeyInfo, here out of a certificate.
func EKDigest(kind string, certificate []byte) (string, error) {
	e, err := ek.FromCertificate(ek.Kind(kind), certificate)
	if err != nil {
		return "", err
	}
	return e.Digest, nil
}
