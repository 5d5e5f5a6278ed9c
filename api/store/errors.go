package store

import (
	"errors"
)

// Errors a caller may branch on.
var (
	// ErrNotFound: no record has the key.
	ErrNotFound = errors.New("no such record")
	// ErrConflict: a record that the transaction read was changed by another writer, and kept being changed while the
	// transaction was tried again.
	ErrConflict = errors.New("record changed meanwhile")
	// ErrCompacted: the revision to resume a watch from is no longer kept.
	// List again and watch from there.
	ErrCompacted = errors.New("revision no longer kept")
	// ErrFull: the store refuses writes because its disk or quota is full, or
	// writes that are Growing because room is short. Nothing was written and
	// everything written before is intact.
	ErrFull = errors.New("store is full")
	// ErrLeaseEnded: the lease was revoked, or was not kept alive in time. The records
	// bound to it are deleted.
	ErrLeaseEnded = errors.New("lease has ended")
	// ErrAway: the store does not serve at present. Nothing was written. It is tried
	// again, so that a later attempt may succeed.
	ErrAway = errors.New("store is away")
	// ErrUnreadable: the bytes of a record are not what a store writes.
	ErrUnreadable = errors.New("record is unreadable")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
)

// Optional returns the value of a record that was read, zero when there is none.
func Optional[T any](rec Record[T], err error) (T, error) {
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return rec.Value, err
}
