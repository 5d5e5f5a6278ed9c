package admission

import (
	"context"
	"fmt"
	"time"

	"portcullis/api/audit"
	"portcullis/api/reason"
	"portcullis/api/refusal"
	"portcullis/api/store"
)

// Ordered is a release that an operator ordered on a machine of the service while the store
// was away. It was carried out in the fabric then.
type Ordered struct {
	Host    string
	Cluster string // that the host was in, as far as the machine knew; empty: it had no grant
	Epoch   int64  // of that assignment; 0: not known
	Actor   string
	Time    time.Time
	Reason  string
}

// Record does in the store what was ordered while it was away, and returns the revision from which on the store has it. It is
// safe to repeat. A host that was assigned again since stays in its cluster: the order was about the assignment before. Where
// that is not known the host is released. Adopted memberships of its ports end in any case.
func (s *Service) Record(ctx context.Context, o Ordered) (revision int64, err error) {
	ctx = reason.With(ctx, o.Reason)
	written, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		snap, err := tx.Snapshot(ctx)
		if err != nil {
			return err
		}
		revision = snap.Revision
		f, err := s.gather(ctx, tx, o.Host)
		if refusal.IsKind(err, refusal.NotFound) {
			return s.noteOrdered(ctx, tx, &o, "unknown", "inventory has no such host any longer")
		}
		if err != nil {
			return err
		}
		adopted := func() (string, error) {
			n, err := endAdopted(ctx, tx, f)
			return endedToo(n), err
		}
		switch {
		case f.rec.Cluster == "":
			too, err := adopted()
			if err != nil {
				return err
			}
			return s.noteOrdered(ctx, tx, &o, "released", "the host is in no cluster: it was released already"+too)
		case o.Epoch > 0 && f.rec.Epoch > o.Epoch, o.Epoch == 0 && o.Cluster != "" && f.rec.Cluster != o.Cluster:
			too, err := adopted() // they are of no assignment
			if err != nil {
				return err
			}
			return s.noteOrdered(ctx, tx, &o, "superseded",
				fmt.Sprintf("the host was assigned again since the machine knew it in cluster %s, and stays in cluster %s", o.Cluster, f.rec.Cluster)+too)
		}
		if err := s.release(ctx, tx, f, o.Actor); err != nil {
			return err
		}
		if err := s.noteOrdered(ctx, tx, &o, "recorded", o.Reason); err != nil {
			return err
		}
		_, _, err = s.settle(ctx, tx, o.Host)
		return err
	})
	return max(revision, written), err
}

func (s *Service) noteOrdered(ctx context.Context, tx *store.Tx, o *Ordered, code, detail string) error {
	what := fmt.Sprintf("release ordered at %s while the store was away", o.Time.UTC().Format(time.RFC3339))
	if detail != "" {
		what += "; " + detail
	}
	return s.log(ctx, tx, &audit.Change{Actor: o.Actor, Action: "host.release.ordered", Object: "host/" + o.Host, Code: code, Detail: what})
}
