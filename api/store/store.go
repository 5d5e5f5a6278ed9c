package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Store holds the records of one Portcullis. It is safe for concurrent use.
type Store struct {
	backend Backend
	prefix  string
	// turn lets one transaction of this process run at a time. Commits are one
	// after the other in any case, and audited changes all touch the head of
	// the audit chain, so running them together only makes conflicts.
	turn   chan struct{}
	recent *recent
}

// New makes a Store over a backend. Package etcd has the one that services use.
func New(b Backend, prefix string) *Store {
	if prefix == "" {
		prefix = "portcullis"
	}
	return &Store{backend: b, prefix: strings.TrimSuffix(prefix, "/") + "/", turn: make(chan struct{}, 1), recent: newRecent(recentBytes)}
}

// Key returns the backend's key of one that is relative to the store.
func (s *Store) Key(key string) string { return s.prefix + key }

// Twin returns another Store over the same backend and keys, as another process would have one. Closing either closes both.
func (s *Store) Twin() *Store { return s.Over(s.backend) }

// Over returns a Store with the same keys over another backend.
func (s *Store) Over(b Backend) *Store { return New(b, s.prefix) }

// Backend returns the backend of the store, so that a test can wrap it.
func (s *Store) Backend() Backend { return s.backend }

// Close ends the store. The embedded member writes out what it holds.
func (s *Store) Close() error { return s.backend.Close() }

// Failed is closed when the embedded member died, for example of a full disk:
// stop the service and say Err.
func (s *Store) Failed() <-chan struct{} { return s.backend.Failed() }

// Err says why the store failed.
func (s *Store) Err() error { return s.backend.Err() }

// NewLease grants a lease of ttl, rounded up to seconds. Records put with it
// vanish by themselves; until then they are as durable as others.
func (s *Store) NewLease(ctx context.Context, ttl time.Duration) (Lease, error) {
	return s.backend.NewLease(ctx, ttl)
}

// KeepAlive starts the time of a lease again. Its error is ErrLeaseEnded when the lease has ended. Any other error leaves
// open whether the time started again.
func (s *Store) KeepAlive(ctx context.Context, l Lease) error { return s.backend.KeepAlive(ctx, l) }

// Revoke ends a lease and deletes the records bound to it. A lease that has ended already
// is no error.
func (s *Store) Revoke(ctx context.Context, l Lease) error { return s.backend.Revoke(ctx, l) }

// Reader is what records are read through: a Store (each read as of now), a
// Snapshot (all reads as of one revision) or a Tx (the same, and each read
// becomes a condition of the commit).
type Reader interface {
	read(ctx context.Context, key string, prefix bool) (Items, error)
}

func (s *Store) read(ctx context.Context, key string, prefix bool) (Items, error) {
	return s.readAt(ctx, key, prefix, 0)
}

func (s *Store) readAt(ctx context.Context, key string, prefix bool, rev int64) (Items, error) {
	items, err := s.backend.Read(ctx, s.prefix+key, prefix, rev)
	for i := range items.Items {
		items.Items[i].Key = strings.TrimPrefix(items.Items[i].Key, s.prefix)
	}
	return items, err
}

// Snapshot is the store as of one revision.
type Snapshot struct {
	s        *Store
	Revision int64
}

// Snapshot pins the present revision. It stays readable for at least ten
// minutes.
func (s *Store) Snapshot(ctx context.Context) (Snapshot, error) {
	items, err := s.backend.Read(ctx, s.prefix, false, 0)
	if err != nil {
		return Snapshot{}, err
	}
	return Snapshot{s: s, Revision: items.Revision}, nil
}

// At returns the store as of a revision that was its present one less than ten minutes ago.
func (s *Store) At(revision int64) Snapshot { return Snapshot{s: s, Revision: revision} }

func (n Snapshot) read(ctx context.Context, key string, prefix bool) (Items, error) {
	return n.s.readAt(ctx, key, prefix, n.Revision)
}

// Items returns up to limit records of all collections as bytes, in key order, beginning after
// the key after, or at the first if that is empty. Keys are relative to the store.
func (n Snapshot) Items(ctx context.Context, after string, limit int) ([]Item, error) {
	items, err := n.page(ctx, "", after, limit)
	if err != nil {
		return nil, fmt.Errorf("read records after %q: %w", after, err)
	}
	return items, nil
}

func (n Snapshot) page(ctx context.Context, prefix, after string, limit int) ([]Item, error) {
	if after != "" {
		after = n.s.prefix + after
	}
	items, err := n.s.backend.Range(ctx, n.s.prefix+prefix, after, limit, n.Revision)
	for i := range items.Items {
		items.Items[i].Key = strings.TrimPrefix(items.Items[i].Key, n.s.prefix)
	}
	return items.Items, err
}

// Load writes records as Items returned them, in one transaction, and overwrites those with the same
// keys. It is for a store that nothing else uses: no reader or writer may rely on what it replaces.
func (s *Store) Load(ctx context.Context, items []Item) error {
	b := Batch{Do: make([]Op, 0, len(items))}
	for _, i := range items {
		b.Do = append(b.Do, Op{Key: s.prefix + i.Key, Value: i.Value})
		s.recent.forget(i.Key)
	}
	if _, err := s.backend.Commit(ctx, b); err != nil {
		return fmt.Errorf("load %d records: %w", len(items), err)
	}
	return nil
}

// Remove removes records by their keys, in one transaction. It is for a store that nothing else uses: no reader or
// writer may rely on what it removes.
func (s *Store) Remove(ctx context.Context, keys []string) error {
	b := Batch{Do: make([]Op, 0, len(keys))}
	for _, key := range keys {
		b.Do = append(b.Do, Op{Key: s.prefix + key, Delete: true})
		s.recent.forget(key)
	}
	if _, err := s.backend.Commit(ctx, b); err != nil {
		return fmt.Errorf("remove %d records: %w", len(keys), err)
	}
	return nil
}

func (n Snapshot) get(ctx context.Context, keys []string) ([]Item, error) {
	full := make([]string, len(keys))
	for i, k := range keys {
		full[i] = n.s.prefix + k
	}
	items, err := n.s.backend.Get(ctx, full, n.Revision)
	for i := range items.Items {
		items.Items[i].Key = strings.TrimPrefix(items.Items[i].Key, n.s.prefix)
	}
	return items.Items, err
}

// Watch sends the changes to keys that begin with prefix, after revision from,
// until ctx ends. The last element carries the error that ended the watch, if
// any. Keys are relative to the store.
func (s *Store) Watch(ctx context.Context, prefix string, from int64) <-chan Changes {
	in, out := s.backend.Watch(ctx, s.prefix+prefix, from), make(chan Changes)
	go func() {
		defer close(out)
		for c := range in {
			for i := range c.Changes {
				c.Changes[i].Key = strings.TrimPrefix(c.Changes[i].Key, s.prefix)
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
