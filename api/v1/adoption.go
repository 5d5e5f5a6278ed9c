package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// NewAdoption lists memberships that the fabric has, and that are to be kept while their hosts are not proven.
type NewAdoption struct {
	Ports    []AdoptedPort `json:"ports" minItems:"1" maxItems:"4096" nullable:"false"`
	Deadline time.Time     `json:"deadline" doc:"until when the hosts must attest: an hour to 90 days from now"`
	Confirm  int           `json:"confirm" minimum:"1" doc:"how many memberships are listed"`
	Reason   string        `json:"reason" minLength:"1" maxLength:"512" doc:"why, for those who confirm it, and for the audit log"`
}

// AdoptedPort is a port with the P_Keys that it has.
type AdoptedPort struct {
	GUID   ib.GUID   `json:"guid" doc:"of the port"`
	Place  ib.Place  `json:"place" doc:"switch port that it is cabled to: its memberships count nowhere else"`
	PKeys  []ib.PKey `json:"p_keys" minItems:"1" maxItems:"126" nullable:"false" doc:"each with its membership bit"`
	Device string    `json:"device,omitempty" maxLength:"64" doc:"as the device describes itself, for persons"`
}

// Adoption states.
const (
	AdoptionStaged = "staged" // waits for a second person, and keeps nothing
	AdoptionKept   = "kept"   // its memberships are kept
	AdoptionOver   = "over"   // it keeps nothing any longer
	AdoptionFound  = "found"  // a takeover found them: they are kept, and no person has decided yet
)

// Adoption keeps memberships that the fabric had.
type Adoption struct {
	ID          string    `json:"id"`
	State       string    `json:"state" enum:"staged,kept,over,found"`
	Reason      string    `json:"reason"`
	By          string    `json:"by" doc:"who listed them, or named the deadline of what was found, and may not confirm it unless approval.alone is set; service: a takeover found them"`
	Staged      time.Time `json:"staged"`
	ConfirmedBy string    `json:"confirmed_by,omitempty"`
	Confirmed   time.Time `json:"confirmed,omitzero"`
	Deadline    time.Time `json:"deadline,omitzero" doc:"until when the hosts must attest; absent: none was named; found: not in force yet"`
	Ended       time.Time `json:"ended,omitzero"`
	Memberships int       `json:"memberships" doc:"that were listed; found: that are kept"`
	Digest      string    `json:"digest" doc:"of what was listed, for who confirms it; found: of what is kept"`
}

// AdoptionView is an adoption with its memberships.
type AdoptionView struct {
	Adoption
	Members []AdoptedMember `json:"members" nullable:"false" doc:"staged: those listed; else those that are kept, or not yet proven absent"`
}

// AdoptedMember is a membership of an adoption. Nothing is proven of its host.
type AdoptedMember struct {
	GUID   ib.GUID   `json:"guid"`
	Place  ib.Place  `json:"place"`
	PKey   ib.PKey   `json:"p_key"`
	Device string    `json:"device,omitempty" doc:"as the device described itself"`
	Host   string    `json:"host,omitempty" doc:"that has the port in the inventory; absent: none has"`
	State  string    `json:"state" enum:"staged,kept,waiting,refused,leaving" doc:"kept: read back from switch port and adapter; waiting: not read back; refused: the fabric cannot have it; leaving: ended, and not proven absent yet"`
	Detail string    `json:"detail,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// AdoptionConfirm puts an adoption into force.
type AdoptionConfirm struct {
	Digest  string `json:"digest" minLength:"12" maxLength:"64" doc:"of the adoption that was looked at, or its first digits"`
	Confirm int    `json:"confirm" minimum:"1" doc:"how many memberships it keeps"`
	// Deadline is for one that a takeover found. Another person confirms it without.
	Deadline time.Time `json:"deadline,omitzero" doc:"of one that was found: until when the hosts must attest, an hour to 90 days from now"`
}

// AdoptionEnd ends the adoption of memberships: hosts lose them.
type AdoptionEnd struct {
	All     bool      `json:"all,omitempty" doc:"all of them"`
	Ports   []ib.GUID `json:"ports,omitempty" maxItems:"4096" doc:"of these ports"`
	PKeys   []ib.PKey `json:"p_keys,omitempty" maxItems:"4096" doc:"these alone"`
	Confirm int       `json:"confirm" minimum:"0" doc:"how many memberships end; 0 for an adoption that is not confirmed yet"`
	Reason  string    `json:"reason" minLength:"1" maxLength:"512" doc:"why, for the audit log"`
}
