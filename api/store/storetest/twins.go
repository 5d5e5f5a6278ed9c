package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"portcullis/api/store"
)

// asking counts what a backend is asked.
type asking struct {
	store.Backend
	mu      sync.Mutex
	reads   int
	commits int
}

func (a *asking) Read(ctx context.Context, key string, prefix bool, rev int64) (store.Items, error) {
	a.mu.Lock()
	a.reads++
	a.mu.Unlock()
	return a.Backend.Read(ctx, key, prefix, rev)
}

func (a *asking) Commit(ctx context.Context, b store.Batch) (int64, error) {
	a.mu.Lock()
	a.commits++
	a.mu.Unlock()
	return a.Backend.Commit(ctx, b)
}

// asked returns how often there was a read and a commit since the last call.
func (a *asking) asked() [2]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := [2]int{a.reads, a.commits}
	a.reads, a.commits = 0, 0
	return n
}

// remembered: a transaction asks the backend for no record that one before has read or written.
func remembered(t *testing.T, s *store.Store) {
	a := &asking{Backend: s.Backend()}
	s = s.Over(a)
	more := func(key string) error {
		_, err := s.Update(t.Context(), func(tx *store.Tx) error {
			n, err := store.Optional(notes().Get(t.Context(), tx, key))
			if err != nil {
				return err
			}
			if _, err := notes().Get(t.Context(), tx, "none"); !errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("a record that was never written: %w", err)
			}
			n.N++
			return notes().Put(tx, key, n)
		})
		return err
	}
	for i, want := range [][2]int{{2, 1}, {0, 1}, {0, 1}} {
		if err := more("a"); err != nil {
			t.Fatal(err)
		}
		if got := a.asked(); got != want {
			t.Errorf("transaction %d: %v reads and commits, want %v", i, got, want)
		}
	}
	rec, err := notes().Get(t.Context(), s, "a")
	if err != nil || rec.Value.N != 3 || rec.Created >= rec.Modified {
		t.Errorf("%+v, %v", rec, err)
	}
	if _, err := s.Update(t.Context(), func(tx *store.Tx) error { notes().Delete(tx, "gone"); return notes().Put(tx, "new", note{}) }); err != nil {
		t.Fatal(err)
	}
	a.asked()
	if _, err := s.Update(t.Context(), func(tx *store.Tx) error {
		if _, err := notes().Get(t.Context(), tx, "gone"); !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("a record that was deleted: %w", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := a.asked(); got != [2]int{0, 1} {
		t.Errorf("after a delete: %v reads and commits", got)
	}
	var of store.Record[note]
	if _, err := s.Update(t.Context(), func(tx *store.Tx) (err error) {
		of, err = notes().Get(t.Context(), tx, "a")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	same(t, of, rec)
}

// outOfDate: what a transaction does, refuses or shows rests on no record that another process has changed meanwhile.
func outOfDate(t *testing.T, s *store.Store) {
	other := s.Twin()
	errOdd := errors.New("odd")
	for name, change := range map[string]func(n int){
		"changed": func(n int) { put(t, other, "a", note{N: n}) },
		"made again": func(n int) {
			if _, err := other.Update(t.Context(), func(tx *store.Tx) error { notes().Delete(tx, "a"); return nil }); err != nil {
				t.Fatal(err)
			}
			put(t, other, "a", note{N: n})
		},
	} {
		for n := range 6 {
			change(n)
			shown := -1
			_, err := s.Update(t.Context(), func(tx *store.Tx) error {
				r, err := notes().Get(t.Context(), tx, "a")
				switch shown = r.Value.N; {
				case err != nil:
					return err
				case shown%2 == 1:
					return errOdd
				case shown%4 == 0:
					return nil
				}
				return notes().Put(tx, "b", r.Value)
			})
			if shown != n || errors.Is(err, errOdd) != (n%2 == 1) || n%2 == 0 && err != nil {
				t.Errorf("%s to %d: %d was read, %v", name, n, shown, err)
			}
			if n%4 == 2 && get(t, other, "b").N != n {
				t.Errorf("%s to %d: %d was written", name, n, get(t, other, "b").N)
			}
		}
	}
	// One that is there no longer, and one that was not there.
	if _, err := other.Update(t.Context(), func(tx *store.Tx) error { notes().Delete(tx, "a"); return nil }); err != nil {
		t.Fatal(err)
	}
	read := func(key string) error {
		_, err := s.Update(t.Context(), func(tx *store.Tx) error { _, err := notes().Get(t.Context(), tx, key); return err })
		return err
	}
	if err := read("a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a record that is there no longer: %v", err)
	}
	put(t, other, "a", note{N: 7})
	if err := read("a"); err != nil {
		t.Errorf("a record that was not there: %v", err)
	}
}

// listedTwice: a transaction that lists records twice, and one that lists what it has read, sees them as of one revision.
func listedTwice(t *testing.T, s *store.Store) {
	other := s.Twin()
	put(t, s, "a/1", note{N: 1})
	for name, change := range map[string]func(){
		"new":     func() { put(t, other, "a/2", note{N: 2}) },
		"changed": func() { put(t, other, "a/1", note{N: 2}) },
	} {
		runs := 0
		var before, after []string
		var one note
		if _, err := s.Update(t.Context(), func(tx *store.Tx) error {
			one = get(t, tx, "a/1")
			before = keys(t, tx, "a/")
			if runs++; runs == 1 {
				change()
			}
			after = keys(t, tx, "a/")
			return notes().Put(tx, "sum", note{N: len(after)})
		}); err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
		if now := get(t, s, "a/1"); runs != 2 || one.N != now.N {
			t.Errorf("%s: %d runs; %+v was read, %+v is there", name, runs, one, now)
		}
	}
	// What was kept of a record from before the list is another one.
	put(t, other, "a/1", note{N: 9})
	var one, listed note
	if _, err := s.Update(t.Context(), func(tx *store.Tx) error {
		one = get(t, tx, "a/1")
		list, _, err := notes().List(t.Context(), tx, "a/1")
		if err != nil || len(list) != 1 {
			return fmt.Errorf("listed %+v: %w", list, err)
		}
		listed = list[0].Value
		return notes().Put(tx, "sum", one)
	}); err != nil {
		t.Fatal(err)
	}
	same(t, one, listed)
}

// concurrent: processes that move amounts between accounts at the same time lose none, and each sees the sum of all.
func concurrent(t *testing.T, s *store.Store) {
	const accounts, sum, moves = 5, 100, 60
	name := func(n int) string { return fmt.Sprint("account/", n) }
	put(t, s, name(0), note{N: sum})
	errTorn := errors.New("another sum")
	var all sync.WaitGroup
	for p := range 3 {
		twin, random := s.Twin(), rand.New(rand.NewPCG(uint64(p), 1))
		all.Go(func() {
			for range moves {
				from, to, amount := random.IntN(accounts), random.IntN(accounts), random.IntN(20)
				list := random.IntN(3) == 0
				_, err := twin.Update(t.Context(), func(tx *store.Tx) error {
					found := 0
					if list {
						rs, _, err := notes().List(t.Context(), tx, "account/")
						if err != nil {
							return err
						}
						for _, r := range rs {
							found += r.Value.N
						}
					} else {
						for n := range accounts {
							one, err := store.Optional(notes().Get(t.Context(), tx, name(n)))
							if err != nil {
								return err
							}
							found += one.N
						}
					}
					if found != sum {
						return fmt.Errorf("%w: %d", errTorn, found)
					}
					a, err := store.Optional(notes().Get(t.Context(), tx, name(from)))
					if err != nil || a.N < amount || from == to {
						return err
					}
					b, err := store.Optional(notes().Get(t.Context(), tx, name(to)))
					if err != nil {
						return err
					}
					a.N, b.N = a.N-amount, b.N+amount
					return errors.Join(notes().Put(tx, name(from), a), notes().Put(tx, name(to), b))
				})
				if err != nil {
					t.Errorf("process %d: %v", p, err)
					return
				}
			}
		})
	}
	all.Wait()
	found := 0
	for _, k := range keys(t, s, "account/") {
		found += get(t, s, k).N
	}
	if found != sum {
		t.Errorf("the sum is %d, want %d", found, sum)
	}
}

// views: what is shown is as of the revision that is returned, whatever another process has changed, and costs no read.
func views(t *testing.T, s *store.Store) {
	other, a := s.Twin(), &asking{Backend: s.Backend()}
	s = s.Over(a)
	show := func() (n note, missing bool, revision int64) {
		t.Helper()
		revision, err := s.View(t.Context(), func(r store.Reader) error {
			rec, err := notes().Get(t.Context(), r, "a")
			n = rec.Value
			return err
		})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return n, err != nil, revision
	}
	if _, missing, revision := show(); !missing || revision == 0 {
		t.Errorf("before the first: missing %t, revision %d", missing, revision)
	}
	for i := range 5 {
		written := put(t, other, "a", note{N: i})
		if n, missing, revision := show(); n.N != i || missing || revision < written {
			t.Errorf("written as %d at revision %d: %+v, missing %t, revision %d", i, written, n, missing, revision)
		}
		show()
		a.asked()
		if n, _, revision := show(); n.N != i || revision < written {
			t.Errorf("once more: %+v at revision %d", n, revision)
		}
		if got := a.asked(); got != [2]int{0, 1} {
			t.Errorf("%v reads and commits for what was shown before", got)
		}
	}
	if _, err := other.Update(t.Context(), func(tx *store.Tx) error { notes().Delete(tx, "a"); return nil }); err != nil {
		t.Fatal(err)
	}
	if n, missing, _ := show(); !missing {
		t.Errorf("after its end: %+v", n)
	}
	revision, err := s.View(t.Context(), func(store.Reader) error { return nil })
	if err != nil || revision == 0 {
		t.Errorf("nothing was read as of %d, %v", revision, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.View(ended, func(r store.Reader) error { _, err := notes().Get(ended, r, "b"); return err }); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// leasedIsRead: a record that vanished with its lease is not there for the next transaction.
func leasedIsRead(t *testing.T, s *store.Store) {
	l, err := s.NewLease(t.Context(), 3600e9)
	if err != nil {
		t.Fatal(err)
	}
	read := func() error {
		_, err := s.Update(t.Context(), func(tx *store.Tx) error { _, err := notes().Get(t.Context(), tx, "leased"); return err })
		return err
	}
	if err := read(); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	if _, err := s.Update(t.Context(), func(tx *store.Tx) error { return notes().PutLeased(tx, "leased", note{N: 1}, l) }); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Errorf("while it lasts: %v", err)
	}
	if err := s.Revoke(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if err := read(); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after its end: %v", err)
	}
}

// readsAfterSnapshot: what a transaction reads after it looked around is as of what it saw, also where it is remembered as it was
// later.
func readsAfterSnapshot(t *testing.T, s *store.Store) {
	other := s.Twin()
	show := func() {
		if _, err := s.View(t.Context(), func(r store.Reader) error {
			_, err := store.Optional(notes().Get(t.Context(), r, "guard/1"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	drop := func() {
		if _, err := other.Update(t.Context(), func(tx *store.Tx) error {
			notes().Delete(tx, "guard/1")
			notes().Delete(tx, "seen")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(n int)
		list   bool
	}{
		"changed":                  {func(n int) { put(t, other, "seen", note{N: n}); put(t, other, "guard/1", note{N: n}) }, false},
		"changed, listed":          {func(n int) { put(t, other, "seen", note{N: n}); put(t, other, "guard/1", note{N: n}) }, true},
		"changed, and remembered":  {func(n int) { put(t, other, "seen", note{N: n}); put(t, other, "guard/1", note{N: n}); show() }, false},
		"deleted":                  {func(int) { drop() }, false},
		"deleted, and remembered":  {func(int) { drop(); show() }, false},
		"unchanged and remembered": {func(int) { show() }, false},
	} {
		put(t, other, "guard/1", note{N: 1})
		put(t, other, "seen", note{N: 1})
		runs := 0
		var seen, guard note
		if _, err := s.Update(t.Context(), func(tx *store.Tx) error {
			snap, err := tx.Snapshot(t.Context())
			if err != nil {
				return err
			}
			if runs++; runs == 1 {
				c.change(2)
			}
			guard = note{}
			if c.list {
				list, _, err := notes().List(t.Context(), tx, "guard/")
				if err != nil || len(list) != 1 {
					return fmt.Errorf("listed %+v: %w", list, err)
				}
				guard = list[0].Value
			} else if guard, err = store.Optional(notes().Get(t.Context(), tx, "guard/1")); err != nil {
				return err
			}
			if seen, err = store.Optional(notes().Get(t.Context(), snap, "seen")); err != nil {
				return err
			}
			return notes().Put(tx, "sum", seen)
		}); err != nil {
			t.Fatal(err)
		}
		if seen != guard {
			t.Errorf("%s: %+v was seen with %+v", name, seen, guard)
		}
	}
}

// follow: all records are shown first, then each change of them, and the end of the context ends it.
func follow(t *testing.T, s *store.Store) {
	put(t, s, "a", note{N: 1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	errEnough := errors.New("enough")
	ctx, enough := context.WithCancelCause(ctx)
	found := map[string]int{}
	err := notes().Follow(ctx, s, func(all []store.Record[note]) {
		for _, r := range all {
			found[r.Key] = r.Value.N
		}
		put(t, s, "a", note{N: 2})
		put(t, s, "b", note{N: 3})
		if _, err := s.Update(t.Context(), func(tx *store.Tx) error { notes().Delete(tx, "a"); return nil }); err != nil {
			t.Error(err)
		}
	}, func(ev *store.Event[note]) {
		if !ev.Deleted {
			found[ev.Key] += 10 * ev.Value.N
			return
		}
		found[ev.Key] += 100
		enough(errEnough)
	})
	if !errors.Is(err, errEnough) {
		t.Errorf("it ended with %v", err)
	}
	same(t, found, map[string]int{"a": 121, "b": 30})
}
