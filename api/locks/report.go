package locks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"time"

	"portcullis/api/events"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// reportLife is how long after its orders an agent may say what became of them.
// Adapters may be reset twice, two minutes each.
const reportLife = time.Hour

// reportRecord is a ticket to report once. It came with orders, which evidence of
// the host's boot earned.
type reportRecord struct {
	Host     string              `json:"host"`
	Expires  time.Time           `json:"expires"`
	Adapters map[ib.GUID]awaited `json:"adapters"`
}

// awaited is an adapter as it stood before its order.
type awaited struct {
	Epoch uint32 `json:"epoch"`          // it was to be locked with; 0: none
	Held  *Held  `json:"held,omitempty"` // what it was proven to hold, if no order was under way
}

func reports() store.Collection[reportRecord] {
	return store.NewCollection[reportRecord]("lock-reports", 1)
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// await notes how an adapter stands, before it gets an order.
func (s *Service) await(ctx context.Context, tx *store.Tx, guid ib.GUID) (awaited, error) {
	rec, err := optional(Records().Get(ctx, tx, guid.String()))
	a := awaited{Epoch: uint32(rec.Epoch)}
	if rec.settled() {
		a.Held = rec.Held
	}
	return a, err
}

// kinds says which event a code of an agent is.
var kinds = map[string]string{
	"foreign": events.LockUnlockFailed, "out-of-band": events.LockUnlockFailed, "not-ours": events.LockUnlockFailed,
	"unreadable": events.LockFailed, "refused": events.LockFailed, "not-compliant": events.LockFailed, "reset": events.LockFailed,
	"firewall": events.LockFailed, "not-held": events.LockFailed, "challenge": events.LockFailed, "order": events.LockFailed,
}

var hexPattern = regexp.MustCompile(`^([0-9a-f]{2})*$`)

// AwaitsReport refuses a ticket that is unknown, expired or used, as Report would.
func (s *Service) AwaitsReport(ctx context.Context, ticket string) error {
	_, err := s.reportOf(ctx, s.o.Store, ticket)
	return err
}

// reportOf returns the record of a ticket to report.
func (s *Service) reportOf(ctx context.Context, r store.Reader, ticket string) (reportRecord, error) {
	rec, err := reports().Get(ctx, r, hash(ticket))
	if errors.Is(err, store.ErrNotFound) || err == nil && !s.now().Before(rec.Value.Expires) {
		return reportRecord{}, refuse(refusal.Refused, "ticket_unknown", "orders come with a ticket for one report", "the ticket is unknown, expired or used")
	}
	return rec.Value, err
}

// Report takes an agent's report of the outcome of its orders, for the ticket that came with them, which is used up.
// Operators see it as a host's word; no lock, epoch or host changes by it.
func (s *Service) Report(ctx context.Context, ticket string, in v1.LockReport) error {
	_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := s.reportOf(ctx, tx, ticket)
		if err != nil {
			return err
		}
		reports().Delete(tx, hash(ticket))
		said := map[ib.GUID]bool{}
		for i := range in.Adapters {
			o := &in.Adapters[i]
			a, ordered := rec.Adapters[o.NodeGUID]
			if !ordered || said[o.NodeGUID] {
				return refuse(refusal.Refused, "lock_adapter", "report each adapter that was ordered once", "adapter %v had no order of host %s, or is reported twice", o.NodeGUID, rec.Host)
			}
			said[o.NodeGUID] = true
			if err := s.outcome(ctx, tx, rec.Host, &a, o); err != nil {
				return err
			}
		}
		return nil
	})
	return explain(err)
}

// outcome records the outcome for one adapter.
func (s *Service) outcome(ctx context.Context, tx *store.Tx, host string, a *awaited, o *v1.LockOutcome) error {
	kind, failed := kinds[o.Code]
	if !failed && o.Code != v1.LockDone {
		return refuse(refusal.Invalid, "lock_report", "", "adapter %v: code %.32q is none", o.NodeGUID, o.Code)
	}
	if failed {
		expected, do := "locked as ordered", doFailed
		switch {
		case kind == events.LockUnlockFailed && a.Epoch == 0:
			expected, do = "an open adapter: no key was given out for it before", doForeign
		case kind == events.LockUnlockFailed:
			expected, do = fmt.Sprintf("to open with a key of epoch %d or before", a.Epoch), doForeign
		}
		if err := s.tell(ctx, tx, events.About(kind, events.ByHost, o.Code, host, o.NodeGUID, expected, o.Detail, do)); err != nil {
			return err
		}
	}
	items := make([]attest.Item, 0, len(o.Found))
	for _, f := range o.Found {
		if !hexPattern.MatchString(f.Current) || !hexPattern.MatchString(f.Next) {
			return refuse(refusal.Invalid, "lock_report", "", "adapter %v: a value is not in hexadecimal digits", o.NodeGUID)
		}
		items = append(items, attest.Item{
			Class: f.Class, Index: f.Index, Port: f.Port, Host: f.Host, Function: f.Function,
			Supported: attest.Yes, Current: f.Current, Next: f.Next,
		})
	}
	if a.Held == nil {
		return nil
	}
	if expected, seen := a.Held.differ(valuesOf(items)); expected != "" {
		return s.tell(ctx, tx, events.About(events.LockChanged, events.ByHost, "value", host, o.NodeGUID, expected, seen, doChanged))
	}
	return nil
}
