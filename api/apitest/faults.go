package apitest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"portcullis/api/store"
)

// faults is a backend of a store that fails when a test says so, and notes what is asked of it.
type faults struct {
	store.Backend

	mu  sync.Mutex
	err error // of every call; nil: none
	log []string
}

// note notes a call: which collections it is about, how many records it names, and how many it was answered.
func (f *faults) note(what string, keys []string, got int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, k := range keys {
		keys[i], _, _ = strings.Cut(k, "/")
	}
	f.log = append(f.log, fmt.Sprintf("%s %v: %d", what, keys, got))
}

func (f *faults) work() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.log = nil }()
	return f.log
}

func (f *faults) fail(err error) { f.mu.Lock(); defer f.mu.Unlock(); f.err = err }

func (f *faults) failure() error { f.mu.Lock(); defer f.mu.Unlock(); return f.err }

// Read implements store.Backend.
func (f *faults) Read(ctx context.Context, key string, prefix bool, rev int64) (store.Items, error) {
	if err := f.failure(); err != nil {
		return store.Items{}, err
	}
	items, err := f.Backend.Read(ctx, key, prefix, rev)
	f.note("read", []string{key}, len(items.Items))
	return items, err
}

// Range implements store.Backend.
func (f *faults) Range(ctx context.Context, prefix, after string, limit int, rev int64) (store.Items, error) {
	if err := f.failure(); err != nil {
		return store.Items{}, err
	}
	items, err := f.Backend.Range(ctx, prefix, after, limit, rev)
	f.note("range", []string{prefix}, len(items.Items))
	return items, err
}

// Get implements store.Backend.
func (f *faults) Get(ctx context.Context, keys []string, rev int64) (store.Items, error) {
	if err := f.failure(); err != nil {
		return store.Items{}, err
	}
	items, err := f.Backend.Get(ctx, keys, rev)
	f.note("get", slices.Clone(keys), len(items.Items))
	return items, err
}

// Commit implements store.Backend.
func (f *faults) Commit(ctx context.Context, b store.Batch) (int64, error) {
	if err := f.failure(); err != nil {
		return 0, err
	}
	var keys []string
	for _, op := range b.Do {
		keys = append(keys, op.Key)
	}
	slices.Sort(keys)
	f.note("commit", keys, len(b.If))
	return f.Backend.Commit(ctx, b)
}
