// Package review has the records of a restored state that waits to be compared with the fabric.
//
// A restore writes the Mark, and so does a service that finds its state rolled back (package anchor). While it stands, package fabric grants only what switch ports already have, keeps what
// no record explains, and writes down what it finds (Found). Package admission adds no grant without a
// Decision about the host. The end of the review removes all of these records.
package review

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"portcullis/api/audit/chain"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// Mark says that the state was restored.
type Mark struct {
	Since time.Time `json:"since"` // when it was restored, or found to be rolled back
	// Incomplete is set until every record was written: a service must not start on such a state.
	Incomplete bool `json:"incomplete,omitempty"`

	// For a restored state: of the backup that it was restored from. For a state found to be rolled back, Taken is the time
	// of the last entry of the audit log, and Revision is 0.
	Taken    time.Time  `json:"taken"`
	Revision int64      `json:"revision"`
	Origin   string     `json:"origin,omitempty"` // hash of the first entry of the audit log
	Audit    chain.Head `json:"audit"`            // its end

	// RolledBack is set where the audit log is not what was anchored of it.
	RolledBack *RolledBack `json:"rolled_back,omitempty"`
	// Recovered names the members that were lost, where the store was recovered from one that was left: their last records
	// may be missing. Taken is the time of the last entry of the audit log, and Revision is 0.
	Recovered []string `json:"recovered,omitempty"`
	// Clearing is set until what the fabric was seen to be was removed, where that must go: a start goes on with it.
	Clearing bool `json:"clearing,omitempty"`
}

// RolledBack is an anchor that the audit log does not have.
type RolledBack struct {
	Found  time.Time    `json:"found"`
	Source string       `json:"source"` // where the anchor is, for example "file:/var/lib/anchors/portcullis"
	Cause  string       `json:"cause"`  // as of the event
	Anchor chain.Anchor `json:"anchor"`
	Head   chain.Head   `json:"head"` // of the log, when that was found
}

// String says what was found, in one line.
func (r *RolledBack) String() string {
	return fmt.Sprintf("audit entry %d with hash %.12s was anchored at %s in %s, and %s", r.Anchor.Seq, r.Anchor.Hash, r.Anchor.Time.Format(time.RFC3339), r.Source, r.has())
}

// has says what the log has in place of the anchor.
func (r *RolledBack) has() string {
	switch {
	case r.Anchor.Branch > r.Head.Branch:
		return fmt.Sprintf("the audit log lacks the decision about an earlier roll-back; it ends at entry %d", r.Head.Seq)
	case r.Anchor.Seq > r.Head.Seq:
		return fmt.Sprintf("the audit log ends at entry %d", r.Head.Seq)
	default:
		return "the audit log has another entry there"
	}
}

// From says where the state comes from, for people.
func (m *Mark) From() string {
	switch {
	case m.RolledBack != nil:
		return "it was rolled back: " + m.RolledBack.String()
	case len(m.Recovered) > 0:
		return "it was recovered without the lost members " + strings.Join(m.Recovered, ", ") + ", which may have had later records"
	default:
		return "it was restored from a backup of " + m.Taken.Format(time.RFC3339)
	}
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

// EventSeries is the collection that numbers events. What follows a roll-back is another series, also where other instances use
// the store.
const EventSeries = "event-series/"

// ReceiptLog begins the names of the collections of the log of receipts. After a roll-back it is another log, also where other instances use the store:
// to go on with what is left would be a second history under one name.
const ReceiptLog = "receipt-log/"

// Seen are the collections of which a restored or rolled back state says nothing. The first ones say what the fabric
// was seen to be, with revisions of another store: a membership must not count as read back because of a number. Those
// after them ended with a lease, and nothing would end them now; sessions of the past end with the keys that sealed them. The
// positions of events count revisions of another store, too. The log of receipts lacks some that were issued. The last are those of
// another review.
func Seen() []string {
	return []string{
		"fabric/memberships/", "fabric/ports/", "fabric/nodes/", "fabric/sm/", "isolation/standing/",
		"session-keys/", "sessions-used/", "seals/", "unsealed/", "lock-tickets/", "lock-reports/", "idempotency/",
		"leader/now/", "leader/candidates/", "audit/verifying/",
		EventSeries, "receipt-log/tree/", "receipt-log/tiles/", "receipt-log/places/",
		"review/mark/", "review/decisions/", "review/found/",
	}
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

// Forbid refuses what changes a P_Key's meaning while a restored state is in review.
func Forbid(ctx context.Context, r store.Reader, what string) error {
	mark, err := Current(ctx, r)
	if err != nil || mark == nil {
		return err
	}
	return refusal.New(refusal.Conflict, "in_review", "portcullis restore review shows what is left to decide; portcullis restore end ends the review",
		"the state is in review since %s, and %s: a P_Key that it takes for free may be in use", mark.Since.Format(time.RFC3339), what)
}
