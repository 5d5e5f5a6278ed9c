package fabric

import (
	"context"
	"time"

	"portcullis/api/store"
	"portcullis/fabricsm/sm"
)

// Turn is a Link for who has no goroutines and whose time is virtual: what Link does
// whenever something happens, it does when it is told to.
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

// Store gives what the subnet manager keeps, as Link does: a driver.Store.
func (t *Turn) Store() *Link { return t.link }

// Intent gives what the store wants now.
func (t *Turn) Intent(ctx context.Context) (sm.Intent, error) {
	snap, err := t.link.store.Snapshot(ctx)
	if err != nil {
		return sm.Intent{}, err
	}
	if err := t.book.load(ctx, snap); err != nil {
		return sm.Intent{}, err
	}
	t.link.publish(t.book)
	t.link.name(t.book)
	return <-t.link.intents, nil
}

// Alone gives what is wanted while the store does not answer, which it must have done
// before: what it wanted last, without what operators removed since.
func (t *Turn) Alone() sm.Intent {
	t.link.Removed()
	return <-t.link.intents
}

// Tell brings into the store what the subnet manager told and shows. It reports
// whether the intent must be said again; see Link.
func (t *Turn) Tell(ctx context.Context, events []sm.Event, v *sm.View) (again bool, err error) {
	again = t.book.observe(events, v)
	t.book.written = time.Time{} // nodes are due, whatever the clock says
	t.book.tick()
	t.link.tellSight(t.book)
	return again, t.link.write(ctx, t.book)
}

// Stored gives the store that it works on.
func (t *Turn) Stored() *store.Store { return t.link.store }
