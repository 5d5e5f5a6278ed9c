package adoptions

import (
	"time"

	"portcullis/api/adoption"
	"portcullis/api/store"
)

// Record is an adoption.
type Record struct {
	State       string    `json:"state"` // of package v1
	Reason      string    `json:"reason"`
	By          string    `json:"by"`
	Staged      time.Time `json:"staged"`
	ConfirmedBy string    `json:"confirmed_by,omitempty"`
	Confirmed   time.Time `json:"confirmed,omitzero"`
	Deadline    time.Time `json:"deadline"`
	Warned      bool      `json:"warned,omitempty"` // an event named the deadline
	Ended       time.Time `json:"ended,omitzero"`
	Memberships int       `json:"memberships"`
	Digest      string    `json:"digest"`

	Ports []adoption.Port `json:"ports,omitempty"` // while it is staged
}

// Records holds adoptions by id.
func Records() store.Collection[Record] { return store.NewCollection[Record]("adoptions", 1) }
