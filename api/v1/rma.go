package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Kinds of replacements.
const (
	RMAAdapter = "hca"
	RMASwitch  = "switch"
)

// NewRMA opens the replacement of a device.
type NewRMA struct {
	Kind            string  `json:"kind" enum:"hca,switch"`
	Ticket          string  `json:"ticket" minLength:"1" maxLength:"64" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"what the replacement is called; nothing else may have that name"`
	Old             ib.GUID `json:"old" doc:"node GUID of the device that is taken out"`
	New             ib.GUID `json:"new,omitzero" doc:"of a switch: node GUID of the spare that takes its place; an adapter is the one that is seen and attested"`
	AggregationNode ib.GUID `json:"aggregation_node,omitzero" doc:"node GUID of the aggregation node inside the new switch"`
	Window          float64 `json:"window_seconds" minimum:"60" maximum:"1209600" doc:"how long the place may be under maintenance"`
	Reason          string  `json:"reason" minLength:"1" maxLength:"512" doc:"why, for those who confirm it"`
}

// RMAConfirm takes the step that waits for a second person.
type RMAConfirm struct {
	Reason string `json:"reason,omitempty" maxLength:"512" doc:"why, for the audit log"`
}

// RMACancel ends a replacement.
type RMACancel struct {
	Reason string `json:"reason" minLength:"1" maxLength:"512" doc:"why, for those who read it later"`
}

// RMA is a replacement and where it stands.
type RMA struct {
	Ticket   string    `json:"ticket"`
	Kind     string    `json:"kind" doc:"hca or switch"`
	Old      ib.GUID   `json:"old"`
	New      ib.GUID   `json:"new,omitzero" doc:"the device that takes its place, once it is known"`
	Where    string    `json:"where,omitempty" doc:"where it stands, in words"`
	Place    ib.Place  `json:"place,omitzero" doc:"of an adapter: the switch port that it is cabled to"`
	Host     string    `json:"host,omitempty" doc:"of an adapter: the machine that it is in"`
	State    string    `json:"state" doc:"drafted, open, candidate, attested, replaced, accepted, expired or cancelled"`
	Next     string    `json:"next" doc:"what is to be done next, and by which role"`
	By       string    `json:"by" doc:"who opened it"`
	Reason   string    `json:"reason"`
	Opened   time.Time `json:"opened"`
	Expires  time.Time `json:"expires"`
	Attested time.Time `json:"attested,omitzero" doc:"of an adapter: when the host proved that it is in it"`
	Window   uint64    `json:"window_revision,omitempty" doc:"revision that puts the place under maintenance"`
	Replace  uint64    `json:"replace_revision,omitempty" doc:"revision that assigns the place to the new device"`
	Open     uint64    `json:"open_revision,omitempty" doc:"of a switch: revision that lets its hosts in"`
	Close    uint64    `json:"close_revision,omitempty" doc:"revision that ends maintenance without a replacement"`
	Steps    []RMAStep `json:"steps" nullable:"false"`
}

// RMAStep is a step of a replacement, with its actor.
type RMAStep struct {
	At       time.Time `json:"at"`
	By       string    `json:"by"`
	What     string    `json:"what"`
	Revision uint64    `json:"revision,omitempty"`
}

// RMAs are all replacements, the newest first.
type RMAs struct {
	Items []RMA `json:"items" nullable:"false"`
}
