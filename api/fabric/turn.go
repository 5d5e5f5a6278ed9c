package fabric

import (
	"context"
	"time"

	"portcullis/api/store"
	"portcullis/fabricsm/sm"
)

// Turn is a Link for callers that have no goroutines and whose time is virtual. It does on a call what Link does on each
// event.
type Turn struct {
	link *Link
	book *book
}

// NewTurn makes one over a store.
func NewTurn(o Options) *Turn {
	l := New(o)
	b := newBook(l.now, l.limits)
	b.trustsState = o.TrustsState
	return &Turn{link: l, book: b}
}

// Store returns what the subnet manager keeps, as Link does: a driver.Store.
func (t *Turn) Store() *Link { return t.link }

// Intent returns what the store wants now.
func (t *Turn) Intent(ctx context.Context) (sm.Intent, error) {
	snap, err := t.link.store.Snapshot(ctx)
	if err != nil {
		return sm.Intent{}, err
	}
	if err := t.book.load(ctx, source{Snapshot: snap}); err != nil {
		return sm.Intent{}, err
	}
	t.link.publish(t.book)
	t.link.name(t.book)
	return <-t.link.intents, nil
}

// Alone returns what is wanted while the store does not answer, which it must have done before: what it wanted last,
// without what operators removed since.
func (t *Turn) Alone() sm.Intent {
	t.link.Removed()
	return <-t.link.intents
}

// Report brings the reports and the view of the subnet manager into the store. It reports whether the intent must be sent
// again; see Link.
func (t *Turn) Report(ctx context.Context, events []sm.Event, v *sm.View) (again bool, err error) {
	r := report{events: events, view: v, known: -1}
	if v != nil && !v.Repeats {
		r.known = len(events)
	}
	again = t.book.observe(r)
	t.book.written = time.Time{} // nodes are due, whatever the clock says
	t.book.tick()
	t.link.tellSight(t.book)
	return again, t.link.write(ctx, t.book)
}

// Stored returns the store that it works on.
func (t *Turn) Stored() *store.Store { return t.link.store }
