package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/store"
)

type note struct {
	Text string `json:"text"`
	N    int    `json:"n,omitempty"`
}

// Conformance is the suite every backend must pass. open returns an empty store.
func Conformance(t *testing.T, open func(testing.TB) *store.Store) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *store.Store)
	}{
		{"get what was put", getPut},
		{"list in key order", listOrder},
		{"pages in key order", pages},
		{"records as bytes, and back", asBytes},
		{"several records by their keys", several},
		{"missing record", missing},
		{"a changed record conflicts and is read again", retry},
		{"a new record in a listed range conflicts", phantom},
		{"a deleted record in a listed range conflicts", vanished},
		{"a transaction sees its own writes", ownWrites},
		{"an error abandons the transaction", abandon},
		{"a snapshot does not move", snapshot},
		{"counters never lose an update", counter},
		{"watch sends every change in order and resumes", watch},
		{"watch ends with its context", watchEnds},
		{"a leased record vanishes", lease},
		{"a lease that is kept alive does not end", keepAlive},
		{"a revoked lease ends at once", revoke},
		{"a large import is one transaction", large},
		{"records that were read or written are not read again", remembered},
		{"nothing rests on a record that is out of date", outOfDate},
		{"lists are of one revision", listedTwice},
		{"what is read after a snapshot is as of it", readsAfterSnapshot},
		{"what is shown is current", views},
		{"records and their changes are followed", follow},
		{"processes lose no update and see no torn one", concurrent},
		{"a leased record is read again", leasedIsRead},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func notes() store.Collection[note] { return store.NewCollection[note]("notes", 1) }

func put(t *testing.T, s *store.Store, key string, n note) int64 {
	t.Helper()
	rev, err := s.Update(t.Context(), func(tx *store.Tx) error { return notes().Put(tx, key, n) })
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func get(t *testing.T, r store.Reader, key string) note {
	t.Helper()
	rec, err := notes().Get(t.Context(), r, key)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Value
}

func keys(t *testing.T, r store.Reader, prefix string) []string {
	t.Helper()
	recs, _, err := notes().List(t.Context(), r, prefix)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, rec := range recs {
		out = append(out, rec.Key)
	}
	return out
}

func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func getPut(t *testing.T, s *store.Store) {
	rev := put(t, s, "a", note{Text: "one"})
	rec, err := notes().Get(t.Context(), s, "a")
	if err != nil {
		t.Fatal(err)
	}
	same(t, rec, store.Record[note]{Key: "a", Value: note{Text: "one"}, Created: rev, Modified: rev})
	rev2 := put(t, s, "a", note{Text: "two"})
	rec, err = notes().Get(t.Context(), s, "a")
	if err != nil {
		t.Fatal(err)
	}
	same(t, rec, store.Record[note]{Key: "a", Value: note{Text: "two"}, Created: rev, Modified: rev2})
	if rev2 <= rev {
		t.Errorf("revision %d after %d", rev2, rev)
	}
}

func listOrder(t *testing.T, s *store.Store) {
	for _, k := range []string{"b/2", "a/1", "b/1", "c"} {
		put(t, s, k, note{Text: k})
	}
	same(t, keys(t, s, ""), []string{"a/1", "b/1", "b/2", "c"})
	same(t, keys(t, s, "b/"), []string{"b/1", "b/2"})
	same(t, keys(t, s, "x"), []string{})
}

func asBytes(t *testing.T, s *store.Store) {
	put(t, s, "a", note{Text: "one"})
	put(t, s, "b", note{Text: "two"})
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	items, err := snap.Items(t.Context(), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(items) != 2 || items[0].Key != "notes/a" || items[1].Key != "notes/b" {
		t.Fatalf("items: %+v", items)
	}
	rest, err := snap.Items(t.Context(), "notes/a", 10)
	if err != nil || len(rest) != 1 || rest[0].Key != "notes/b" {
		t.Errorf("after the first: %+v, %v", rest, err)
	}
	put(t, s, "a", note{Text: "changed"})
	if err := s.Load(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "a"); got.Text != "one" {
		t.Errorf("after loading: %+v", got)
	}
}

func missing(t *testing.T, s *store.Store) {
	if _, err := notes().Get(t.Context(), s, "none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	rev, err := s.Update(t.Context(), func(tx *store.Tx) error { return nil })
	if rev != 0 || err != nil {
		t.Errorf("empty transaction: got %d, %v, want 0 and no error", rev, err)
	}
}

// interfere runs an update whose first attempt is disturbed by meddle through another Store over the same backend, and
// returns the number of attempts.
func interfere(t *testing.T, s *store.Store, read func(*store.Tx), meddle func(*store.Tx) error) int {
	t.Helper()
	attempts := 0
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		read(tx)
		if attempts++; attempts == 1 {
			if _, err := s.Twin().Update(t.Context(), meddle); err != nil {
				return err
			}
		}
		return notes().Put(tx, "result", note{N: attempts})
	})
	if err != nil {
		t.Fatal(err)
	}
	return attempts
}

func retry(t *testing.T, s *store.Store) {
	put(t, s, "a", note{N: 1})
	n := interfere(t, s, func(tx *store.Tx) { get(t, tx, "a") },
		func(tx *store.Tx) error { return notes().Put(tx, "a", note{N: 2}) })
	same(t, n, 2)
	n = interfere(t, s, func(tx *store.Tx) { get(t, tx, "a") },
		func(tx *store.Tx) error { return notes().Put(tx, "unrelated", note{}) })
	same(t, n, 1)
}

func phantom(t *testing.T, s *store.Store) {
	put(t, s, "b/1", note{})
	n := interfere(t, s, func(tx *store.Tx) { keys(t, tx, "b/") },
		func(tx *store.Tx) error { return notes().Put(tx, "b/2", note{}) })
	same(t, n, 2)
}

func vanished(t *testing.T, s *store.Store) {
	put(t, s, "b/1", note{})
	n := interfere(t, s, func(tx *store.Tx) { keys(t, tx, "b/") },
		func(tx *store.Tx) error { notes().Delete(tx, "b/1"); return nil })
	same(t, n, 2)
}

func ownWrites(t *testing.T, s *store.Store) {
	put(t, s, "a", note{N: 1})
	put(t, s, "b", note{N: 1})
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		notes().Delete(tx, "a")
		if err := errors.Join(notes().Put(tx, "c", note{N: 3}), notes().Put(tx, "b", note{N: 2})); err != nil {
			return err
		}
		same(t, keys(t, tx, ""), []string{"b", "c"})
		same(t, get(t, tx, "b"), note{N: 2})
		_, err := notes().Get(t.Context(), tx, "a")
		same(t, errors.Is(err, store.ErrNotFound), true)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, keys(t, s, ""), []string{"b", "c"})
}

func abandon(t *testing.T, s *store.Store) {
	reason := errors.New("no")
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		if err := notes().Put(tx, "a", note{}); err != nil {
			return err
		}
		return reason
	})
	same(t, errors.Is(err, reason), true)
	same(t, keys(t, s, ""), []string{})
}

func snapshot(t *testing.T, s *store.Store) {
	put(t, s, "a", note{N: 1})
	n, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "a", note{N: 2})
	put(t, s, "b", note{})
	same(t, get(t, n, "a"), note{N: 1})
	same(t, keys(t, n, ""), []string{"a"})
}

func counter(t *testing.T, s *store.Store) {
	const writers, rounds = 4, 10
	errs := make(chan error, writers)
	for range writers {
		go func() {
			twin := s.Twin()
			var err error
			for range rounds {
				_, e := twin.Update(t.Context(), func(tx *store.Tx) error {
					rec, err := notes().Get(t.Context(), tx, "n")
					if err != nil && !errors.Is(err, store.ErrNotFound) {
						return err
					}
					return notes().Put(tx, "n", note{N: rec.Value.N + 1})
				})
				err = errors.Join(err, e)
			}
			errs <- err
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	same(t, get(t, s, "n"), note{N: writers * rounds})
}

func watch(t *testing.T, s *store.Store) {
	_, from, err := notes().List(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	r1 := put(t, s, "a", note{N: 1})
	r2 := put(t, s, "a", note{N: 2})
	_, err = s.Update(t.Context(), func(tx *store.Tx) error { notes().Delete(tx, "a"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	events := notes().Watch(t.Context(), s, from)
	want := []store.Event[note]{
		{Record: store.Record[note]{Key: "a", Value: note{N: 1}, Created: r1, Modified: r1}},
		{Record: store.Record[note]{Key: "a", Value: note{N: 2}, Created: r1, Modified: r2}},
		{Record: store.Record[note]{Key: "a", Modified: r2 + 1}, Deleted: true},
	}
	for _, w := range want {
		same(t, <-events, w)
	}
	for _, w := range want[2:] {
		same(t, <-notes().Watch(t.Context(), s, r2), w)
	}
}

func watchEnds(t *testing.T, s *store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	events := notes().Watch(ctx, s, 0)
	cancel()
	for ev := range events {
		t.Errorf("unexpected event %+v", ev)
	}
}

func lease(t *testing.T, s *store.Store) {
	l, err := s.NewLease(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	rev, err := s.Update(t.Context(), func(tx *store.Tx) error { return notes().PutLeased(tx, "a", note{}, l) })
	if err != nil {
		t.Fatal(err)
	}
	get(t, s, "a")
	select {
	case ev := <-notes().Watch(t.Context(), s, rev):
		same(t, ev.Deleted, true)
	case <-time.After(20 * time.Second):
		t.Error("record outlived its lease by 19 s")
	}
}

// keepAlive keeps one of two leases alive until the other has ended by itself.
func keepAlive(t *testing.T, s *store.Store) {
	kept, ended := newLease(t, s), newLease(t, s)
	rev := putLeased(t, s, "kept", kept)
	putLeased(t, s, "ended", ended)
	gone := notes().Watch(t.Context(), s, rev)
	<-gone // "ended" was put
	tick, late := time.NewTicker(100*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := s.KeepAlive(t.Context(), kept); err != nil {
				t.Fatalf("keep a lease alive: %v", err)
			}
			continue
		case ev := <-gone:
			same(t, ev.Key, "ended")
			same(t, ev.Deleted, true)
		case <-late:
			t.Fatal("the lease that was not kept alive did not end")
		}
		break
	}
	get(t, s, "kept")
	if err := s.KeepAlive(t.Context(), ended); !errors.Is(err, store.ErrLeaseEnded) {
		t.Errorf("keep alive a lease that has ended: %v, want ErrLeaseEnded", err)
	}
}

func revoke(t *testing.T, s *store.Store) {
	l := newLease(t, s)
	putLeased(t, s, "a", l)
	for range 2 { // the second time it has ended already
		if err := s.Revoke(t.Context(), l); err != nil {
			t.Fatalf("revoke: %v", err)
		}
	}
	same(t, keys(t, s, ""), []string{})
	if err := s.KeepAlive(t.Context(), l); !errors.Is(err, store.ErrLeaseEnded) {
		t.Errorf("keep alive a revoked lease: %v, want ErrLeaseEnded", err)
	}
	_, err := s.Update(t.Context(), func(tx *store.Tx) error { return notes().PutLeased(tx, "b", note{}, l) })
	if !errors.Is(err, store.ErrLeaseEnded) {
		t.Errorf("put a record bound to a revoked lease: %v, want ErrLeaseEnded", err)
	}
	same(t, keys(t, s, ""), []string{})
}

func newLease(t *testing.T, s *store.Store) store.Lease {
	t.Helper()
	l, err := s.NewLease(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func putLeased(t *testing.T, s *store.Store, key string, l store.Lease) int64 {
	t.Helper()
	rev, err := s.Update(t.Context(), func(tx *store.Tx) error { return notes().PutLeased(tx, key, note{}, l) })
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func large(t *testing.T, s *store.Store) {
	const n = 5000
	rev, err := s.Update(t.Context(), func(tx *store.Tx) error {
		for i := range n {
			if err := notes().Put(tx, fmt.Sprintf("h%05d", i), note{N: i}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	recs, _, err := notes().List(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	same(t, len(recs), n)
	same(t, recs[0].Modified == rev && recs[n-1].Modified == rev, true)
}
