package storetest

import (
	"context"
	"sync/atomic"

	"portcullis/api/store"
)

// Compacting is a backend that has single changes from a revision on.
type Compacting struct {
	store.Backend
	from atomic.Int64
}

// Compact drops the single changes before a revision.
func (c *Compacting) Compact(revision int64) { c.from.Store(revision) }

// Watch implements store.Backend. It fails with store.ErrCompacted where changes were dropped.
func (c *Compacting) Watch(ctx context.Context, prefix string, from int64) <-chan store.Changes {
	if from+1 < c.from.Load() {
		out := make(chan store.Changes, 1)
		out <- store.Changes{Err: store.ErrCompacted}
		close(out)
		return out
	}
	return c.Backend.Watch(ctx, prefix, from)
}
