package storetest

import (
	"context"
	"errors"
	"sync"

	"portcullis/api/store"
)

// ErrInjected is what a Failing backend fails with.
var ErrInjected = errors.New("injected store failure")

// Moment is when a failing write fails.
type Moment bool

// Before: nothing landed. After: it landed, but the caller gets an error.
const (
	Before Moment = false
	After  Moment = true
)

// Failing is a Backend whose n-th commit from now fails; all that follows
// fails too, as after a crash, until Heal. The zero countdown never fails.
type Failing struct {
	store.Backend

	mu      sync.Mutex
	left    int // commits until the failure; 0: none planned
	moment  Moment
	down    bool
	commits int
	short   error
}

// Short has the backend take no growing commits, for a reason; nil: it takes them again.
func (f *Failing) Short(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.short = why
}

// Room implements store.Roomy.
func (f *Failing) Room() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.short
}

// FailAt plans the failure of the n-th commit from now, n from 1.
func (f *Failing) FailAt(n int, m Moment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.moment, f.down = n, m, false
}

// Heal ends the failure and any plan for one.
func (f *Failing) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.down = 0, false
}

// Commits counts the commits that were tried.
func (f *Failing) Commits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.commits
}

// Down reports whether the planned failure has happened.
func (f *Failing) Down() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down
}

// Read fails while the backend is down.
func (f *Failing) Read(ctx context.Context, key string, prefix bool, rev int64) (store.Items, error) {
	if f.Down() {
		return store.Items{}, ErrInjected
	}
	return f.Backend.Read(ctx, key, prefix, rev)
}

// Get fails while the backend is down.
func (f *Failing) Get(ctx context.Context, keys []string, rev int64) (store.Items, error) {
	if f.Down() {
		return store.Items{}, ErrInjected
	}
	return f.Backend.Get(ctx, keys, rev)
}

// Commit fails as planned.
func (f *Failing) Commit(ctx context.Context, b store.Batch) (int64, error) {
	if err := f.Room(); err != nil && store.IsGrowing(ctx) {
		return 0, err
	}
	land, fail := f.next()
	if fail && !land {
		return 0, ErrInjected
	}
	rev, err := f.Backend.Commit(ctx, b)
	if fail {
		return 0, ErrInjected
	}
	return rev, err
}

func (f *Failing) next() (land, fail bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commits++
	if f.down {
		return false, true
	}
	if f.left == 0 {
		return true, false
	}
	f.left--
	if f.left > 0 {
		return true, false
	}
	f.down = true
	return bool(f.moment), true
}
