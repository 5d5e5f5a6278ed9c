package anchor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/events"
	"portcullis/api/review"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Causes of events.StateRolledBack.
const (
	causeShorter = "shorter" // the log ends before an anchor
	causeDiffers = "differs" // it has another entry there
	causeBranch  = "branch"  // it lacks the decision about an earlier roll-back
)

// maxCompared bounds the anchors of one source whose entries are looked up. An entry has the hash of all before it, so
// the newest anchor that the log has vouches for the others.
const maxCompared = 64

// found is what one source has.
type found struct {
	source  string
	anchors []chain.Anchor
}

// compare holds anchors against a log that ends at head, and returns the first contradiction: the anchor that is
// furthest ahead, else the newest one that the log has another entry for. nil: there is none.
func compare(ctx context.Context, r store.Reader, head chain.Head, from []found) (*review.RolledBack, error) {
	var worst *review.RolledBack
	for _, f := range from {
		for i := range f.anchors {
			a := &f.anchors[i]
			ahead := a.Branch > head.Branch || a.Branch == head.Branch && a.Seq > head.Seq
			if !ahead || worst != nil && !a.Later(&worst.Anchor) {
				continue
			}
			worst = &review.RolledBack{Source: f.source, Cause: causeShorter, Anchor: *a, Head: head}
			if a.Branch > head.Branch {
				worst.Cause = causeBranch
			}
		}
	}
	if worst != nil {
		return worst, nil
	}
	for _, f := range from {
		a, err := differs(ctx, r, head, f.anchors)
		if err != nil {
			return nil, err
		}
		if a != nil && (worst == nil || a.Later(&worst.Anchor)) {
			worst = &review.RolledBack{Source: f.source, Cause: causeDiffers, Anchor: *a, Head: head}
		}
	}
	return worst, nil
}

// differs returns the newest of the anchors, which are by Seq, that the log has another entry for.
func differs(ctx context.Context, r store.Reader, head chain.Head, list []chain.Anchor) (*chain.Anchor, error) {
	last, compared := (*chain.Anchor)(nil), 0
	for i := range slices.Backward(list) {
		a := &list[i]
		if a.Branch != head.Branch || last != nil && last.Seq == a.Seq && last.Hash == a.Hash {
			continue
		}
		if last = a; compared == maxCompared {
			return nil, nil
		}
		compared++
		e, err := audit.Get(ctx, r, a.Seq)
		if errors.Is(err, store.ErrNotFound) {
			return a, nil
		}
		if err != nil {
			return nil, err
		}
		if sum, err := e.Sum(); err != nil || sum != a.Hash {
			return a, err
		}
	}
	return nil, nil
}

// Judge holds the log against the anchors that can be read. Where they contradict it, the state is in review when it
// returns. It must have returned before anything of the state counts. The error is one of the store.
func (k *Keeper) Judge(ctx context.Context) error {
	from := k.readAll(ctx)
	snap, err := k.o.Store.Snapshot(ctx)
	if err != nil {
		return err
	}
	head, err := audit.Latest(ctx, snap)
	if err != nil {
		return err
	}
	back, err := compare(ctx, snap, head, from)
	if err != nil {
		return err
	}
	if back != nil {
		return k.rolledBack(ctx, back)
	}
	n := 0
	for _, f := range from {
		n += len(f.anchors)
	}
	k.o.Log.Info("the audit log has what was anchored of it", "anchors", n, "entries", head.Seq)
	return k.goOnClearing(ctx)
}

// rolledBack has the state reviewed because of a contradiction, unless it is for this one already.
func (k *Keeper) rolledBack(ctx context.Context, back *review.RolledBack) error {
	now := k.o.Now().UTC().Round(0)
	back.Found = now
	fresh := false
	_, err := k.o.Store.Update(ctx, func(tx *store.Tx) error {
		fresh = false
		mark, err := review.Current(ctx, tx)
		if err != nil {
			return err
		}
		if mark != nil && mark.RolledBack != nil && !back.Anchor.Later(&mark.RolledBack.Anchor) {
			return nil
		}
		fresh = true
		if mark == nil {
			if mark, err = k.newMark(ctx, tx, now, back.Head); err != nil {
				return err
			}
		}
		mark.RolledBack, mark.Clearing = back, true
		return errors.Join(review.Marks().Put(tx, review.Key, *mark), events.Record(ctx, tx, now, v1.Event{
			Type: events.StateRolledBack, By: events.ByService, Cause: back.Cause,
			Expected: "the audit log to have what was anchored of it", Seen: back.String(),
			Do: "portcullis restore review; nothing is granted that the fabric does not have, until portcullis restore end",
		}))
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.held = true
	k.mu.Unlock()
	if fresh {
		k.o.Log.Error("the state was rolled back: it is in review, and only what the fabric has, too, is granted", "found", back.String(), "cause", back.Cause)
	} else {
		k.o.Log.Warn("the state was rolled back, and is in review", "found", back.String())
	}
	return k.goOnClearing(ctx)
}

func (k *Keeper) newMark(ctx context.Context, r store.Reader, now time.Time, head chain.Head) (*review.Mark, error) {
	origin, err := audit.Origin(ctx, r)
	mark := &review.Mark{Since: now, Origin: origin, Audit: head}
	if err != nil || head.Seq == 0 {
		return mark, err
	}
	e, err := audit.Get(ctx, r, head.Seq)
	if err == nil {
		mark.Taken = e.Time
	}
	return mark, err
}

// goOnClearing removes, where a mark asks for it, the decisions of an earlier review, which was not about this state, the series of
// events, and the log of receipts. If nothing else uses the store, it also removes the state's record of what the fabric was seen
// to be. Where others use the store, that record is from the fabric or will be.
func (k *Keeper) goOnClearing(ctx context.Context) error {
	mark, err := review.Current(ctx, k.o.Store)
	if err != nil || mark == nil || !mark.Clearing {
		return err
	}
	if err := k.clear(ctx); err != nil {
		return err
	}
	_, err = k.o.Store.Update(ctx, func(tx *store.Tx) error {
		mark, err := review.Current(ctx, tx)
		if err != nil || mark == nil {
			return err
		}
		mark.Clearing = false
		return review.Marks().Put(tx, review.Key, *mark)
	})
	return err
}

// clearBatch bounds the records of one transaction.
const clearBatch = 100

// clear removes the records of review.Seen but the mark, or the decisions, the series of events and the log of receipts alone.
func (k *Keeper) clear(ctx context.Context) error {
	snap, err := k.o.Store.Snapshot(ctx)
	if err != nil {
		return err
	}
	for _, prefix := range review.Seen() {
		always := prefix == review.Decisions().Name() || prefix == review.EventSeries || strings.HasPrefix(prefix, review.ReceiptLog)
		if prefix == review.Marks().Name() || !k.o.Alone && !always {
			continue
		}
		if err := k.removeAll(ctx, snap, prefix); err != nil {
			return err
		}
	}
	return nil
}

// removeAll removes the records with a prefix, some at a time.
func (k *Keeper) removeAll(ctx context.Context, snap store.Snapshot, prefix string) error {
	for after := prefix; ; {
		items, err := snap.Items(ctx, after, clearBatch)
		if err != nil {
			return err
		}
		var keys []string
		for _, i := range items {
			if strings.HasPrefix(i.Key, prefix) {
				keys = append(keys, i.Key)
			}
		}
		if len(keys) == 0 {
			return nil
		}
		if err := k.o.Store.Remove(ctx, keys); err != nil {
			return err
		}
		after = keys[len(keys)-1]
	}
}
