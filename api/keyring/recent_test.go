package keyring

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
)

// stallingRing is a ring with a key, over a store that can stall, by the clock of a
// bubble of synctest.
func stallingRing(t *testing.T) (*Ring[string], *storetest.Stalling, *site) {
	t.Helper()
	s := newSite(t)
	b := &storetest.Stalling{Backend: memory.New(time.Now)}
	s.Store = store.New(b, "")
	r := s.ring(func(o *Options[string]) { o.Store, o.Now = s.Store, time.Now })
	s.signer(r)
	return r, b, s
}

// TestStrangersPileUpAtNoStore: however many ask, and whether or not it answers, the
// store is asked once; without it there are no keys, after two seconds at most.
func TestStrangersPileUpAtNoStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b, s := stallingRing(t)
		ask := func(ctx context.Context) (keys, failed int) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 1000 {
				wg.Go(func() {
					k, err := r.Recent(ctx)
					mu.Lock()
					defer mu.Unlock()
					keys += len(k)
					if err != nil {
						failed++
					}
				})
			}
			wg.Wait()
			return keys, failed
		}
		was := b.Reads()
		if keys, failed := ask(t.Context()); keys != 1000 || failed != 0 || b.Reads() != was+1 {
			t.Errorf("%d keys, %d failed, %d reads, want one read for all", keys, failed, b.Reads()-was)
		}
		time.Sleep(Recently)
		b.Stall(true)
		was = b.Reads()
		began := time.Now()
		for range 3 { // the first have it asked, the others come within the pause
			if keys, failed := ask(t.Context()); keys != 0 || failed != 1000 || b.Reads() != was+1 {
				t.Errorf("stalled: %d keys, %d failed, %d reads", keys, failed, b.Reads()-was)
			}
			time.Sleep(readPause / 4)
		}
		if took := time.Since(began); took > readTime+readPause {
			t.Errorf("a thousand strangers waited for %v", took)
		}
		if n := strings.Count(s.log.String(), "could not be read"); n != 1 {
			t.Errorf("%d lines in the log, want 1:\n%s", n, s.log.String())
		}
		b.Stall(false)
		time.Sleep(readPause)
		if keys, failed := ask(t.Context()); keys != 1000 || failed != 0 {
			t.Errorf("when it answers again: %d keys, %d failed", keys, failed)
		}
	})
}

// TestWhoLeavesTakesNobodyAlong: the first to ask leaves, and the others get the keys.
func TestWhoLeavesTakesNobodyAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, _ := stallingRing(t)
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := r.Recent(gone); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if keys, err := r.Recent(t.Context()); err != nil || len(keys) != 1 {
			t.Errorf("%d keys, %v", len(keys), err)
		}
	})
}

// TestGivenUpKeyIsNotRecent: dropped keys count no more, at once in the ring that dropped them and soon elsewhere, also
// where a caller was just asking.
func TestGivenUpKeyIsNotRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, b, s := stallingRing(t)
		there := s.ring(func(o *Options[string]) { o.Now = time.Now })
		only := func(r *Ring[string]) string {
			t.Helper()
			keys, err := r.Recent(t.Context())
			if err != nil || len(keys) != 1 {
				t.Fatalf("%d keys, %v", len(keys), err)
			}
			return keys[0].ID
		}
		old := only(here)
		if only(there) != old {
			t.Error("two rings have two keys")
		}
		fresh := s.rotate(here, true)[0].ID
		if got := only(here); got != fresh {
			t.Errorf("where it was rotated: %s, want %s", got, fresh)
		}
		time.Sleep(Recently)
		if got := only(there); got != fresh {
			t.Errorf("elsewhere: %s, want %s", got, fresh)
		}
		b.Stall(true)
		time.Sleep(Recently)
		late := make(chan error)
		go func() {
			_, err := here.Recent(t.Context())
			late <- err
		}()
		synctest.Wait()
		b.Stall(false)
		last := s.rotate(here, true)[0].ID
		if got := only(here); got != last {
			t.Errorf("a read of before the rotation is shown: %s, want %s", got, last)
		}
		if err := <-late; err == nil {
			t.Error("the read of before ended well")
		}
		if got := only(here); got != last {
			t.Errorf("after the read of before ended: %s, want %s", got, last)
		}
	})
}

// TestRecentKeysEndInTime: keys at hand are compared with the clock each time.
func TestRecentKeysEndInTime(t *testing.T) {
	s := newSite(t)
	r := s.ring()
	s.signer(r)
	all, err := r.Recent(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%d keys, %v", len(all), err)
	}
	s.Clock = all[0].Until.Add(-Recently / 2)
	for range 2 { // what is asked for changes nothing that is at hand
		if got, err := r.Recent(t.Context()); err != nil || len(got) != 1 {
			t.Fatalf("before it ends: %d keys, %v", len(got), err)
		}
	}
	s.Clock = all[0].Until
	for range 2 {
		if got, err := r.Recent(t.Context()); err != nil || len(got) != 0 {
			t.Errorf("when it ended: %d keys, %v", len(got), err)
		}
	}
}
