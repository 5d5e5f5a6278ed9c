package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Kinds of drift: how what a port was read to hold differs from what is wanted.
const (
	DriftAbsent      = "absent"       // a port with memberships was not found where it is declared
	DriftMissing     = "missing"      // the table lacks a P_Key of a membership
	DriftMembership  = "membership"   // the table has it with the other membership
	DriftLeaving     = "leaving"      // the table still has a P_Key whose membership is being withdrawn
	DriftStray       = "stray"        // the table has a P_Key that no membership explains
	DriftNotEnforced = "not-enforced" // the switch port does not check P_Keys of packets that come in, or go out
	DriftUnread      = "unread"       // the table or the setting was not read
)

// Where drift is.
const (
	DriftInAdapter = "adapter"
	DriftInSwitch  = "switch"
)

// DriftQuery says which drift is asked for. Empty fields ask for all. Each further field leaves out more.
type DriftQuery struct {
	Host string `query:"host" maxLength:"128" doc:"ports of this host only"`
	Kind string `query:"kind" enum:"absent,missing,membership,leaving,stray,not-enforced,unread" doc:"drift of this kind only"`
	PageQuery
}

// DriftList is a page of how the tables of ports differ from what is wanted, by the newest reading.
type DriftList struct {
	Begun   time.Time  `json:"begun" doc:"first request of the reading of everything; no value is older"`
	Again   *time.Time `json:"again,omitempty" doc:"first request of the newest reading that read only what the Subnet Manager had touched; none: everything was read at once"`
	Age     float64    `json:"age_seconds" doc:"since the first request of the reading of everything"`
	MaxAge  float64    `json:"max_age_seconds" doc:"an older reading says nothing any more"`
	Current bool       `json:"current" doc:"it is not older"`
	Items   []Drift    `json:"items" nullable:"false" doc:"by switch port"`
	Next    string     `json:"next,omitempty" doc:"value of after for the next page; absent: this is the last one"`
}

// Drift is one difference at one port.
type Drift struct {
	Kind  string    `json:"kind" enum:"absent,missing,membership,leaving,stray,not-enforced,unread"`
	In    string    `json:"in" enum:"adapter,switch" doc:"whose table or setting it is"`
	Host  string    `json:"host,omitempty" doc:"that is declared there; absent: none"`
	GUID  ib.GUID   `json:"guid,omitzero" doc:"port GUID; absent: not known"`
	Place ib.Place  `json:"place,omitzero" doc:"switch port; absent: no cable is declared"`
	PKey  ib.PKey   `json:"pkey,omitzero" doc:"as it is wanted; of leaving and stray, as it was found"`
	Found string    `json:"found,omitempty" doc:"what was found in its place, in words"`
	Since time.Time `json:"since" doc:"begin of the first reading of this instance, in a row, that found it"`
}
