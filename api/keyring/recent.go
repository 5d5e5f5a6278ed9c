package keyring

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// Recently is how old the keys that Recent returns may be.
	Recently = 3 * time.Second
	// readTime is how long a store may take to answer Recent.
	readTime = 2 * time.Second
	// readPause is how long after a failure the store is not asked again.
	readPause = time.Second
)

// reading is one read of the store, for all callers that ask while it counts.
type reading struct {
	began time.Time
	until time.Time // counts no longer; guarded by Ring.recentMu
	done  chan struct{}

	// The following fields are set once done is closed, and not changed after that.
	keys Keys // as they are stored
	err  error
}

// Recent returns the keys that count now, by the state of the store at most Recently ago. Changes by this ring show at
// once, changes by others by then. It is for callers that a stranger can make ask as often as he likes. However many ask,
// the store is read once, and it has two seconds to answer. After that there are no keys, and for another second no caller
// asks the store. Failures are in the log, once for each read.
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

// reading returns the read that counts, and begins one where none does.
func (r *Ring[K]) reading(ctx context.Context) *reading {
	r.recentMu.Lock()
	defer r.recentMu.Unlock()
	now := r.o.Now()
	if last := r.recent; last != nil && !now.Before(last.began) && now.Before(last.until) {
		return last
	}
	got := &reading{began: now, until: now.Add(Recently), done: make(chan struct{})}
	r.recent = got
	// The first caller may leave before the others.
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
