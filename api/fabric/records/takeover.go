package records

import (
	"time"

	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// States of a Takeover.
const (
	TakeoverOpen = "open" // ports keep P_Keys that no record explains
	TakeoverOver = "over" // they lose them
)

// Causes by which a takeover is over.
const (
	TakeoverDone    = "done"    // the fabric was settled, and all that ports kept was decided about or is recorded
	TakeoverManaged = "managed" // the fabric was managed before there was a record of it
	TakeoverReview  = "review"  // the state was restored, and the review decides
	TakeoverRemove  = "remove"  // the configuration has foreign P_Keys removed
)

// Takeover says whether this service takes over a fabric that it has never managed. There is one for the life of the state: a
// takeover that is over never opens again.
type Takeover struct {
	State string    `json:"state"`
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
	Cause string    `json:"cause,omitempty"` // by which it is over
}

// Takeovers holds the Takeover under Master. Written by the sm role.
func Takeovers() store.Collection[Takeover] {
	return store.NewCollection[Takeover]("fabric/takeover", 1)
}

// Found is a port with P_Keys of tenants that it had when the subnet manager read its tables first. It keeps them while the takeover
// is open.
type Found struct {
	GUID   ib.GUID   `json:"guid"`
	Place  ib.Place  `json:"place"`
	PKeys  []ib.PKey `json:"p_keys"`           // full or limited as it had them, each partition once
	Device string    `json:"device,omitempty"` // as the device described itself
}

// Key returns the key of the record.
func (f *Found) Key() string { return f.GUID.String() + "/" + f.Place.String() }

// Finds holds what ports were found to have, until it is recorded in the ledger, or decided that it is not. Written by the sm role,
// removed by the api role.
func Finds() store.Collection[Found] { return store.NewCollection[Found]("adoption-finds", 1) }
