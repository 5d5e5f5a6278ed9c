package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"portcullis/api/audit/chain"
	"portcullis/api/store"
)

// Walk says how Follow reads the log.
type Walk struct {
	Page  int                                     // how many entries are read at once
	Each  func(*Entry)                            // called with each entry that fits; nil: not
	Pause func(context.Context, chain.Head) error // called between two pages; its error ends the walk
}

// Verify walks the whole log as of one revision, some entries at a time, and returns its end. The error names the first entry
// that does not fit, if no operator accepted that; it is a *chain.Break if there is one.
func Verify(ctx context.Context, s *store.Store) (Head, error) {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return Head{}, err
	}
	l, err := follow(ctx, func(context.Context) (store.Snapshot, error) { return snap, nil }, Walk{Page: pageSize})
	if err != nil {
		return Head{}, err
	}
	if open := l.Open(); open != nil {
		return l.Head(), open
	}
	return l.Head(), nil
}

// Follow walks a log that goes on meanwhile: each page is as of when it is read, so that a walk may take longer than the
// store keeps a revision. Entries only join the log, so entries that were read stay true.
func Follow(ctx context.Context, s *store.Store, w Walk) (*chain.Log, error) {
	return follow(ctx, s.Snapshot, w)
}

func follow(ctx context.Context, snapshot func(context.Context) (store.Snapshot, error), w Walk) (*chain.Log, error) {
	l := &chain.Log{}
	for after := ""; ; {
		snap, err := snapshot(ctx)
		if err != nil {
			return nil, err
		}
		page, more, err := readPage(ctx, snap, after, w.Page)
		if err != nil {
			return nil, err
		}
		for i := range page {
			after = page[i].key
			fits, err := l.Add(page[i].place(), page[i].entry)
			if err != nil {
				return nil, err
			}
			if fits && w.Each != nil {
				w.Each(page[i].entry)
			}
		}
		if !more {
			end, err := head(ctx, snap)
			if err != nil {
				return nil, err
			}
			l.End(end)
			return l, nil
		}
		if w.Pause != nil {
			if err := w.Pause(ctx, l.Head()); err != nil {
				return nil, err
			}
		}
	}
}

// kept is a record of the log.
type kept struct {
	key   string
	entry *Entry // nil: it cannot be read
}

// place returns the number that the record is stored at; 0: its key is none.
func (k *kept) place() uint64 {
	n, err := strconv.ParseUint(k.key, 10, 64)
	if err != nil || key(n) != k.key {
		return 0
	}
	return n
}

// readPage returns up to limit records after a key, those that cannot be read included, and reports whether there may be more.
func readPage(ctx context.Context, snap store.Snapshot, after string, limit int) (out []kept, more bool, _ error) {
	page, err := Entries().Page(ctx, snap, after, limit)
	if errors.Is(err, store.ErrUnreadable) {
		return readEach(ctx, snap, after, limit)
	}
	if err != nil {
		return nil, false, err
	}
	for i := range page {
		out = append(out, kept{page[i].Key, &page[i].Value})
	}
	return out, len(page) == limit, nil
}

// readEach is readPage of a page in which a record cannot be read.
func readEach(ctx context.Context, snap store.Snapshot, after string, limit int) (out []kept, more bool, _ error) {
	for range limit {
		page, err := Entries().Page(ctx, snap, after, 1)
		switch {
		case errors.Is(err, store.ErrUnreadable):
			raw, err := snap.Items(ctx, Entries().Name()+after, 1)
			if err != nil {
				return nil, false, err
			}
			name, is := "", false
			if len(raw) == 1 {
				name, is = Entries().KeyOf(raw[0].Key)
			}
			if !is {
				return nil, false, fmt.Errorf("the record of the audit log after %q cannot be found", after)
			}
			out = append(out, kept{key: name})
		case err != nil:
			return nil, false, err
		case len(page) == 0:
			return out, false, nil
		default:
			out = append(out, kept{page[0].Key, &page[0].Value})
		}
		after = out[len(out)-1].key
	}
	return out, true, nil
}
