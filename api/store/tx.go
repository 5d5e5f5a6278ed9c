package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxAttempts bounds how often Update tries again after a conflict. Writers in
// this process take turns, so conflicts come from other processes only.
const maxAttempts = 50

// Tx is a transaction: reads as of one revision, each of them a condition of
// the commit, and writes that become visible together. It lives as long as the
// function given to Update.
type Tx struct {
	s        *Store
	revision int64 // 0 until the first read
	conds    map[string]Condition
	ops      map[string]Op
}

// Update runs fn, commits what it wrote at one revision, and returns that revision (0 when fn wrote nothing). If a record
// that fn read was changed meanwhile, fn runs again with fresh records. An error of fn abandons the transaction and is
// returned as it is.
func (s *Store) Update(ctx context.Context, fn func(tx *Tx) error) (int64, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	for attempt := range maxAttempts {
		tx := &Tx{s: s, conds: map[string]Condition{}, ops: map[string]Op{}}
		if err := fn(tx); err != nil {
			return 0, err
		}
		if len(tx.ops) == 0 {
			return 0, nil
		}
		rev, err := s.backend.Commit(ctx, tx.batch())
		if !errors.Is(err, ErrConflict) {
			return rev, err
		}
		select {
		case <-time.After(time.Duration(attempt) * time.Millisecond):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return 0, fmt.Errorf("%w %d times: try again later", ErrConflict, maxAttempts)
}

// Snapshot returns a reader as of the transaction's revision whose reads are no conditions: for looking around, never for
// what the change relies on.
func (tx *Tx) Snapshot(ctx context.Context) (Snapshot, error) {
	if err := tx.pin(ctx); err != nil {
		return Snapshot{}, err
	}
	return Snapshot{s: tx.s, Revision: tx.revision}, nil
}

func (tx *Tx) pin(ctx context.Context) error {
	if tx.revision != 0 {
		return nil
	}
	n, err := tx.s.Snapshot(ctx)
	tx.revision = n.Revision
	return err
}

func (tx *Tx) read(ctx context.Context, key string, prefix bool) (Items, error) {
	if err := tx.pin(ctx); err != nil {
		return Items{}, err
	}
	items, err := tx.s.readAt(ctx, key, prefix, tx.revision)
	if err != nil {
		return Items{}, err
	}
	if prefix {
		tx.expect(Condition{Key: key, Prefix: true, Modified: tx.revision})
	} else if len(items.Items) == 0 {
		tx.expect(Condition{Key: key})
	}
	for _, i := range items.Items {
		tx.expect(Condition{Key: i.Key, Modified: i.Modified})
	}
	return tx.overlay(items, key, prefix), nil
}

func (tx *Tx) expect(c Condition) {
	id := c.Key
	if c.Prefix {
		id += "*"
	}
	tx.conds[id] = c
}

// overlay lets the transaction see its own writes.
func (tx *Tx) overlay(items Items, key string, prefix bool) Items {
	if len(tx.ops) == 0 {
		return items
	}
	kept := slices.DeleteFunc(items.Items, func(i Item) bool { _, ours := tx.ops[i.Key]; return ours })
	for k, o := range tx.ops {
		if !o.Delete && (k == key || prefix && strings.HasPrefix(k, key)) {
			kept = append(kept, Item{Key: k, Value: o.Value, Modified: tx.conds[k].Modified})
		}
	}
	slices.SortFunc(kept, func(a, b Item) int { return strings.Compare(a.Key, b.Key) })
	items.Items = kept
	return items
}

func (tx *Tx) write(o Op) { tx.ops[o.Key] = o }

// batch returns the transaction in key order, with full keys.
func (tx *Tx) batch() Batch {
	var b Batch
	for _, id := range sortedKeys(tx.conds) {
		c := tx.conds[id]
		c.Key = tx.s.prefix + c.Key
		b.If = append(b.If, c)
	}
	for _, k := range sortedKeys(tx.ops) {
		o := tx.ops[k]
		o.Key = tx.s.prefix + o.Key
		b.Do = append(b.Do, o)
	}
	return b
}
