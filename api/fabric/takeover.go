package fabric

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"portcullis/api/fabric/records"
	"portcullis/api/leader"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// maxDevice bounds how a device describes itself in a record, in bytes.
const maxDevice = 64

// takeover is what a book has of the takeover of a fabric that was never managed.
type takeover struct {
	record   records.Takeover
	reserved []ib.PKey // that are never kept

	fresh  []records.Found          // reported since the last look at a view
	due    map[string]records.Found // that the store does not have yet
	stored map[string]bool          // that it has, and that are not decided about
	rests  bool                     // the subnet manager has settled the fabric as the store wants it
	ended  bool                     // it ended since an intent was last made
}

func (t *takeover) isOpen() bool { return t.record.State == records.TakeoverOpen }

// load reads whether it is open, and what is not decided about.
func (t *takeover) load(ctx context.Context, from source) error {
	recs, err := list(ctx, from, records.Takeovers())
	if err != nil {
		return err
	}
	finds, err := list(ctx, from, records.Finds())
	if err != nil {
		return err
	}
	t.record, t.stored = records.Takeover{}, make(map[string]bool, len(finds))
	for _, r := range recs {
		t.record = r.Value
	}
	for _, f := range finds {
		t.stored[f.Key] = true
	}
	return nil
}

// changed takes a change of the store.
func (t *takeover) changed(ch store.Change) {
	if key, ok := records.Finds().KeyOf(ch.Key); ok && ch.Value == nil {
		delete(t.stored, key)
	}
}

// take takes a report of the subnet manager.
func (t *takeover) take(e *sm.InheritedPKeys) {
	if t.isOpen() {
		t.fresh = append(t.fresh, records.Found{GUID: e.GUID, Place: e.Place, PKeys: e.PKeys})
	}
}

// takesOver returns what ports keep that no record explains. P_Keys of which a host of ours is a member, or was until that is proven
// to be over, are kept nowhere.
func (b *book) takesOver() sm.Takeover {
	t := sm.Takeover{Open: b.takeover.isOpen() && b.mark == nil}
	if !t.Open {
		return t
	}
	except := make(map[ib.PKey]bool, len(b.takeover.reserved))
	for _, k := range b.takeover.reserved {
		except[k.Base()] = true
	}
	for k, g := range b.grants {
		if !g.adopted {
			except[k.PKey.Base()] = true
		}
	}
	t.Except = slices.Sorted(maps.Keys(except))
	return t
}

// lookTakeover takes the newest view.
func (b *book) lookTakeover() {
	t := &b.takeover
	if !t.isOpen() || b.seen == nil {
		return
	}
	for i := range t.fresh {
		f := &t.fresh[i]
		if id := b.portOf(f.GUID, f.Place); id != topo.None {
			f.Device = clipDevice(b.seen.fabric.NodeOf(id).Description)
		}
		if t.due == nil {
			t.due = map[string]records.Found{}
		}
		t.due[f.Key()] = *f
	}
	t.fresh = nil
	s := b.sight.newest()
	t.rests = b.seen.settled && b.seen.smState == ib.SMMaster && b.seen.revision > 0 && !s.Frozen()
}

func clipDevice(text string) string { return text[:min(len(text), maxDevice)] }

// pending returns up to n writes: what was found, or after all of that was decided about, the end of the takeover.
func (t *takeover) pending(n int, now func() records.Takeover) (out []write) {
	if !t.isOpen() || n <= 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(t.due)) {
		if len(out) == n {
			return out
		}
		f := t.due[key]
		out = append(out, write{
			put:  func(_ context.Context, tx *store.Tx) error { return records.Finds().Put(tx, key, f) },
			done: func() { delete(t.due, key); t.stored[key] = true },
		})
	}
	if t.rests && len(t.fresh)+len(t.due)+len(t.stored) == 0 {
		over := now()
		out = append(out, write{
			put:  func(_ context.Context, tx *store.Tx) error { return records.Takeovers().Put(tx, records.Master, over) },
			done: func() { t.record, t.ended = over, true },
		})
	}
	return out
}

// takeoverDone returns the record of the takeover once it is over.
func (b *book) takeoverDone() records.Takeover {
	over := b.takeover.record
	over.State, over.Ended, over.Cause = records.TakeoverOver, b.clock(), records.TakeoverDone
	return over
}

// tookOver reports whether the takeover ended since it was last called: the intent is another one.
func (b *book) tookOver() bool {
	ended := b.takeover.ended
	b.takeover.ended = false
	return ended
}

// TakeOver decides, before the subnet manager is started, whether it takes over a fabric that was never managed, and records
// that. It reports whether the takeover is open: ports keep P_Keys that no record explains until they are recorded, and nothing
// may be removed before an intent says so. While the store is away it is as the Link before has it.
func (l *Link) TakeOver(ctx context.Context) (open bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if copies := l.ahead.facts.Load(); copies != nil {
		recs, err := list(ctx, source{l.store.At(copies.Revision()), copies}, records.Takeovers())
		if err == nil && len(recs) == 1 && recs[0].Value.State == records.TakeoverOver {
			return false, nil
		}
	}
	var was, rec records.Takeover
	_, err = l.store.Update(ctx, func(tx *store.Tx) error {
		if err := l.guard(ctx, tx); err != nil {
			return err
		}
		if was, err = store.Optional(records.Takeovers().Get(ctx, tx, records.Master)); err != nil {
			return err
		}
		if rec, err = l.takeoverNow(ctx, tx, was); err != nil || rec == was {
			return err
		}
		return records.Takeovers().Put(tx, records.Master, rec)
	})
	if err != nil {
		if said := l.lastSaid(); said.known && !errors.Is(err, leader.ErrDeposed) {
			return said.intent.Takeover.Open, nil
		}
		return false, fmt.Errorf("whether the fabric was managed before: %w", err)
	}
	if rec.State == records.TakeoverOpen && was.State == "" { // once, however often the port is opened
		l.log.Warn("this fabric was never managed: ports keep the P_Keys that they have until a person decides", "hint", "portcullis adopt list, once the fabric is settled")
	}
	return rec.State == records.TakeoverOpen, nil
}

// takeoverNow returns what is to be recorded of the takeover.
func (l *Link) takeoverNow(ctx context.Context, r store.Reader, was records.Takeover) (records.Takeover, error) {
	if was.State == records.TakeoverOver {
		return was, nil
	}
	rec := was
	if was.State == "" {
		rec = records.Takeover{State: records.TakeoverOpen, Began: l.now()}
	}
	over := func(cause string) (records.Takeover, error) {
		rec.State, rec.Ended, rec.Cause = records.TakeoverOver, l.now(), cause
		return rec, nil
	}
	mark, err := review.Current(ctx, r)
	switch {
	case err != nil:
		return rec, err
	case mark != nil:
		return over(records.TakeoverReview)
	case was.State == "":
		managed, err := isManaged(ctx, r)
		if err != nil {
			return rec, err
		}
		if managed {
			return over(records.TakeoverManaged)
		}
	}
	if l.removesForeign {
		return over(records.TakeoverRemove)
	}
	return rec, nil
}

// isManaged reports whether the store has anything of a fabric.
func isManaged(ctx context.Context, r store.Reader) (bool, error) {
	facts, _, err := Facts().List(ctx, r, "")
	if err != nil || len(facts) > 0 {
		return true, err
	}
	nodes, _, err := records.Nodes().List(ctx, r, "")
	return len(nodes) > 0, err
}
