package keyring

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// Recently is how old what Recent gives may be.
	Recently = 3 * time.Second
	// readTime is how long a store may take to answer Recent.
	readTime = 2 * time.Second
	// readPause is how long after a failure the store is not asked again.
	readPause = time.Second
)

// reading is one read of the store, for all who ask while it counts.
type reading struct {
	began time.Time
	until time.Time // counts no longer; guarded by Ring.recentMu
	done  chan struct{}

	// What follows is set once done is closed, and not changed after that.
	keys Keys // as they are stored
	err  error
}

// Recent gives the keys that count now, by what the store had at most Recently ago: what
// this ring itself changes shows at once, what others change, by then. It is for those
// whom a stranger can have ask as often as he likes. However many do, the store is read
// once, and it has two seconds to answer: after that there are no keys, and for another
// second nobody asks it. Failures are in the log, once for each read.
func (r *Ring[K]) Recent(ctx context.Context) (Keys, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	got := r.reading(ctx)
	select {
	case <-got.done:
	case <-ctx.Done():
		return nil, r.explain(fmt.Errorf("%s: the store did not answer: %w", r.o.Words.Key, ctx.Err()))
	}
	if got.err != nil {
		return nil, r.explain(got.err)
	}
	return slices.Clone(got.keys).counting(r.o.Scope, r.Now(), r.o.After), nil
}

// reading gives the read that counts, and begins one where none does.
func (r *Ring[K]) reading(ctx context.Context) *reading {
	r.recentMu.Lock()
	defer r.recentMu.Unlock()
	now := r.o.Now()
	if last := r.recent; last != nil && !now.Before(last.began) && now.Before(last.until) {
		return last
	}
	got := &reading{began: now, until: now.Add(Recently), done: make(chan struct{})}
	r.recent = got
	// Whoever asked first may leave before the others.
	go r.readInto(context.WithoutCancel(ctx), got)
	return got
}

func (r *Ring[K]) readInto(ctx context.Context, got *reading) {
	defer close(got.done)
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	rec, err := r.stored(ctx, r.o.Store)
	if got.keys, got.err = rec.Keys, err; err == nil {
		return
	}
	r.o.Log.ErrorContext(ctx, "the "+r.o.Words.Key+" could not be read", "err", err)
	r.recentMu.Lock()
	defer r.recentMu.Unlock()
	got.until = r.o.Now().Add(readPause)
}

// forget has the next Recent read the store.
func (r *Ring[K]) forget() {
	r.recentMu.Lock()
	defer r.recentMu.Unlock()
	r.recent = nil
}
