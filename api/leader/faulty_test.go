package leader_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"portcullis/api/leader"
	"portcullis/api/store"
)

// span is a time from the beginning of a test, without its end.
type span struct{ from, to time.Duration }

// faulty is a machine: its way to the store, which loses and delays, and its pauses, in
// which nothing runs but the clock.
type faulty struct {
	store.Backend

	began  time.Time
	cut    []span // the store cannot be reached
	paused []span // the process runs not

	mu     sync.Mutex
	random *rand.Rand
}

const (
	ttl    = 2 * time.Second
	margin = ttl / 5
	length = 40 * time.Second // of a test; faults end at two thirds
)

func newFaulty(b store.Backend, seed uint64, n int) *faulty {
	f := &faulty{Backend: b, began: time.Now(), random: rand.New(rand.NewPCG(seed, uint64(n)))}
	f.cut, f.paused = f.spans(), f.spans()
	return f
}

func (f *faulty) spans() (all []span) {
	for at := f.upTo(8 * time.Second); at < length*2/3; at += f.upTo(12 * time.Second) {
		s := span{at, at + f.upTo(3*ttl)}
		all, at = append(all, s), s.to
	}
	return all
}

func (f *faulty) upTo(d time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Duration(f.random.Int64N(int64(d)))
}

func (f *faulty) chance(of float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.Float64() < of
}

func (f *faulty) elapsed() time.Duration { return time.Since(f.began) }

// in returns the span that a time is in.
func in(all []span, at time.Duration) (span, bool) {
	for _, s := range all {
		if s.from <= at && at < s.to {
			return s, true
		}
	}
	return span{}, false
}

// steady makes a machine that does not fail.
func steady(b store.Backend) *faulty { return &faulty{Backend: b, began: time.Now()} }

// cutOff cuts the network from now on, for a time.
func (f *faulty) cutOff(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = append(f.cut, span{f.elapsed(), f.elapsed() + d})
}

func (f *faulty) isCut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, cut := in(f.cut, f.elapsed())
	return cut
}

func (f *faulty) quiet() bool { return f.random == nil || f.elapsed() >= length*2/3+3*ttl }

// wake waits for the end of a pause.
func (f *faulty) wake() {
	if s, ok := in(f.paused, f.elapsed()); ok {
		time.Sleep(s.to - f.elapsed())
	}
}

// isPaused reports whether nothing runs on this machine now.
func (f *faulty) isPaused() bool { _, ok := in(f.paused, f.elapsed()); return ok }

// call makes one request: it may be lost, its answer too, and each takes a while.
func (f *faulty) call(ctx context.Context, request func() error) error {
	f.wake()
	defer f.wake()
	lost := func() bool { return f.isCut() || !f.quiet() && f.chance(0.1) }
	travel := func() {
		if f.random == nil {
			return
		}
		d := f.upTo(5 * time.Millisecond)
		if !f.quiet() && f.chance(0.2) {
			d = f.upTo(ttl)
		}
		time.Sleep(d)
	}
	if lost() {
		<-ctx.Done()
		return ctx.Err()
	}
	travel()
	err := request()
	travel()
	if lost() {
		<-ctx.Done()
		return ctx.Err()
	}
	if ctx.Err() != nil {
		return ctx.Err() // nothing waits for the answer any longer
	}
	return err
}

func (f *faulty) Read(ctx context.Context, key string, prefix bool, rev int64) (items store.Items, err error) {
	e := f.call(ctx, func() error {
		items, err = f.Backend.Read(context.WithoutCancel(ctx), key, prefix, rev)
		return err
	})
	return items, e
}

func (f *faulty) Commit(ctx context.Context, b store.Batch) (rev int64, err error) {
	e := f.call(ctx, func() error { rev, err = f.Backend.Commit(context.WithoutCancel(ctx), b); return err })
	return rev, e
}

func (f *faulty) NewLease(ctx context.Context, d time.Duration) (l store.Lease, err error) {
	e := f.call(ctx, func() error { l, err = f.Backend.NewLease(context.WithoutCancel(ctx), d); return err })
	return l, e
}

func (f *faulty) KeepAlive(ctx context.Context, l store.Lease) error {
	return f.call(ctx, func() error { return f.Backend.KeepAlive(context.WithoutCancel(ctx), l) })
}

func (f *faulty) Revoke(ctx context.Context, l store.Lease) error {
	return f.call(ctx, func() error { return f.Backend.Revoke(context.WithoutCancel(ctx), l) })
}

// Watch reports nothing while the network is cut, without a sign, and each change after a
// while.
func (f *faulty) Watch(ctx context.Context, prefix string, from int64) <-chan store.Changes {
	out := make(chan store.Changes)
	go func() {
		defer close(out)
		for c := range f.Backend.Watch(ctx, prefix, from) {
			if f.call(ctx, func() error { return nil }) != nil {
				return
			}
			select {
			case out <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// clock runs rate times as fast as time. One that halts stands still in pauses, as
// CLOCK_MONOTONIC does while a machine is suspended.
func (f *faulty) clock(rate float64, halts bool) leader.Clock {
	return func() leader.Instant {
		at := f.elapsed()
		if halts {
			whole := at
			for _, s := range f.paused {
				if whole >= s.from {
					at -= min(whole, s.to) - s.from
				}
			}
		}
		return leader.Instant(float64(at) * rate)
	}
}
