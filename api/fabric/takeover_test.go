package fabric

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/leader"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// settledAt has a view be settled under the store's revision.
func settledAt(revision int64) func(*observed) {
	return func(o *observed) { o.revision = revision }
}

// finds returns what waits to be decided about.
func (r *sightRig) finds() (out []string) {
	r.t.Helper()
	list, _, err := records.Finds().List(r.t.Context(), r.store, "")
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range list {
		out = append(out, list[i].Key+" "+list[i].Value.Device)
	}
	return out
}

func (r *sightRig) write(fn func(tx *store.Tx) error) {
	r.t.Helper()
	if _, err := r.store.Update(r.t.Context(), fn); err != nil {
		r.t.Fatal(err)
	}
}

// follows has the book take all of the store again, as after a change.
func (r *sightRig) follows() {
	r.t.Helper()
	snap, err := r.store.Snapshot(r.t.Context())
	if err == nil {
		err = r.book.load(r.t.Context(), source{Snapshot: snap})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestTakeoverEndsWhenRecorded: what is reported is written, and the takeover ends once when nothing of it is left to be decided
// about and the fabric is settled. An instance that leads meanwhile goes on with it.
func TestTakeoverEndsWhenRecorded(t *testing.T) {
	r := newSightRig(t)
	r.link.log = storetest.Quiet()
	if open, err := r.link.TakeOver(t.Context()); err != nil || !open {
		t.Fatalf("open %v, %v", open, err)
	}
	r.follows()
	if !r.book.intent().Takeover.Open {
		t.Fatal("the intent does not keep anything")
	}
	found := &sm.InheritedPKeys{GUID: 0x100, Place: ib.Place{Switch: 0x10, Port: 2}, PKeys: []ib.PKey{0x8001}}
	r.book.handle([]sm.Event{found})
	r.shows(1, func(o *observed) { o.settled = false })
	want := []string{"0x0000000000000100/0x0000000000000010/2 h0"}
	if got := r.finds(); !slices.Equal(got, want) {
		t.Fatalf("the store has %q, want %q", got, want)
	}
	r.shows(1, settledAt(5))
	if !r.book.intent().Takeover.Open {
		t.Fatal("it ended while something is not recorded")
	}

	// Another instance leads.
	r.restart()
	r.link.log = storetest.Quiet()
	if open, err := r.link.TakeOver(t.Context()); err != nil || !open {
		t.Fatalf("the next leader: open %v, %v", open, err)
	}
	r.shows(1, settledAt(5))
	if !r.book.intent().Takeover.Open {
		t.Fatal("the next leader ended it while something is not recorded")
	}
	r.write(func(tx *store.Tx) error {
		records.Finds().Delete(tx, found.GUID.String()+"/"+found.Place.String())
		return nil
	})
	r.follows()
	for name, change := range map[string]func(*observed){
		"not settled":      func(o *observed) { o.revision, o.settled = 5, false },
		"not master":       func(o *observed) { o.revision, o.smState = 5, ib.SMStandby },
		"without a intent": settledAt(0),
	} {
		if r.shows(1, change); !r.book.intent().Takeover.Open {
			t.Fatalf("it ended %s", name)
		}
	}
	r.shows(1, settledAt(5))
	if r.book.intent().Takeover.Open {
		t.Fatal("it does not end")
	}
	select {
	case in := <-r.link.Intents():
		if in.Takeover.Open {
			t.Error("the intent that was said last is open")
		}
	default:
		t.Error("the end is not said")
	}

	// It does not begin again, and what is reported late is not kept.
	r.book.handle([]sm.Event{found})
	r.shows(1, settledAt(6))
	if got := r.finds(); len(got) != 0 {
		t.Errorf("reported late: %q", got)
	}
	r.restart()
	if open, err := r.link.TakeOver(t.Context()); err != nil || open {
		t.Errorf("once more: open %v, %v", open, err)
	}
}

// TestTakeoverExcept: P_Keys of clusters with members and reserved ones are kept nowhere; those of adoptions are.
func TestTakeoverExcept(t *testing.T) {
	r := newSightRig(t)
	r.link.log = storetest.Quiet()
	if _, err := r.link.TakeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.write(func(tx *store.Tx) error {
		at := ib.Place{Switch: 0x10, Port: 3}
		return errors.Join(
			records.Grants().Put(tx, records.Key{PKey: 5, GUID: 1, Place: at}.String(), records.Grant{Host: "h1", Cluster: "blue"}),
			records.Grants().Put(tx, records.Key{PKey: 6, GUID: 1, Place: at}.String(), records.Grant{Host: "h1", Cluster: "red", Withdrawn: true}),
			records.Grants().Put(tx, records.Key{PKey: 7, GUID: 2, Place: at}.String(), records.Grant{Adopted: "adoption-0001"}),
		)
	})
	r.book.takeover.reserved = []ib.PKey{0x8002}
	r.follows()
	if got, want := r.book.intent().Takeover.Except, []ib.PKey{2, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("except %v, want %v", got, want)
	}
}

// TestTakeOver: it is open for a state that has nothing of a fabric, and for no other one.
func TestTakeOver(t *testing.T) {
	put := func(fn func(tx *store.Tx) error) func(*testing.T, *store.Store) {
		return func(t *testing.T, s *store.Store) {
			if _, err := s.Update(t.Context(), fn); err != nil {
				t.Fatal(err)
			}
		}
	}
	over := records.Takeover{State: records.TakeoverOver, Cause: records.TakeoverDone}
	for _, tt := range []struct {
		name    string
		has     func(*testing.T, *store.Store)
		removes bool
		cause   string // empty: it is open
	}{
		{"a new state", nil, false, ""},
		{"a new state, and the site wants none", nil, true, records.TakeoverRemove},
		{"facts of an earlier release", put(func(tx *store.Tx) error {
			return Facts().Put(tx, "lid/1", sm.Fact{Kind: sm.FactLID, GUID: 1, LID: 1})
		}), false, records.TakeoverManaged},
		{"nodes of an earlier release", put(func(tx *store.Tx) error { return records.Nodes().Put(tx, "1", v1.Node{GUID: 1}) }), false, records.TakeoverManaged},
		{"one that is open, and facts of it", put(func(tx *store.Tx) error {
			return errors.Join(
				records.Takeovers().Put(tx, records.Master, records.Takeover{State: records.TakeoverOpen}),
				Facts().Put(tx, "lid/1", sm.Fact{Kind: sm.FactLID, GUID: 1, LID: 1}),
			)
		}), false, ""},
		{"one that is open, and the site wants none any longer", put(func(tx *store.Tx) error {
			return records.Takeovers().Put(tx, records.Master, records.Takeover{State: records.TakeoverOpen})
		}), true, records.TakeoverRemove},
		{"one that is over", put(func(tx *store.Tx) error { return records.Takeovers().Put(tx, records.Master, over) }), false, over.Cause},
		{"a state that was restored", put(func(tx *store.Tx) error { return review.Marks().Put(tx, review.Key, review.Mark{}) }), false, records.TakeoverReview},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := store.New(memory.New(time.Now), "")
			if tt.has != nil {
				tt.has(t, s)
			}
			for range 2 {
				open, err := New(Options{Store: s, Log: storetest.Quiet(), RemovesForeign: tt.removes}).TakeOver(t.Context())
				if err != nil || open != (tt.cause == "") {
					t.Fatalf("open %v, %v", open, err)
				}
				rec, err := store.Optional(records.Takeovers().Get(t.Context(), s, records.Master))
				if err != nil || (rec.State == records.TakeoverOpen) != open || rec.Cause != tt.cause {
					t.Fatalf("recorded as %+v, %v", rec, err)
				}
			}
		})
	}
}

// TestTakeOverGuarded: an instance that leads no longer opens nothing, and without the store it is not said that nothing is kept.
func TestTakeOverGuarded(t *testing.T) {
	s := store.New(memory.New(time.Now), "")
	err := errors.New("no answer")
	l := New(Options{Store: s, Log: storetest.Quiet(), Guard: func(context.Context, *store.Tx) error { return err }})
	refused := func() {
		t.Helper()
		if open, got := l.TakeOver(t.Context()); !errors.Is(got, err) || open {
			t.Errorf("open %v, %v", open, got)
		}
	}
	refused()
	l.said = wanted{known: true, intent: sm.Intent{Takeover: sm.Takeover{Open: true}}}
	if open, err := l.TakeOver(t.Context()); err != nil || !open {
		t.Errorf("an attachment before had it open, and now open is %v, %v", open, err)
	}
	err = leader.ErrDeposed
	refused()
}
