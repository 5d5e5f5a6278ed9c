package store

import (
	"context"
	"time"
)

// Backend is the little of etcd that this package stands on. It exists so that
// tests can put a failing one in between; there is one real implementation.
type Backend interface {
	// Read returns the item at key, or with prefix every item below it in key order, as of revision rev; 0 means now.
	Read(ctx context.Context, key string, prefix bool, rev int64) (Items, error)
	// Range returns up to limit items below prefix whose keys come after the key after, in key
	// order, as of revision rev; 0 means now. With an empty after it begins at the first.
	Range(ctx context.Context, prefix, after string, limit int, rev int64) (Items, error)
	// Get returns the items at keys that exist, in the order of keys, as of revision rev; 0
	// means now.
	Get(ctx context.Context, keys []string, rev int64) (Items, error)
	// Commit applies b at one revision and returns it, or fails with ErrConflict and changes nothing when a condition does
	// not hold.
	Commit(ctx context.Context, b Batch) (int64, error)
	// Watch sends the changes below prefix after revision from, in order, until
	// ctx ends or it cannot go on; the last element then carries the error.
	Watch(ctx context.Context, prefix string, from int64) <-chan Changes
	// NewLease grants a lease: records bound to it vanish when ttl has passed.
	NewLease(ctx context.Context, ttl time.Duration) (Lease, error)
	// KeepAlive starts the time of a lease again, or fails with ErrLeaseEnded. The time begins not before the call and not
	// after the return.
	KeepAlive(ctx context.Context, l Lease) error
	// Revoke ends a lease and deletes the records bound to it. A lease that has ended
	// already is no error.
	Revoke(ctx context.Context, l Lease) error
	// Failed is closed when the backend can never serve again; Err says why.
	Failed() <-chan struct{}
	// Err returns the reason after Failed was closed.
	Err() error
	// Close ends the backend and waits for it.
	Close() error
}

// Lease names a lease; 0 means none.
type Lease int64

// Item is one stored record as bytes.
type Item struct {
	Key      string
	Value    []byte
	Created  int64 // revision of its creation
	Modified int64 // revision of its last change
}

// Items is the answer to a Read.
type Items struct {
	Items    []Item
	Revision int64 // as of which the items were read
}

// Batch is a transaction: every condition, then every operation.
type Batch struct {
	If []Condition
	Do []Op
}

// Condition holds while the item at Key was last modified at revision Modified
// (0: does not exist). With Prefix it holds while nothing below Key was
// created or modified after revision Modified.
type Condition struct {
	Key      string
	Prefix   bool
	Modified int64
}

// Op puts Value at Key, or deletes it.
type Op struct {
	Key    string
	Value  []byte
	Lease  Lease
	Delete bool
}

// Change is one changed key; Value is nil when it was deleted.
type Change struct {
	Key      string
	Value    []byte
	Created  int64 // 0 when deleted
	Revision int64
}

// Changes are the changes of one or more whole revisions, up to Revision.
type Changes struct {
	Changes  []Change
	Revision int64
	Err      error // the watch ended; only in the last element
}
