package hostrecord

import (
	"time"

	"portcullis/api/tracecontext"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// Record is what is known of one host beyond its inventory. A host
// without a Record is quarantined.
type Record struct {
	Phase v1.Phase  `json:"phase"` // as last reported and audited
	Since time.Time `json:"since"` // of Phase

	// Belongs to the present assignment; all zero while there is none.
	Cluster  string    `json:"cluster,omitempty"`
	Tenant   string    `json:"tenant,omitempty"`
	PKey     ib.PKey   `json:"p_key,omitzero"`
	Set      string    `json:"set,omitempty"`      // that it was assigned for; "": none
	Epoch    int64     `json:"epoch"`              // counts assignments, also past ones
	Assigned time.Time `json:"assigned,omitzero"`  // when the window was opened; zero: by a release that did not record it
	Window   time.Time `json:"window,omitzero"`    // evidence is taken until then
	Evidence *Evidence `json:"evidence,omitzero"`  // last accepted inside the window
	Sealed   time.Time `json:"sealed,omitzero"`    // when the host with this evidence was handed over; zero: it was not
	Granted  bool      `json:"granted,omitempty"`  // a grant was recorded: to move the host, release it
	Admitted bool      `json:"admitted,omitempty"` // was reported admitted: the window is closed permanently, and the age of the evidence no longer counts

	// Conflicts are the GUIDs that another host claims too. While there is any the host is held. They stay until an
	// operator resolves them, also when the assignment ends.
	Conflicts []Dispute `json:"conflicts,omitempty"`

	// Grants lists every grant of the host in the ledger, withdrawn ones
	// included, also of past assignments; sorted.
	Grants []string `json:"grants,omitempty"`

	Removed *Removal `json:"removed,omitzero"` // inventory has the host no longer

	Denial      *v1.Denial `json:"denial,omitzero"`
	DenialProof Proven     `json:"denial_proof,omitzero"` // of the sender that was refused
	Token       string     `json:"token,omitempty"`       // SHA-256 of the status token, hex

	Certificate *Certificate `json:"certificate,omitzero"` // of the host's key; nil: it holds none

	// Trace is that of the request which assigned or released the host. No decision reads it.
	Trace tracecontext.Parent `json:"trace,omitzero"`
}

// LastDenial returns the last refusal, nil if what was sent after it was accepted.
func (r *Record) LastDenial() *v1.Denial {
	if r.Denial == nil || r.Sealed.After(r.Denial.Time) || r.Evidence != nil && r.Evidence.Time.After(r.Denial.Time) {
		return nil
	}
	return r.Denial
}

// Deny notes why a host whose TPM has answered was refused.
func (r *Record) Deny(d v1.Denial) { r.Denial, r.DenialProof = &d, ProvenTPM }

// Certificate is the one that a host holds. It counts as long as it stands in the
// Record with what it was given for.
type Certificate struct {
	SHA256  string    `json:"sha256"`  // of the DER, hex
	Session string    `json:"session"` // of the evidence that was sealed
	Epoch   int64     `json:"epoch"`   // assignment
	Until   time.Time `json:"until"`
}

// Evidence says which evidence was accepted. The whole verdict is in Verdicts.
type Evidence struct {
	Time    time.Time `json:"time"`
	Session string    `json:"session"`

	Reference string   `json:"reference,omitempty"` // set that has its measured boot
	Waived    []string `json:"waived,omitempty"`    // what was not demanded
	Nonce     []byte   `json:"nonce,omitempty"`     // that it answered

	Renewals int `json:"renewals,omitempty"` // further nonces that were given for its seal

	Course Course `json:"course,omitzero"` // how long what took; no decision reads it

	Judged string  `json:"judged,omitempty"` // names the policy and profile that it was judged by last (attestation)
	Lapses []Lapse `json:"lapses,omitempty"` // what of it no longer meets them
}

// Course says how evidence came to be accepted, for traces. It is of bounded size whatever a host sends.
type Course struct {
	Asked    time.Time           `json:"asked,omitzero"`    // for a challenge
	Received time.Time           `json:"received,omitzero"` // when the evidence was
	Began    time.Time           `json:"began,omitzero"`    // its verification, after session and host were read
	Parts    []Took              `json:"parts,omitempty"`   // of the verification, one after another
	Host     tracecontext.Parent `json:"host,omitzero"`     // trace that the host says is its own
}

// Took is how long the verification of a part of evidence took.
type Took struct {
	Part attest.Part   `json:"part"`
	Time time.Duration `json:"ns"`
}

// Dispute is a GUID that two hosts claim: one by inventory, the other by
// evidence that its TPM vouched for.
type Dispute struct {
	Time time.Time `json:"time"`
	GUID ib.GUID   `json:"guid"`
	With string    `json:"with"` // the other host
}

// Removal is what stays of a host that inventory has no longer.
type Removal struct {
	Time time.Time `json:"time"`
	EK   string    `json:"ek,omitempty"` // that it had
}

// Lapse is why evidence that was accepted no longer meets policy.
type Lapse struct {
	Cause  string    `json:"cause"` // of attest.LapseCauses
	Detail string    `json:"detail"`
	Since  time.Time `json:"since"`
}

// Proven is how much the sender of a refused request had shown to be the host
// it named.
type Proven uint8

// Degrees of proof.
const (
	ProvenNothing Proven = iota // it knows the host's name
	ProvenEK                    // and its EK certificate, which is no secret
	ProvenTPM                   // the host's TPM answered
)
