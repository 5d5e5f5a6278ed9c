package audit

import (
	"context"
	"errors"
	"fmt"

	"portcullis/api/audit/chain"
	"portcullis/api/store"
)

// Walk says how Follow reads the log.
type Walk struct {
	Page  int                                     // how many entries are read at once
	Each  func(*Entry)                            // called with each entry that fits; nil: not
	Pause func(context.Context, chain.Head) error // called between two pages; its error ends the walk
}

// Verify walks the whole chain as of one revision, some entries at a time, and returns its end. The
// error names the first entry that does not fit; it is a *chain.Break if there is one.
func Verify(ctx context.Context, s *store.Store) (Head, error) {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return Head{}, err
	}
	return follow(ctx, func(context.Context) (store.Snapshot, error) { return snap, nil }, Walk{Page: pageSize})
}

// Follow is Verify of a log that goes on while it is read: each page is as of when it is read, so that a walk may take
// longer than the store keeps a revision. Entries only join the log, so what was read stays true.
func Follow(ctx context.Context, s *store.Store, w Walk) (Head, error) {
	return follow(ctx, s.Snapshot, w)
}

func follow(ctx context.Context, snapshot func(context.Context) (store.Snapshot, error), w Walk) (Head, error) {
	var c chain.Chain
	for after := ""; ; {
		snap, err := snapshot(ctx)
		if err != nil {
			return c.Head(), err
		}
		page, err := Entries().Page(ctx, snap, after, w.Page)
		if err != nil {
			return c.Head(), unreadable(err, c.Head().Seq+1)
		}
		for i := range page {
			after = page[i].Key
			if err := add(&c, after, &page[i].Value); err != nil {
				return c.Head(), err
			}
			if w.Each != nil {
				w.Each(&page[i].Value)
			}
		}
		if len(page) < w.Page {
			end, err := head(ctx, snap)
			if err != nil {
				return c.Head(), unreadable(err, c.Head().Seq+1)
			}
			return c.Head(), c.End(end)
		}
		if w.Pause != nil {
			if err := w.Pause(ctx, c.Head()); err != nil {
				return c.Head(), err
			}
		}
	}
}

// add verifies an entry and the key that it is stored at.
func add(c *chain.Chain, at string, e *Entry) error {
	if at != key(e.Seq) {
		cause := chain.Cut
		if at == key(c.Head().Seq+1) {
			cause = chain.Altered
		}
		return &chain.Break{
			Cause: cause, Seq: c.Head().Seq + 1,
			Text: fmt.Sprintf("audit entry %d is missing: found %s after %d", c.Head().Seq+1, at, c.Head().Seq),
		}
	}
	return c.Add(e)
}

// unreadable makes a *chain.Break of the error about a record that is no JSON, or not of the shape that it was written
// with. Such a record is at seq or later.
func unreadable(err error, seq uint64) error {
	if errors.Is(err, store.ErrUnreadable) {
		return &chain.Break{Cause: chain.Altered, Seq: seq, Text: fmt.Sprintf("the audit log was altered at entry %d or later: %v", seq, err)}
	}
	return err
}
