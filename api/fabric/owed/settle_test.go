package owed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/api/audit"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/fabricsm/sm"
)

var errAway = errors.New("the store is away")

// ledger is the test's view of a store: the records that Settle brought to it.
type ledger struct {
	got      []string
	revision int64
	removals error // why these are refused
	facts    error
}

func (l *ledger) carry() Carry {
	return Carry{
		Removal: func(_ context.Context, r Removal) (int64, error) {
			if l.removals != nil {
				return 0, l.removals
			}
			l.revision++
			l.got = append(l.got, "removal of "+r.Host)
			return l.revision, nil
		},
		Facts: func(_ context.Context, facts []sm.Fact) error {
			if l.facts != nil {
				return l.facts
			}
			for i := range facts {
				l.got = append(l.got, fmt.Sprintf("%s=%d", Key(&facts[i]), facts[i].LID))
			}
			return nil
		},
	}
}

func (l *ledger) brought(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(l.got, want) {
		t.Errorf("the store was brought %q, want %q", l.got, want)
	}
	l.got = nil
}

func audited(t *testing.T, st *store.Store) (objects []string) {
	t.Helper()
	recs, _, err := audit.Entries().List(t.Context(), st, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		objects = append(objects, r.Value.Object)
	}
	return objects
}

// TestSettle: removals come first. A record that the store took is owed no longer, also after a restart. One that it did
// not take is.
func TestSettle(t *testing.T) {
	dir, st, l := t.TempDir(), store.New(memory.New(time.Now), ""), &ledger{revision: 41}
	k := open(t, dir)
	for _, f := range []sm.Fact{lid(1, 7), lid(2, 8), lid(1, 9)} {
		if err := k.AddFacts([]sm.Fact{f}); err != nil {
			t.Fatal(err)
		}
	}
	k.AddNote(note("fabric/0x1/2"))
	k.AddRemoval(removal("h2"))
	k.AddRemoval(removal("h1"))

	l.removals, l.facts = errAway, errAway
	if err := k.Settle(t.Context(), st, l.carry()); !errors.Is(err, errAway) {
		t.Errorf("Settle = %v, want the store's error", err)
	}
	l.brought(t)
	if s := k.State(); s.Removals != 2 || s.Facts != 2 || s.Notes != 0 {
		t.Errorf("state %+v; want all but the note", s)
	}
	if got := audited(t, st); !slices.Equal(got, []string{"fabric/0x1/2"}) {
		t.Errorf("audited %q", got)
	}

	l.removals = nil
	if err := k.Settle(t.Context(), st, l.carry()); !errors.Is(err, errAway) {
		t.Errorf("Settle = %v, want the store's error", err)
	}
	l.brought(t, "removal of h1", "removal of h2")
	owes(t, open(t, dir), Entry{Facts: []sm.Fact{lid(2, 8), lid(1, 9)}})

	// The store has the removals as of revisions 42 and 43. A reader that knows less keeps them.
	for _, tt := range []struct {
		revision int64
		want     []string
	}{{41, []string{"h1", "h2"}}, {42, []string{"h2"}}, {43, nil}, {41, nil}} {
		var got []string
		for h := range k.Removed(tt.revision) {
			got = append(got, h)
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("as of revision %d these are removed: %q, want %q", tt.revision, got, tt.want)
		}
	}

	l.facts = nil
	if err := k.Settle(t.Context(), st, l.carry()); err != nil {
		t.Fatal(err)
	}
	l.brought(t, Key(new(lid(2, 8)))+"=8", Key(new(lid(1, 9)))+"=9")
	if s := k.State(); s != (State{}) {
		t.Errorf("state %+v, want nothing owed", s)
	}
	if err := k.Settle(t.Context(), st, l.carry()); err != nil {
		t.Fatal(err)
	}
	l.brought(t)
	owes(t, open(t, dir))
}

// TestOrderedAgain: an order that comes while the one before it is recorded is recorded too.
func TestOrderedAgain(t *testing.T) {
	k, l := New(quiet), &ledger{}
	k.AddRemoval(removal("h1"))
	c, first := l.carry(), true
	record := c.Removal
	c.Removal = func(ctx context.Context, r Removal) (int64, error) {
		if first {
			first = false
			later := removal("h1")
			later.Epoch++
			k.AddRemoval(later)
		}
		return record(ctx, r)
	}
	st := store.New(memory.New(time.Now), "")
	for range 3 {
		if err := k.Settle(t.Context(), st, c); err != nil {
			t.Fatal(err)
		}
	}
	l.brought(t, "removal of h1", "removal of h1")
}

// TestNewerFactWhileSettling: a fact that comes while an older one of its key is on its way
// is owed still.
func TestNewerFactWhileSettling(t *testing.T) {
	k, l := New(quiet), &ledger{}
	if err := k.AddFacts([]sm.Fact{lid(1, 7)}); err != nil {
		t.Fatal(err)
	}
	c, first := l.carry(), true
	save := c.Facts
	c.Facts = func(ctx context.Context, facts []sm.Fact) error {
		if first {
			first = false
			if err := k.AddFacts([]sm.Fact{lid(1, 8)}); err != nil {
				return err
			}
		}
		return save(ctx, facts)
	}
	st := store.New(memory.New(time.Now), "")
	for range 3 {
		if err := k.Settle(t.Context(), st, c); err != nil {
			t.Fatal(err)
		}
	}
	l.brought(t, Key(new(lid(1, 7)))+"=7", Key(new(lid(1, 8)))+"=8")
}

// TestKnown: facts are those that were loaded, as changed by what was saved and owed since.
func TestKnown(t *testing.T) {
	k := New(quiet)
	if _, known := k.Known(); known {
		t.Error("facts are known that were never loaded")
	}
	if err := k.AddFacts([]sm.Fact{lid(3, 30)}); err != nil {
		t.Fatal(err)
	}
	if got := k.Loaded([]sm.Fact{lid(1, 10), lid(2, 20), lid(3, 3)}); !slices.Equal(got, []sm.Fact{lid(1, 10), lid(2, 20), lid(3, 30)}) {
		t.Errorf("loaded %v: what is owed is newer", got)
	}
	k.Saved([]sm.Fact{lid(1, 11)})
	if err := k.AddFacts([]sm.Fact{lid(2, 0)}); err != nil { // it is taken back
		t.Fatal(err)
	}
	if got, known := k.Known(); !known || !slices.Equal(got, []sm.Fact{lid(1, 11), lid(3, 30)}) {
		t.Errorf("known %v, %t", got, known)
	}
}
