package owed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"portcullis/api/audit"
	"portcullis/api/store"
	"portcullis/fabricsm/sm"
)

// Carry does in the store what Settle brings. Each of them must be safe to repeat: whether
// an attempt that failed landed is not known.
type Carry struct {
	Removal func(context.Context, Removal) (revision int64, err error)
	Facts   func(context.Context, []sm.Fact) error
}

// Settle brings what is owed into the store, removals first. A record that the store took is owed no longer, also when
// Settle returns an error. A note may be stored twice, when the process ends between store and journal.
func (k *Keeper) Settle(ctx context.Context, st *store.Store, c Carry) error {
	k.again()
	if k.State().Since.IsZero() {
		return nil
	}
	settled, err := k.settleRemovals(ctx, c)
	err = errors.Join(err, k.settleFacts(ctx, c), k.settleNotes(ctx, st))
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all()) > 0 {
		if settled && k.journal != nil {
			// An order that the store has is not to be carried out again after a restart.
			err = errors.Join(err, k.rewrite())
		}
		return err
	}
	if k.journal != nil {
		if cleared := k.rewrite(); cleared != nil {
			return errors.Join(err, fmt.Errorf("clear the journal: %w", cleared))
		}
	}
	k.since, k.fragile = time.Time{}, false
	k.log.Warn("the store has what was done while it was away")
	return err
}

// again makes the journal that could not be made when the Keeper was opened, and offers it
// what it did not take.
func (k *Keeper) again() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dir == "" || time.Now().Before(k.retryAt) {
		return
	}
	k.retryAt = time.Now().Add(retry)
	if k.journal == nil {
		j, _, err := openJournal(k.dir)
		if err != nil {
			return
		}
		k.journal = j
		k.log.Info("there is a journal for what the store does not take")
		if len(k.all()) > 0 {
			_ = k.rewrite() // it is logged
		}
		return
	}
	if k.fragile {
		if err := k.rewrite(); errors.Is(err, fs.ErrNotExist) {
			k.journal, k.retryAt = nil, time.Time{} // its files are gone, and made again
		}
	}
}

// settleRemovals reports whether one landed.
func (k *Keeper) settleRemovals(ctx context.Context, c Carry) (settled bool, err error) {
	k.mu.Lock()
	open := maps.Clone(k.removals)
	k.mu.Unlock()
	var errs []error
	for _, host := range slices.Sorted(maps.Keys(open)) {
		r := open[host]
		if r.settled != 0 {
			continue
		}
		revision, err := c.Removal(ctx, r)
		if err != nil {
			errs = append(errs, fmt.Errorf("record the removal of host %s: %w", host, err))
			continue
		}
		k.mu.Lock()
		if k.removals[host] == r { // else it was ordered again
			r.settled = max(revision, 1)
			k.removals[host], settled = r, true
		}
		k.mu.Unlock()
	}
	return settled, errors.Join(errs...)
}

// atOnce bounds the facts and notes of one transaction.
const atOnce = 100

func (k *Keeper) settleFacts(ctx context.Context, c Carry) error {
	k.mu.Lock()
	owed := k.owedFacts()
	k.mu.Unlock()
	for part := range slices.Chunk(owed, atOnce) {
		facts := make([]sm.Fact, len(part))
		for i, f := range part {
			facts[i] = f.fact
		}
		if err := c.Facts(ctx, facts); err != nil {
			return err
		}
		k.mu.Lock()
		for _, f := range part {
			if key := Key(&f.fact); k.facts[key].turn == f.turn {
				delete(k.facts, key)
			}
		}
		k.mu.Unlock()
	}
	return nil
}

func (k *Keeper) settleNotes(ctx context.Context, st *store.Store) error {
	for {
		k.mu.Lock()
		part := slices.Clone(k.notes[:min(len(k.notes), atOnce)])
		k.mu.Unlock()
		if len(part) == 0 {
			return nil
		}
		_, err := st.Update(ctx, func(tx *store.Tx) error {
			for _, e := range part {
				if err := audit.Append(ctx, tx, e); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("write to the audit log what happened meanwhile: %w", err)
		}
		k.mu.Lock()
		k.notes = slices.Delete(k.notes, 0, len(part))
		k.mu.Unlock()
	}
}
