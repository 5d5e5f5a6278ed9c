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
	guess    bool  // single records are taken from recent where that has them, and all is read as of now
	revision int64 // 0 until the first read
	read1    map[string]seen
	conds    map[string]Condition
	ops      map[string]Op
	torn     bool // two reads had different revisions of a record
}

// Update runs fn, commits what it wrote at one revision, and returns that revision (0 when fn wrote nothing). If a record
// that fn read was changed meanwhile, fn runs again with fresh records. An error of fn abandons the transaction and is
// returned as it is.
//
// At first, fn gets records as transactions of this process read or wrote them last, without asking the backend. The backend then
// holds them against what it has: not only when it commits, but also before an error of fn is returned.
func (s *Store) Update(ctx context.Context, fn func(tx *Tx) error) (int64, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	for attempt := range maxAttempts {
		tx := s.newTx(attempt == 0)
		rev, err, again := tx.run(ctx, fn)
		if !again {
			return rev, err
		}
		select {
		case <-time.After(time.Duration(max(0, attempt-1)) * time.Millisecond):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return 0, fmt.Errorf("%w %d times: try again later", ErrConflict, maxAttempts)
}

// View has fn read records as of one revision, and returns that. It asks the backend for none that transactions of this process have
// read or written, only whether they still are as they were; if they are not, fn runs once more. An error of fn is returned as it is.
func (s *Store) View(ctx context.Context, fn func(r Reader) error) (int64, error) {
	tx := s.newTx(true)
	err := fn(tx)
	if len(tx.conds) > 0 && !tx.torn {
		if rev, failed := s.backend.Commit(ctx, Batch{If: tx.batch().If}); failed == nil {
			return rev, err
		}
	}
	tx.forget()
	n, err := s.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	return n.Revision, fn(n)
}

func (s *Store) newTx(guess bool) *Tx {
	return &Tx{s: s, guess: guess, read1: map[string]seen{}, conds: map[string]Condition{}, ops: map[string]Op{}}
}

// run runs fn once and commits. It reports whether that is to be done again.
func (tx *Tx) run(ctx context.Context, fn func(tx *Tx) error) (rev int64, err error, again bool) {
	err = fn(tx)
	switch {
	case tx.torn:
		tx.forget()
		return 0, nil, true
	case err == nil && len(tx.ops) > 0:
		if rev, err = tx.s.backend.Commit(ctx, tx.batch()); err != nil {
			tx.forget()
			return rev, err, errors.Is(err, ErrConflict)
		}
		tx.keep(rev)
		return rev, nil, false
	case tx.guess && len(tx.conds) > 0:
		// What came of records that may be out of date does not count before the backend was asked.
		if _, failed := tx.s.backend.Commit(ctx, Batch{If: tx.batch().If}); failed != nil {
			tx.forget()
			return 0, nil, true
		}
	}
	return 0, err, false
}

// keep keeps what was written at a revision.
func (tx *Tx) keep(rev int64) {
	for key, o := range tx.ops {
		was, known := tx.read1[key]
		switch {
		case o.Lease != 0, !known && !o.Delete:
			tx.s.recent.forget(key) // it vanishes with its lease, or its creation is not known
		case o.Delete:
			tx.s.recent.keep(key, seen{})
		case was.found:
			tx.s.recent.keep(key, seen{Item{Key: key, Value: o.Value, Created: was.item.Created, Modified: rev}, true})
		default:
			tx.s.recent.keep(key, seen{Item{Key: key, Value: o.Value, Created: rev, Modified: rev}, true})
		}
	}
}

// forget forgets what records were that were read or written, of which some may be out of date.
func (tx *Tx) forget() {
	for _, c := range tx.conds {
		tx.s.recent.forget(c.Key)
	}
	for key := range tx.ops {
		tx.s.recent.forget(key)
	}
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
	if !prefix {
		x, err := tx.one(ctx, key)
		if err != nil {
			return Items{}, err
		}
		items := Items{Revision: tx.revision}
		if x.found {
			items.Items = []Item{x.item}
		}
		return tx.overlay(items, key, false), nil
	}
	rev, err := tx.readsAt(ctx)
	if err != nil {
		return Items{}, err
	}
	items, err := tx.s.readAt(ctx, key, true, rev)
	if err != nil {
		return Items{}, err
	}
	tx.expect(Condition{Key: key, Prefix: true, Modified: items.Revision})
	for _, i := range items.Items {
		tx.expect(Condition{Key: i.Key, Modified: i.Modified})
	}
	return tx.overlay(items, key, true), nil
}

// readsAt returns the revision as of which the backend is to be read; 0: as of now. What is read after Snapshot is as of that.
func (tx *Tx) readsAt(ctx context.Context) (int64, error) {
	if tx.guess {
		return tx.revision, nil
	}
	err := tx.pin(ctx)
	return tx.revision, err
}

// isOf reports whether a remembered record is as of the transaction's revision, if it is unchanged when it is committed. That one
// is absent is remembered with no revision.
func (tx *Tx) isOf(x seen) bool {
	return tx.revision == 0 || x.found && x.item.Modified <= tx.revision
}

// one reads a single record, once.
func (tx *Tx) one(ctx context.Context, key string) (seen, error) {
	if x, ok := tx.read1[key]; ok {
		return x, nil
	}
	x, known := seen{}, false
	if tx.guess {
		x, known = tx.s.recent.get(key)
		known = known && tx.isOf(x)
	}
	if !known {
		rev, err := tx.readsAt(ctx)
		if err != nil {
			return seen{}, err
		}
		items, err := tx.s.readAt(ctx, key, false, rev)
		if err != nil {
			return seen{}, err
		}
		if x.found = len(items.Items) > 0; x.found {
			x.item = items.Items[0]
		}
		tx.s.recent.keep(key, x)
	}
	tx.read1[key] = x
	tx.expect(Condition{Key: key, Modified: x.item.Modified})
	return x, nil
}

// expect adds a condition. One that contradicts another has the transaction run again.
func (tx *Tx) expect(c Condition) {
	id := c.Key
	if c.Prefix {
		id += "*"
	}
	if was, ok := tx.conds[id]; ok && was.Modified != c.Modified {
		if c.Prefix {
			c.Modified = min(c.Modified, was.Modified)
		} else {
			tx.torn = true
		}
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
