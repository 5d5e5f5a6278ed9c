package attest

import (
	"fmt"
	"time"

	"portcullis/attest/ek"
	"portcullis/attest/reference"
)

// Verdict is the outcome of Verify. Facts are filled as far as verification
// came, and may be relied on only when OK is true.
type Verdict struct {
	OK     bool   `json:"ok"`
	Code   Reason `json:"code,omitempty"` // "" when OK
	Detail string `json:"detail,omitempty"`
	Facts  Facts  `json:"facts"`

	// Measured is the measured boot, once its log led to the quoted registers: to
	// learn from where it was refused.
	Measured *reference.Boot `json:"-"`
	// AnyBoot reports that a waiver let the boot pass, and that no reference values have it: it is unknown which agent sent
	// the evidence.
	AnyBoot bool `json:"-"`
}

// Facts is what verified evidence says, for the audit record and for later
// comparison. Digests are lower-case hex.
type Facts struct {
	Host            string     `json:"host"`
	Session         string     `json:"session"`
	EKDigest        string     `json:"ek_digest"`
	EKNotes         []string   `json:"ek_notes,omitempty"`   // leniencies the policy allowed, for the log
	EKIssuers       []string   `json:"ek_issuers,omitempty"` // SHA-256 of the SubjectPublicKeyInfo of the trusted CAs
	TPM             ek.Model   `json:"tpm,omitzero"`
	AKName          string     `json:"ak_name"`
	AK2Name         string     `json:"ak2_name,omitempty"`
	Start           Start      `json:"start,omitzero"`
	Boot            Boot       `json:"boot,omitzero"`
	TPMFirmware     string     `json:"tpm_firmware,omitempty"` // firmwareVersion of the quote, 16 hex digits
	PCRDigest       string     `json:"pcr_digest,omitempty"`
	PCRs            []PCR      `json:"pcrs,omitempty"`
	StatementDigest string     `json:"statement_digest,omitempty"`
	Statement       *Statement `json:"statement,omitempty"`
	PolicyVersion   string     `json:"policy_version"`
	Waived          []string   `json:"waived,omitempty"`    // what the policy does not demand of adapters, and a waiver of the boot
	Reference       string     `json:"reference,omitempty"` // set of reference values that the boot satisfies, or its waiver
	Verified        time.Time  `json:"verified"`
}

// Boot identifies one boot of the TPM by Reset and Restart: a power cycle raises
// Reset, a resume or TPM restart raises Restart, TPM2_Clear sets both to 0.
type Boot struct {
	Reset   uint32 `json:"reset"`
	Restart uint32 `json:"restart"`
	Clock   uint64 `json:"clock"` // milliseconds
	Safe    bool   `json:"safe"`  // false: the clock may have gone back
}

// Same reports whether b and o are one boot.
func (b Boot) Same(o Boot) bool { return b.Reset == o.Reset && b.Restart == o.Restart }

// String returns "reset 12 restart 0".
func (b Boot) String() string { return fmt.Sprintf("reset %d restart %d", b.Reset, b.Restart) }

// PCR is one quoted register of the SHA-256 bank.
type PCR struct {
	Index int    `json:"index"`
	Value string `json:"value"` // 64 hex digits
}
