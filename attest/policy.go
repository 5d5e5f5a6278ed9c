package attest

import (
	"crypto/x509"
	"time"
)

// EKMode says what ties an EK to a host (never a vendor's chain alone: that
// admits every TPM the vendor ever sold).
type EKMode string

// EK modes.
const (
	// EKPinned wants the EK digest of inventory; no certificate needed.
	EKPinned EKMode = "pinned"
	// EKPinnedChain wants both the digest and a chain to a root. The default.
	EKPinnedChain EKMode = "pinned+chain"
	// EKChainApprove requires a chain and a person who confirmed the digest once: until inventory has it, Begin refuses
	// with ReasonEKApprove.
	EKChainApprove EKMode = "chain+approve"
)

// Expiry says how the validity dates of an EK certificate count.
type Expiry string

// Expiry policies. The dates of issuing CAs always count.
const (
	ExpiryStrict     Expiry = "strict"      // an expired EK certificate is refused
	ExpiryIgnoreLeaf Expiry = "ignore-leaf" // noted, not refused: the key does not age. The default
)

// Policy is the site's rules for evidence. The zero Policy refuses everything;
// start from DefaultPolicy or LoadPolicy. It is read only once in use.
type Policy struct {
	Version        string // names the policy in facts and audit records
	Mode           EKMode
	Expiry         Expiry
	Roots          *x509.CertPool
	Intermediates  *x509.CertPool
	Denied         map[string]bool // hex SHA-256 of a SubjectPublicKeyInfo: EKs and issuing CAs
	PCRs           []int           // quoted besides AgentPCR, ascending
	AgentPCR       int             // 8 to 15, not 10
	Channel        string          // ChannelExporter, or ChannelNone behind a TLS proxy
	SessionLife    time.Duration
	SealLife       time.Duration // from accepted evidence to its seal
	StatementAge   time.Duration // oldest statement accepted
	ClockSkew      time.Duration // how far in the future a statement may be
	FirmwareFloors []FirmwareFloor
	Starts         []Start       // agents and images that are allowed; empty: recorded, not judged
	TPMFirmware    []TPMFirmware // empty: recorded, not judged

	Assurance   Assurance // least one of each adapter's firmware; AssuranceNone: not judged
	RequireLock bool      // settings of each adapter locked, SMP firewall on
	AcceptDPU   bool      // adapters may have a processor of their own, which nothing attests
}

// Demands on adapters that a policy may waive, in the words of facts, logs and results. Other entries of Facts.Waived are
// about the boot.
const (
	WaivedAssurance = "firmware of adapters is not assured (assurance: none)"
	WaivedDPU       = "DPUs are admitted, whatever their own processors run (accept_dpu: true)"
	WaivedLock      = "settings of adapters need not be locked (require_lock: false)"
)

// Waived returns the demands on adapters that the policy waives, for facts and logs. A site with such a policy knows less
// about its hosts than this software can show.
func (p *Policy) Waived() (list []string) {
	if p.Assurance == AssuranceNone {
		list = append(list, WaivedAssurance)
	}
	if p.AcceptDPU {
		list = append(list, WaivedDPU)
	}
	if !p.RequireLock {
		list = append(list, WaivedLock)
	}
	return list
}

// BeforeLock returns the policy for evidence of a host whose adapters are still to be locked. It makes all demands on host
// and boot, and none on adapters.
func (p *Policy) BeforeLock() *Policy {
	before := *p
	before.RequireLock, before.Assurance, before.FirmwareFloors = false, AssuranceNone, nil
	return &before
}

// FirmwareFloor is the lowest HCA firmware accepted for a board. With any
// floor configured, a board without one is refused.
type FirmwareFloor struct {
	PSID string `yaml:"psid"`
	Min  string `yaml:"min"` // three dotted numbers, for example 28.43.1014
}
