package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/api/audit"
	"portcullis/api/store"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/approval"
	"portcullis/fabricsm/topospec/history"
)

// book is all revisions as of one moment, and what is wanted in force.
type book struct {
	history *history.History
	more    map[uint64]*Entry // what this package keeps of each
	version map[uint64]int64  // store revision of each
	head    Head
	headed  int64 // store revision of the head, 0: there is none
}

// load reads the book. r returns all of it as of one moment.
func (s *Service) load(ctx context.Context, r store.Reader) (*book, error) {
	b := &book{more: map[uint64]*Entry{}, version: map[uint64]int64{}}
	recs, _, err := Entries().List(ctx, r, "")
	if err != nil {
		return nil, err
	}
	entries := make([]history.Entry, 0, len(recs))
	for i := range recs {
		e := &recs[i].Value
		entries = append(entries, e.Entry)
		b.more[e.Number], b.version[e.Number] = e, recs[i].Modified
	}
	if b.history, err = history.Restore(approval.Rule{Alone: s.rules().Alone}, entries); err != nil {
		return nil, fmt.Errorf("the revisions in the store: %w", err)
	}
	rec, err := Heads().Get(ctx, r, headKey)
	if errors.Is(err, store.ErrNotFound) {
		rec, err = store.Record[Head]{}, nil
	}
	if err != nil {
		return nil, err
	}
	b.head, b.headed = rec.Value, rec.Modified
	return b, b.check()
}

// book reads the book as of one revision of the store.
func (s *Service) book(ctx context.Context) (*book, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, explain(err)
	}
	b, err := s.load(ctx, snap)
	if err != nil {
		return nil, unreadable(err)
	}
	return b, nil
}

// check refuses a head that disagrees with the entries: another program has written to the store.
func (b *book) check() error {
	active := b.history.Active()
	switch {
	case active == nil && b.head.Revision == 0:
		return nil
	case active == nil:
		return fmt.Errorf("the store says that revision %d is in force, and none of its revisions is", b.head.Revision)
	case active.Number != b.head.Revision || active.Digest != b.head.Digest || active.Mode != b.head.Mode:
		return fmt.Errorf("the store says that revision %d (%s, %v) is in force, and its revisions that it is %d (%s, %v)",
			b.head.Revision, b.head.Digest.Short(), b.head.Mode, active.Number, active.Digest.Short(), active.Mode)
	}
	return nil
}

// entry returns the stored entry of a revision, as the history has it now.
func (b *book) entry(number uint64) (*Entry, error) {
	h, err := b.history.Find(number)
	if err != nil {
		return nil, err
	}
	e := Entry{}
	if kept := b.more[number]; kept != nil {
		e = *kept
	}
	e.Entry = *h
	return &e, nil
}

// step is one entry of the audit log.
type step struct {
	actor, action string
	number        uint64
	code, detail  string
}

// save writes what a step changed of the book, and its entry in the audit log.
func (s *Service) save(ctx context.Context, tx *store.Tx, was, now *book, at time.Time, why step) error {
	for _, e := range now.history.Entries() {
		kept, err := now.entry(e.Number)
		if err != nil {
			return err
		}
		if old := was.more[e.Number]; old != nil && same(old, kept) {
			continue
		}
		if err := Entries().Put(tx, key(e.Number), *kept); err != nil {
			return err
		}
	}
	for number := range was.more {
		if _, err := now.history.Find(number); err != nil {
			Entries().Delete(tx, key(number))
			Contents().Delete(tx, key(number))
		}
	}
	if now.head != was.head {
		if err := Heads().Put(tx, headKey, now.head); err != nil {
			return err
		}
	}
	return s.audit(ctx, tx, was, now, at, why)
}

func (s *Service) audit(ctx context.Context, tx *store.Tx, was, now *book, at time.Time, why step) error {
	digest := func(b *book) (string, error) {
		e, err := b.entry(why.number)
		if err != nil {
			return "", nil //nolint:nilerr // there was, or is, none
		}
		return audit.Digest(e)
	}
	before, err := digest(was)
	if err != nil {
		return err
	}
	after, err := digest(now)
	if err != nil {
		return err
	}
	return audit.Append(ctx, tx, audit.Entry{
		Time: at, Actor: why.actor, Action: "topospec." + why.action, Object: fmt.Sprintf("topospec/%d", why.number),
		Code: why.code, Detail: why.detail, Before: before, After: after,
	})
}

// same reports whether two entries are written alike.
func same(a, b *Entry) bool {
	x, errX := audit.Digest(a)
	y, errY := audit.Digest(b)
	return errX == nil && errY == nil && x == y
}

// clone returns a book whose history can be changed.
func (b *book) clone(rules approval.Rule) (*book, error) {
	c := *b
	c.more = make(map[uint64]*Entry, len(b.more))
	for n, e := range b.more {
		kept := *e
		c.more[n] = &kept
	}
	var err error
	c.history, err = history.Restore(rules, b.history.Entries())
	return &c, err
}

// prune forgets the oldest revisions, so that the book stays bounded in number and
// size.
func (b *book) prune() (dropped int) {
	for _, e := range b.history.Prune(keep) {
		delete(b.more, e.Number)
		dropped++
	}
	for left := len(b.history.Entries()); b.stored() > maxKept; left-- {
		gone := b.history.Prune(left - 1)
		if len(gone) == 0 {
			return dropped
		}
		for _, e := range gone {
			delete(b.more, e.Number)
			dropped++
		}
	}
	return dropped
}

// stored returns the bytes of all contents as they are stored.
func (b *book) stored() (n int) {
	for _, e := range b.more {
		n += e.Stored
	}
	return n
}

// content reads the content of a revision, and keeps it: the revisions that are requested are mostly the newest.
func (s *Service) content(ctx context.Context, r store.Reader, e *history.Entry) (*topospec.Spec, error) {
	if spec := s.cache.get(e); spec != nil {
		return spec, nil
	}
	rec, err := Contents().Get(ctx, r, key(e.Number))
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("revision %d: its content is not in the store", e.Number)
	}
	if err != nil {
		return nil, err
	}
	spec, err := unpack(&rec.Value, e)
	if err != nil {
		return nil, err
	}
	s.cache.put(spec)
	return spec, nil
}

// activeContent reads what the revision in force says, nil without one.
func (s *Service) activeContent(ctx context.Context, r store.Reader, b *book) (*topospec.Spec, error) {
	e := b.history.Active()
	if e == nil {
		return nil, nil
	}
	return s.content(ctx, r, e)
}

// numbers returns the revisions of a book, the newest first.
func (b *book) numbers() []uint64 {
	entries := b.history.Entries()
	out := make([]uint64, 0, len(entries))
	for i := range entries {
		out = append(out, entries[i].Number)
	}
	slices.Reverse(out)
	return out
}
