// Package review has the records of a restored state that waits to be compared with the fabric.
//
// A restore writes the Mark. While it stands, package fabric grants only what switch ports already have, keeps what
// no record explains, and writes down what it finds (Found). Package admission adds no grant without a
// Decision about the host. The end of the review removes all of these records.
package review

import (
	"context"
	"errors"
	"time"

	"portcullis/api/audit/chain"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// Mark says that the state was restored.
type Mark struct {
	Since time.Time `json:"since"` // when it was restored
	// Incomplete is set until every record was written: a service must not start on such a state.
	Incomplete bool `json:"incomplete,omitempty"`

	// Of the backup that it was restored from.
	Taken    time.Time  `json:"taken"`
	Revision int64      `json:"revision"`
	Origin   string     `json:"origin,omitempty"` // hash of the first entry of the audit log
	Audit    chain.Head `json:"audit"`            // its end
}

// Key is the key of the one record in Marks.
const Key = "restore"

// Marks holds the Mark.
func Marks() store.Collection[Mark] { return store.NewCollection[Mark]("review/mark", 1) }

// Current returns the Mark, nil without one.
func Current(ctx context.Context, r store.Reader) (*Mark, error) {
	rec, err := Marks().Get(ctx, r, Key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &rec.Value, nil
}

// Decision is what an operator decided about a host.
type Decision struct {
	Approved bool      `json:"approved"` // false: rejected
	Time     time.Time `json:"time"`
	Actor    string    `json:"actor"`
	Reason   string    `json:"reason"`
}

// Decisions holds decisions by host id.
func Decisions() store.Collection[Decision] {
	return store.NewCollection[Decision]("review/decisions", 1)
}

// Found is what a switch port holds. Written by the sm role during a review, for the ports that hold any P_Key of a
// tenant.
type Found struct {
	Place  ib.Place  `json:"place"`
	Switch string    `json:"switch"`         // its description
	GUID   ib.GUID   `json:"guid,omitzero"`  // of the port behind it; zero: none is seen
	Node   string    `json:"node,omitempty"` // description of that port's node
	PKeys  []ib.PKey `json:"p_keys"`         // of tenants, with the membership bit
	Time   time.Time `json:"time"`           // when this was found first
}

// Tables holds what was found, by place.
func Tables() store.Collection[Found] { return store.NewCollection[Found]("review/found", 1) }
