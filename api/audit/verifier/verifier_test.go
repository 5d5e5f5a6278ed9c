package verifier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/events"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
)

// watching is a Backend that notes how much is read at once, and can fail.
type watching struct {
	store.Backend
	mu     sync.Mutex
	most   int
	pages  int
	failed error
}

func (w *watching) Range(ctx context.Context, prefix, after string, limit int, rev int64) (store.Items, error) {
	w.mu.Lock()
	w.most, w.pages = max(w.most, limit), w.pages+1
	err := w.failed
	w.mu.Unlock()
	if err != nil {
		return store.Items{}, err
	}
	return w.Backend.Range(ctx, prefix, after, limit, rev)
}

func (w *watching) fail(err error) { w.mu.Lock(); defer w.mu.Unlock(); w.failed = err }

func newStore() (*store.Store, *watching) {
	w := &watching{Backend: memory.New(time.Now)}
	return store.New(w, ""), w
}

func happen(t *testing.T, s *store.Store, n int) {
	t.Helper()
	for range n {
		_, err := s.Update(t.Context(), func(tx *store.Tx) error {
			return audit.Append(t.Context(), tx, audit.Entry{Time: time.Now(), Actor: "ann", Action: "host.release", Object: "host/h"})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// edit changes entries behind the back of the log.
func edit(t *testing.T, s *store.Store, change func(tx *store.Tx) error) {
	t.Helper()
	if _, err := s.Update(t.Context(), change); err != nil {
		t.Fatal(err)
	}
}

func entryKey(seq uint64) string { return fmt.Sprintf("%020d", seq) }

func newVerifier(s *store.Store, name string, shared bool) *Verifier {
	return New(Options{Store: s, Every: time.Hour, Service: name, Shared: shared, Log: slog.New(slog.DiscardHandler)})
}

// run runs a Verifier until the test ends.
func run(t *testing.T, v *Verifier) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { v.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

func told(t *testing.T, s *store.Store, kind string) []v1.Event {
	t.Helper()
	list, err := events.Book{Store: s}.List(t.Context(), v1.EventQuery{Type: kind})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// tampers are what an attacker with the store's files does.
func tampers() []struct {
	name, cause, want string
	do                func(t *testing.T, s *store.Store)
} {
	get := func(t *testing.T, tx *store.Tx, seq uint64) audit.Entry {
		rec, err := audit.Entries().Get(t.Context(), tx, entryKey(seq))
		if err != nil {
			t.Fatal(err)
		}
		return rec.Value
	}
	return []struct {
		name, cause, want string
		do                func(t *testing.T, s *store.Store)
	}{
		{"actor", chain.Altered, "audit entry 300 was altered", func(t *testing.T, s *store.Store) {
			edit(t, s, func(tx *store.Tx) error {
				e := get(t, tx, 300)
				e.Actor = "nobody!!"
				return audit.Entries().Put(tx, entryKey(300), e)
			})
		}},
		{"no JSON", chain.Altered, "audit entry 300 was altered: it cannot be read", func(t *testing.T, s *store.Store) {
			if err := s.Load(t.Context(), []store.Item{{Key: "audit/entries/" + entryKey(300), Value: []byte("\xff\xfe")}}); err != nil {
				t.Fatal(err)
			}
		}},
		{"another shape", chain.Altered, "audit entry 300 was altered: it cannot be read", func(t *testing.T, s *store.Store) {
			if err := s.Load(t.Context(), []store.Item{{Key: "audit/entries/" + entryKey(300), Value: []byte(`{"v":1,"d":{"seq":"x"}}`)}}); err != nil {
				t.Fatal(err)
			}
		}},
		{"one removed", chain.Cut, "audit entry 300 is missing", func(t *testing.T, s *store.Store) {
			edit(t, s, func(tx *store.Tx) error { audit.Entries().Delete(tx, entryKey(300)); return nil })
		}},
		{"the last removed", chain.Cut, "entries were removed", func(t *testing.T, s *store.Store) {
			edit(t, s, func(tx *store.Tx) error { audit.Entries().Delete(tx, entryKey(600)); return nil })
		}},
		{"the last removed with its trace", chain.RolledBack, "the log ends at entry 599", func(t *testing.T, s *store.Store) {
			edit(t, s, func(tx *store.Tx) error {
				e := get(t, tx, 599)
				audit.Entries().Delete(tx, entryKey(600))
				return store.NewCollection[chain.Head]("audit/head", 1).Put(tx, "head", chain.Head{Seq: 599, Hash: e.Hash})
			})
		}},
	}
}

// A log that is altered, cut or rolled back, while the service runs or while it does not, is an event once, and stays
// noted, whatever is verified after that. Writes go on.
func TestTampered(t *testing.T) {
	for _, tt := range tampers() {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %v", tt.name, restarted), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, _ := newStore()
					happen(t, s, 600)
					v := newVerifier(s, "sm-1", false)
					end := run(t, v)
					time.Sleep(time.Minute)
					if st := v.State(); st.Broken != nil || st.Head.Seq != 600 || st.Good.IsZero() || st.Whole != 1 {
						t.Fatalf("before: %+v", st)
					}
					good := v.State().Good
					if restarted {
						end()
						v = newVerifier(s, "sm-1", false)
					}
					tt.do(t, s)
					if restarted {
						end = run(t, v)
						time.Sleep(time.Minute)
					} else {
						time.Sleep(time.Hour)
					}
					st := v.State()
					if st.Broken == nil || st.Broken.Cause != tt.cause || !strings.Contains(st.Broken.Text, tt.want) {
						t.Fatalf("%+v, want %s: %s", st, tt.cause, tt.want)
					}
					if !st.Good.Equal(good) || st.Since.IsZero() {
						t.Errorf("last good %v since %v, want %v", st.Good, st.Since, good)
					}
					time.Sleep(3 * time.Hour)
					list := told(t, s, events.AuditBroken)
					if len(list) != 1 || list[0].Count != 1 || list[0].Cause != tt.cause || !strings.Contains(list[0].Seen, tt.want) {
						t.Errorf("events %+v, want one", list)
					}
					if st := v.State(); st.Broken == nil || st.NotWhole < 4 {
						t.Errorf("later: %+v", st)
					}
					end()
				})
			})
		}
	}
}

// A log that is put right has the event of a whole one.
func TestWholeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStore()
		happen(t, s, 10)
		v := newVerifier(s, "sm-1", false)
		defer run(t, v)()
		time.Sleep(time.Minute)
		var was audit.Entry
		edit(t, s, func(tx *store.Tx) error {
			rec, err := audit.Entries().Get(t.Context(), tx, entryKey(4))
			was = rec.Value
			altered := was
			altered.Detail = "nothing"
			return errors.Join(err, audit.Entries().Put(tx, entryKey(4), altered))
		})
		time.Sleep(time.Hour)
		if v.State().Broken == nil {
			t.Fatal("not noticed")
		}
		edit(t, s, func(tx *store.Tx) error { return audit.Entries().Put(tx, entryKey(4), was) })
		time.Sleep(time.Hour)
		if st := v.State(); st.Broken != nil || !st.Since.IsZero() || st.Head.Seq != 11 {
			t.Errorf("%+v", st)
		}
		if list := told(t, s, events.AuditWhole); len(list) != 1 {
			t.Errorf("events %+v, want one", list)
		}
	})
}

// The log is read a page at a time with a rest after each, and goes on meanwhile.
func TestPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newStore()
		happen(t, s, 8*pageSize)
		v := newVerifier(s, "sm-1", false)
		began := time.Now()
		defer run(t, v)()
		time.Sleep(3 * minRest)
		happen(t, s, 3)
		if v.State().Whole != 0 {
			t.Fatal("the log was verified without a rest")
		}
		for v.State().Whole == 0 {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took < 8*minRest || v.State().Head.Seq != 8*pageSize+3 {
			t.Errorf("verified %d entries within %v", v.State().Head.Seq, took)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.most > pageSize || w.pages < 9 {
			t.Errorf("%d pages of up to %d entries, want 9 of %d", w.pages, w.most, pageSize)
		}
	})
}

// A walk that works for a time rests for a multiple of it, and no longer than it may keep its turn.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for worked, want := range map[time.Duration]time.Duration{
			0: minRest, 100 * time.Millisecond: 900 * time.Millisecond, time.Minute: maxRest,
		} {
			began := time.Now()
			if err := rest(t.Context(), worked, nil); err != nil || time.Since(began) != want {
				t.Errorf("after %v: rest of %v, %v; want %v", worked, time.Since(began), err, want)
			}
		}
	})
}

// While the store is away nothing is said of the log, and it is tried again.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newStore()
		happen(t, s, 3)
		w.fail(store.ErrAway)
		v := newVerifier(s, "sm-1", false)
		defer run(t, v)()
		time.Sleep(time.Minute)
		if st := v.State(); st.Broken != nil || !errors.Is(st.Err, store.ErrAway) || st.Failed < 2 {
			t.Errorf("away: %+v", st)
		}
		w.fail(nil)
		time.Sleep(time.Minute)
		if st := v.State(); st.Err != nil || st.Whole != 1 {
			t.Errorf("back: %+v", st)
		}
	})
}

// Instances that share a store verify one at a time, each of them, and one that ends in its turn holds up none for long.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStore()
		happen(t, s, 20*pageSize)
		dead := newVerifier(s, "sm-0", true)
		if _, err := dead.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := []*Verifier{newVerifier(s.Twin(), "sm-1", true), newVerifier(s.Twin(), "sm-2", true), newVerifier(s.Twin(), "sm-3", true)}
		for _, v := range all {
			defer run(t, v)()
		}
		time.Sleep(turnTime / 2)
		if slices.ContainsFunc(all, func(v *Verifier) bool { return v.State().Whole > 0 }) {
			t.Error("one verified although it was not its turn")
		}
		time.Sleep(5 * time.Minute)
		for _, v := range all {
			if st := v.State(); st.Whole != 1 || st.Failed != 0 {
				t.Errorf("%s: %+v, want one verification", v.o.Service, st)
			}
		}
		if _, err := all[0].take(t.Context()); err != nil {
			t.Errorf("the turn is not free: %v", err)
		}
		if _, err := all[1].take(t.Context()); !errors.Is(err, errTaken) {
			t.Errorf("a turn that is taken: %v", err)
		}
	})
}

// A turn that ended ends the walk.
func TestTurnEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStore()
		v := newVerifier(s, "sm-1", true)
		held, err := v.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(turnEvery)
		if err := held.keep(t.Context()); err != nil {
			t.Errorf("kept in time: %v", err)
		}
		time.Sleep(2 * turnTime)
		if err := held.keep(t.Context()); !errors.Is(err, store.ErrLeaseEnded) {
			t.Errorf("kept too late: %v, want %v", err, store.ErrLeaseEnded)
		}
	})
}
