package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/mirror"
	"portcullis/api/store/storetest"
)

type thing struct {
	N int `json:"n"`
}

func things() store.Collection[thing] { return store.NewCollection[thing]("things", 1) }
func others() store.Collection[thing] { return store.NewCollection[thing]("others", 1) }

// bed is a store, and a mirror of things that runs.
type bed struct {
	t      *testing.T
	cut    *storetest.Cutting
	store  *store.Store
	mirror *mirror.Mirror
}

// in runs a test in fake time with a mirror that has read the store.
func in(t *testing.T, test func(b *bed)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t, cut: &storetest.Cutting{Backend: memory.New(time.Now)}}
		b.store = store.New(b.cut, "")
		for i := range 3 {
			b.put(fmt.Sprint("old", i), i)
		}
		b.mirror = mirror.New(b.store, storetest.Quiet(), mirror.Of(things()))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); b.mirror.Run(ctx) }()
		b.pass(10 * time.Second)
		test(b)
		cancel()
		<-ended
	})
}

func (b *bed) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (b *bed) put(key string, n int) int64 {
	b.t.Helper()
	rev, err := b.store.Update(b.t.Context(), func(tx *store.Tx) error { return things().Put(tx, key, thing{n}) })
	if err != nil {
		b.t.Fatal(err)
	}
	return rev
}

// take takes the copies, as of revision or later, within a second.
func (b *bed) take(revision int64) *mirror.Copies {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
	defer cancel()
	return b.mirror.Take(ctx, revision)
}

// check fails the test unless copies are what the store held at their revision.
func (b *bed) check(c *mirror.Copies) {
	b.t.Helper()
	got, ok := mirror.List(c, things())
	want, _, err := things().List(b.t.Context(), b.store.At(c.Revision()), "")
	if err != nil || !ok || !reflect.DeepEqual(got, want) {
		b.t.Errorf("at revision %d: %v, %v; the store has %v, %v", c.Revision(), got, ok, want, err)
	}
}

// TestRandomChanges: after random changes, also while everything is read, copies are what the store holds.
func TestRandomChanges(t *testing.T) {
	in(t, func(b *bed) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 30 {
			for range random.IntN(10) {
				key := fmt.Sprint("k", random.IntN(8))
				_, err := b.store.Update(b.t.Context(), func(tx *store.Tx) error {
					if random.IntN(3) == 0 {
						things().Delete(tx, key)
						return nil
					}
					return errors.Join(things().Put(tx, key, thing{random.IntN(100)}), others().Put(tx, key, thing{1}))
				})
				if err != nil {
					b.t.Fatal(err)
				}
			}
			rev := b.put("last", random.IntN(100)) // a delete of nothing has no revision that a watch sees
			c := b.take(rev)
			if c == nil || c.Revision() < rev {
				b.t.Fatalf("no copies of revision %d: %v", rev, c)
			}
			b.check(c)
			b.mirror.Resume()
			b.pass(6 * time.Second)
		}
	})
}

// TestNotFollowed: a collection that the mirror does not follow has no copy, and nil copies have none.
func TestNotFollowed(t *testing.T) {
	in(t, func(b *bed) {
		if got, ok := mirror.List(b.take(0), others()); ok {
			b.t.Errorf("a copy of others: %v", got)
		}
		if _, ok := mirror.List[thing](nil, things()); ok {
			b.t.Error("nil copies hold things")
		}
	})
}

// TestTakenStays: copies that were taken change no longer, nothing is read until Resume, and then all changes are there.
func TestTakenStays(t *testing.T) {
	in(t, func(b *bed) {
		c := b.take(0)
		before, _ := mirror.List(c, things())
		watches := b.cut.Watches()
		rev := b.put("new", 9)
		b.pass(time.Minute)
		if after, _ := mirror.List(c, things()); !reflect.DeepEqual(after, before) {
			b.t.Errorf("copies that were taken changed: %v, %v before", after, before)
		}
		if b.cut.Watches() != watches || b.take(0) != nil {
			b.t.Error("the store is read although the copies were taken")
		}
		b.mirror.Resume()
		b.pass(time.Minute)
		if c = b.take(rev); c == nil {
			b.t.Fatal("no copies after Resume")
		}
		b.check(c)
	})
}

// TestNotAtOnce: after Resume nothing is read for some seconds: this instance may lead again at once.
func TestNotAtOnce(t *testing.T) {
	in(t, func(b *bed) {
		b.take(0)
		watches := b.cut.Watches()
		b.mirror.Resume()
		b.pass(4 * time.Second)
		if b.cut.Watches() != watches || b.take(0) != nil {
			b.t.Error("the store is read at once")
		}
	})
}

// TestLagging: copies that have not come to the revision in time are not used.
func TestLagging(t *testing.T) {
	in(t, func(b *bed) {
		b.cut.Hold()
		rev := b.put("new", 9)
		began := time.Now()
		if c := b.take(rev); c != nil {
			b.t.Errorf("copies of revision %d were taken for %d", c.Revision(), rev)
		}
		if took := time.Since(began); took != time.Second {
			b.t.Errorf("waited %v, want a second", took)
		}
	})
}

// TestCutWatch: copies that are no longer followed are not used, and are read again later.
func TestCutWatch(t *testing.T) {
	in(t, func(b *bed) {
		b.cut.Cut()
		synctest.Wait()
		rev := b.put("new", 9)
		b.pass(10 * time.Second)
		c := b.take(rev)
		if c == nil {
			b.t.Fatal("nothing was read after the watch was cut")
		}
		b.check(c)
		if b.cut.Watches() != 2 {
			b.t.Errorf("%d watches, want 2", b.cut.Watches())
		}
	})
}

// rests returns the pauses between the reads of some time, in seconds.
func (b *bed) rests(d time.Duration) (out []int) {
	b.cut.TakeReads()
	b.pass(d)
	reads := b.cut.TakeReads()
	for i, at := range reads {
		if i > 0 {
			out = append(out, int(at.Sub(reads[i-1])/time.Second))
		}
	}
	return out
}

// TestRestsGrow: a record that does not decode has everything read again less and less often, once a minute at least. Once it is
// gone, and copies were held for a minute, the first rest is short.
func TestRestsGrow(t *testing.T) {
	in(t, func(b *bed) {
		for range 2 {
			bad := store.Item{Key: "things/bad", Value: []byte("{")}
			if err := b.store.Load(b.t.Context(), []store.Item{bad}); err != nil {
				b.t.Fatal(err)
			}
			if got, want := b.rests(5*time.Minute), []int{2, 4, 8, 16, 32, 60, 60, 60}; !slices.Equal(got, want) {
				b.t.Errorf("rests of %v s, want %v", got, want)
			}
			_, err := b.store.Update(b.t.Context(), func(tx *store.Tx) error { things().Delete(tx, "bad"); return nil })
			if err != nil {
				b.t.Fatal(err)
			}
			if got := b.rests(3 * time.Minute); len(got) > 0 {
				b.t.Errorf("read again after %v s while copies are followed", got)
			}
		}
		c := b.take(0)
		if c == nil {
			b.t.Fatal("no copies once all records decode")
		}
		b.check(c)
	})
}

// TestUnreadable: a record that does not decode ends the copies.
func TestUnreadable(t *testing.T) {
	in(t, func(b *bed) {
		if err := b.store.Load(b.t.Context(), []store.Item{{Key: "things/bad", Value: []byte("{")}}); err != nil {
			b.t.Fatal(err)
		}
		b.pass(time.Minute)
		if c := b.take(0); c != nil {
			b.t.Errorf("copies with a record that does not decode: revision %d", c.Revision())
		}
	})
}
