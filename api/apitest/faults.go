package apitest

import (
	"context"
	"sync"

	"portcullis/api/store"
)

// faults is a backend of a store that fails when a test says so.
type faults struct {
	store.Backend

	mu  sync.Mutex
	err error // of every call; nil: none
}

func (f *faults) fail(err error) { f.mu.Lock(); defer f.mu.Unlock(); f.err = err }

func (f *faults) failure() error { f.mu.Lock(); defer f.mu.Unlock(); return f.err }

// Read implements store.Backend.
func (f *faults) Read(ctx context.Context, key string, prefix bool, rev int64) (store.Items, error) {
	if err := f.failure(); err != nil {
		return store.Items{}, err
	}
	return f.Backend.Read(ctx, key, prefix, rev)
}

// Range implements store.Backend.
func (f *faults) Range(ctx context.Context, prefix, after string, limit int, rev int64) (store.Items, error) {
	if err := f.failure(); err != nil {
		return store.Items{}, err
	}
	return f.Backend.Range(ctx, prefix, after, limit, rev)
}

// Get implements store.Backend.
func (f *faults) Get(ctx context.Context, keys []string, rev int64) (store.Items, error) {
	if err := f.failure(); err != nil {
		return store.Items{}, err
	}
	return f.Backend.Get(ctx, keys, rev)
}

// Commit implements store.Backend.
func (f *faults) Commit(ctx context.Context, b store.Batch) (int64, error) {
	if err := f.failure(); err != nil {
		return 0, err
	}
	return f.Backend.Commit(ctx, b)
}
