package v1

import (
	"time"

	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
)

// NewReference has reference values learned, as a draft.
type NewReference struct {
	Class  string              `json:"class" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"of hosts that boot alike, as inventory has it"`
	Hosts  []string            `json:"hosts,omitempty" maxItems:"32" doc:"hosts whose last boot was proven by their TPM, and no set has"`
	Logs   [][]byte            `json:"logs,omitempty" maxItems:"4" doc:"event logs, as the kernel has them in binary_bios_measurements"`
	Base   uint64              `json:"base,omitempty" doc:"version to begin with, which is widened"`
	Ignore []ReferencePosition `json:"ignore,omitempty" maxItems:"256" doc:"events of PCR 1, 3, 5 and 6 that may be any"`
	Reason string              `json:"reason" minLength:"1" maxLength:"512" doc:"why, for those who approve it"`

	Predicted *Prediction `json:"predicted,omitempty" doc:"what was computed of an image, in place of hosts, logs and base"`
}

// Prediction is reference values that were computed of an image which was not booted
// yet, such as by "portcullis reference predict".
type Prediction struct {
	Image     string               `json:"image" minLength:"1" maxLength:"256" doc:"of what: name and digest of the image, and what is known of the platform"`
	Registers []reference.Register `json:"registers" nullable:"false" maxItems:"24" doc:"those that the service does not have quoted are left out"`
}

// ReferencePosition is one event of a register.
type ReferencePosition struct {
	PCR      int `json:"pcr"`
	Position int `json:"position" doc:"from 1"`
}

// NewWaiver has any boot of a class trusted for some time.
type NewWaiver struct {
	Class   string    `json:"class" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"of hosts, as inventory has it"`
	Expires time.Time `json:"expires" doc:"when it ends; at most 30 days from now"`
	Reason  string    `json:"reason" minLength:"1" maxLength:"512" doc:"why, for those who approve it"`
}

// ReferenceApprove approves a draft.
type ReferenceApprove struct {
	Reason  string    `json:"reason,omitempty" maxLength:"512" doc:"why, for the audit log"`
	Expires time.Time `json:"expires,omitzero" doc:"when the set ends by itself; absent: as it is, or never"`
}

// ReferenceExpire ends a set.
type ReferenceExpire struct {
	At     time.Time `json:"at,omitzero" doc:"when; absent: now"`
	Reason string    `json:"reason" minLength:"1" maxLength:"512" doc:"why, for those who read it later"`
}

// Reference is a set of reference values.
type Reference struct {
	Name      string               `json:"name" doc:"class/version"`
	Class     string               `json:"class"`
	Version   uint64               `json:"version"`
	State     string               `json:"state" doc:"draft, approved, expired or ended"`
	InForce   bool                 `json:"in_force" doc:"boots are compared with it now"`
	Waiver    bool                 `json:"waiver,omitempty" doc:"takes any boot whose log replays"`
	Owner     string               `json:"owner" doc:"who learned it, or answers for the waiver"`
	Made      time.Time            `json:"made"`
	Source    string               `json:"source,omitempty" doc:"what it was learned from"`
	Reason    string               `json:"reason"`
	Approver  string               `json:"approver,omitempty"`
	Trusted   time.Time            `json:"trusted,omitzero" doc:"since when"`
	Expires   time.Time            `json:"expires,omitzero"`
	Registers []reference.Register `json:"registers,omitempty" doc:"only where one set is shown"`
}

// References are sets of reference values, by class and version.
type References struct {
	Items []Reference `json:"items" nullable:"false"`
}

// ReferenceDiff is how a boot or another set differs from a set.
type ReferenceDiff struct {
	Reference   string                 `json:"reference" doc:"name of the set"`
	Other       string                 `json:"other" doc:"host, or name of the other set"`
	Measured    time.Time              `json:"measured,omitzero" doc:"of a host: when it booted as it is compared"`
	Differences []reference.Difference `json:"differences" nullable:"false"`
	Events      []ReferenceEvent       `json:"events,omitempty" doc:"of a host: all it measured"`
}

// ReferenceEvent is one measurement of a host.
type ReferenceEvent struct {
	PCR      int             `json:"pcr"`
	Position int             `json:"position" doc:"in its register, from 1"`
	Digest   eventlog.Digest `json:"digest"`
	Note     string          `json:"note" doc:"what the host claims it to be"`
}
