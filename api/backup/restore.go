package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"filippo.io/age"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/backup/archive"
	"portcullis/api/review"
	"portcullis/api/store"
)

// Bounds of one transaction of a restore. An etcd that is not ours takes 128 records and 1.5 MiB by default.
const (
	maxBatch      = 100
	maxBatchBytes = 512 << 10
)

// RestoreOptions say what is restored. All fields but Anchors are required.
type RestoreOptions struct {
	Store      *store.Store // with nothing in it
	File       io.ReaderAt
	Size       int64
	Identities []age.Identity
	Anchors    []chain.Anchor // by Seq; the audit log in the backup must have those that are not later than it
	State      int            // newest format of records that this program reads
	Actor      string         // for the audit log
	Now        time.Time
}

// Restore verifies a backup whole, writes its records into an empty store, and marks the state as in review. It
// returns the mark and how many records were written. With an error the store is not to be used.
func Restore(ctx context.Context, o RestoreOptions) (*review.Mark, int64, error) {
	h, _, err := archive.Read(o.File, o.Size, o.Identities, o.Anchors, func(archive.Item) error { return nil })
	if err != nil {
		return nil, 0, err
	}
	if h.State > o.State {
		return nil, 0, fmt.Errorf("the backup's records have format %d, and this program reads formats up to %d: install version %.40q or a later one", h.State, o.State, h.Program)
	}
	snap, err := o.Store.Snapshot(ctx)
	if err != nil {
		return nil, 0, err
	}
	if there, err := snap.Items(ctx, "", 1); err != nil || len(there) > 0 {
		return nil, 0, errors.Join(err, errors.New("the store is not empty: a backup is restored into an empty one only"))
	}
	mark := review.Mark{Since: o.Now.UTC().Round(0), Incomplete: true, Taken: h.Time, Revision: h.Revision, Origin: h.Origin, Audit: h.Audit}
	put := func(tx *store.Tx) error { return review.Marks().Put(tx, review.Key, mark) }
	if _, err := o.Store.Update(ctx, put); err != nil {
		return nil, 0, err
	}
	l := loader{ctx: ctx, store: o.Store}
	if _, _, err := archive.Read(o.File, o.Size, o.Identities, o.Anchors, l.add); err != nil {
		return nil, 0, err
	}
	if err := l.flush(); err != nil {
		return nil, 0, err
	}
	if got, err := audit.Verify(ctx, o.Store); err != nil || got != h.Audit {
		return nil, 0, fmt.Errorf("the restored audit log ends at entry %d, want %d: %w", got.Seq, h.Audit.Seq, err)
	}
	mark.Incomplete = false
	_, err = o.Store.Update(ctx, func(tx *store.Tx) error {
		return errors.Join(put(tx), audit.Append(ctx, tx, audit.Entry{
			Time: mark.Since, Actor: o.Actor, Action: "state.restore", Object: "state",
			Detail: fmt.Sprintf("from the backup of %s, revision %d, which ends at audit entry %d; %d records; in review from now on", h.Time.Format(time.RFC3339), h.Revision, h.Audit.Seq, l.written),
		}))
	})
	return &mark, l.written, err
}

// loader writes records, many in one transaction.
type loader struct {
	ctx     context.Context
	store   *store.Store
	batch   []store.Item
	bytes   int
	written int64
}

func (l *loader) add(i archive.Item) error {
	for _, prefix := range review.Seen() {
		if strings.HasPrefix(i.Key, prefix) {
			return nil
		}
	}
	if size := len(i.Key) + len(i.Value); len(l.batch) == maxBatch || l.bytes+size > maxBatchBytes {
		if err := l.flush(); err != nil {
			return err
		}
	}
	l.batch = append(l.batch, store.Item{Key: i.Key, Value: i.Value})
	l.bytes += len(i.Key) + len(i.Value)
	l.written++
	return nil
}

func (l *loader) flush() error {
	if len(l.batch) == 0 {
		return nil
	}
	err := l.store.Load(l.ctx, l.batch)
	l.batch, l.bytes = l.batch[:0], 0
	return err
}
