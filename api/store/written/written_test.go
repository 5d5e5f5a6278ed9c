package written_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	"portcullis/api/store/written"
)

type thing struct {
	N int `json:"n"`
}

func things() store.Collection[thing] { return store.NewCollection[thing]("things", 1) }
func others() store.Collection[thing] { return store.NewCollection[thing]("others", 1) }
func beside() store.Collection[thing] { return store.NewCollection[thing]("things-beside", 1) }

// bed is a store of two instances, of which one follows it.
type bed struct {
	t       *testing.T
	backend *storetest.Cutting
	store   *store.Store // of the other instance
	log     *written.Log
}

func in(t *testing.T, test func(b *bed)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(time.Now)
		b := &bed{t: t, backend: &storetest.Cutting{Backend: inner}, store: store.New(inner, "")}
		b.put(things(), "old", 1)
		b.log = written.New(store.New(b.backend, ""), things().Name(), others().Name())
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { b.log.Run(ctx) })
		synctest.Wait()
		test(b)
		cancel()
		run.Wait()
	})
}

func (b *bed) put(c store.Collection[thing], key string, n int) {
	b.t.Helper()
	if _, err := b.store.Update(b.t.Context(), func(tx *store.Tx) error { return c.Put(tx, key, thing{n}) }); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) remove(c store.Collection[thing], key string) {
	b.t.Helper()
	if _, err := b.store.Update(b.t.Context(), func(tx *store.Tx) error { c.Delete(tx, key); return nil }); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) now() int64 {
	b.t.Helper()
	snap, err := b.store.Snapshot(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return snap.Revision
}

func (b *bed) expect(what string, want bool, after int64, prefixes ...string) {
	b.t.Helper()
	if got := b.log.Unwritten(b.t.Context(), after, b.now(), prefixes...); got != want {
		b.t.Errorf("%s: unwritten is %t, want %t", what, got, want)
	}
}

// Each write of the other instance counts from the revision on at which it was made: a new record, another one, and one that is removed.
func TestWrites(t *testing.T) {
	in(t, func(b *bed) {
		start := b.now()
		b.expect("nothing", true, start, things().Name(), others().Name())
		for what, write := range map[string]func(){
			"new":     func() { b.put(things(), "new", 1) },
			"other":   func() { b.put(things(), "old", 2) },
			"same":    func() { b.put(things(), "old", 2) },
			"removed": func() { b.put(things(), "gone", 1); b.remove(things(), "gone") },
		} {
			before := b.now()
			write()
			b.expect(what, false, before, others().Name(), things().Name())
			b.expect(what+", and the others", true, before, others().Name())
			b.expect(what+", since", true, b.now(), things().Name())
		}
		before := b.now()
		b.put(beside(), "x", 1)
		b.expect("of a collection that is not followed", true, before, things().Name())
		b.expect("what is not followed", false, before, beside().Name())
		b.expect("before it was followed", false, start-1, things().Name())
	})
}

// A change that the store has, and that does not come, counts as written.
func TestLate(t *testing.T) {
	in(t, func(b *bed) {
		before := b.now()
		b.backend.Hold()
		b.put(things(), "x", 1)
		began := time.Now()
		b.expect("late", false, before, things().Name())
		b.expect("late, of others", false, before, others().Name())
		if waited := time.Since(began); waited <= 0 || waited > time.Second {
			t.Errorf("it waited %v", waited)
		}
	})
}

// While the store is not followed, everything counts as written; what was written meanwhile counts afterwards.
func TestEnded(t *testing.T) {
	in(t, func(b *bed) {
		before := b.now()
		b.backend.Fail(errors.New("no store"))
		b.backend.Cut()
		synctest.Wait()
		b.expect("not followed", false, before, things().Name())
		b.put(things(), "x", 1)
		<-time.After(3 * time.Second)
		b.expect("still not", false, before, others().Name())
		b.backend.Fail(nil)
		<-time.After(3 * time.Second)
		b.expect("written meanwhile", false, before, things().Name())
		b.expect("not known", false, before, others().Name())
		b.expect("followed again", true, b.now(), things().Name())
	})
}

// Without Run nothing is known.
func TestNotRun(t *testing.T) {
	t.Parallel()
	l := written.New(store.New(memory.New(time.Now), ""), things().Name())
	if l.Unwritten(t.Context(), 0, 0, things().Name()) {
		t.Error("it knows without having followed")
	}
}

// Of a store that went back, as one that was restored does, nothing is known.
func TestStoreGoesBack(t *testing.T) {
	in(t, func(b *bed) {
		b.put(things(), "new", 2)
		now := b.now()
		b.expect("before", true, now, things().Name())
		if b.log.Unwritten(b.t.Context(), now, now-1, things().Name()) {
			b.t.Error("unwritten up to an earlier revision")
		}
	})
}

// The keys of what was written are known, each once, until there are too many.
func TestKeys(t *testing.T) {
	in(t, func(b *bed) {
		keys := func(what string, ok bool, after int64, want ...string) {
			b.t.Helper()
			got, known := b.log.Keys(b.t.Context(), after, b.now(), things().Name())
			for i := range want {
				want[i] = things().Name() + want[i]
			}
			if known != ok || !slices.Equal(got, want) {
				b.t.Errorf("%s: %d keys %.80v, %t, want %v, %t", what, len(got), got, known, want, ok)
			}
		}
		start := b.now()
		keys("nothing", true, start)
		b.put(things(), "b", 1)
		b.put(others(), "o", 1)
		middle := b.now()
		b.put(things(), "a", 1)
		b.put(things(), "b", 2)
		b.remove(things(), "old")
		keys("all", true, start, "a", "b", "old")
		keys("later ones", true, middle, "a", "b", "old")
		keys("since", true, b.now())
		keys("before it was followed", false, start-1)
		if _, known := b.log.Keys(b.t.Context(), start, b.now(), beside().Name()); known {
			b.t.Error("keys are known of what is not followed")
		}
		for i := range 5000 {
			b.put(things(), fmt.Sprintf("many-%04d", i), 1)
		}
		keys("too many", false, middle)
		last := b.now()
		b.put(things(), "z", 1)
		keys("after them", true, last, "z")
	})
}
