package storetest

import (
	"context"
	"sync/atomic"

	"portcullis/api/store"
)

// Stalling is a Backend that answers no read while it is stalled, as one that lost its quorum: a caller waits until its
// context ends.
type Stalling struct {
	store.Backend

	stalled atomic.Bool
	reads   atomic.Int64
}

// Stall begins or ends it, for reads from now on.
func (s *Stalling) Stall(on bool) { s.stalled.Store(on) }

// Reads counts the reads that were asked for.
func (s *Stalling) Reads() int64 { return s.reads.Load() }

// Read waits in vain while the backend is stalled.
func (s *Stalling) Read(ctx context.Context, key string, prefix bool, rev int64) (store.Items, error) {
	s.reads.Add(1)
	if s.stalled.Load() {
		<-ctx.Done()
		return store.Items{}, ctx.Err()
	}
	return s.Backend.Read(ctx, key, prefix, rev)
}

// Get waits in vain while the backend is stalled.
func (s *Stalling) Get(ctx context.Context, keys []string, rev int64) (store.Items, error) {
	s.reads.Add(1)
	if s.stalled.Load() {
		<-ctx.Done()
		return store.Items{}, ctx.Err()
	}
	return s.Backend.Get(ctx, keys, rev)
}
