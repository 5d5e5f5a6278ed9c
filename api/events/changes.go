package events

import (
	"context"
	"slices"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Change is an event that happened, once more or for the first time.
type Change struct {
	Position Position
	Event    v1.Event // with the position as its ID
	Reported bool     // it is in the audit log and the journal: it is not one of many that only count
	// Merged: times that it happened before may not have been a change of their own. Count has them.
	Merged bool
}

// Matches reports whether an event is one that the query asks for. It leaves Since out.
func Matches(q *v1.EventQuery, e *v1.Event) bool {
	return (q.Type == "" || e.Type == q.Type) && (q.Host == "" || e.Host == q.Host) && (q.Severity == "" || rank(e.Severity) >= rank(q.Severity))
}

func (s Series) change(rec *store.Record[row]) Change {
	c := Change{Position: s.at(rec.Modified, rec.Key), Event: rec.Value.Event, Reported: rec.Value.Told == rec.Value.Count}
	c.Event.ID = c.Position.String()
	return c
}

func sorted(list []Change) []Change {
	slices.SortFunc(list, func(a, b Change) int { return a.Position.Compare(b.Position) })
	return list
}

// Now returns the position behind all that happened.
func (s Series) Now(ctx context.Context, st *store.Store) (Position, error) {
	snap, err := st.Snapshot(ctx)
	return Position{s.ID, snap.Revision, lastRow}, err
}

// Since returns each event that happened after from, as it is now, and the position of now. All times that one happened are one
// change here.
func (s Series) Since(ctx context.Context, st *store.Store, from Position) ([]Change, Position, error) {
	list, revision, err := rows().List(ctx, st, "")
	if err != nil {
		return nil, Position{}, err
	}
	var out []Change
	for i := range list {
		c := s.change(&list[i])
		if c.Position.Compare(from) <= 0 {
			continue
		}
		c.Merged = list[i].Value.Count > 1
		out = append(out, c)
	}
	return sorted(out), Position{s.ID, revision, lastRow}, nil
}

// Batch is what happened at one or more revisions, in order.
type Batch struct {
	Changes []Change
	Err     error // nothing follows; store.ErrCompacted: the store has no single changes that are as old as from
}

// Watch sends each change after from until ctx ends.
func (s Series) Watch(ctx context.Context, st *store.Store, from Position) <-chan Batch {
	out := make(chan Batch)
	in := st.Watch(ctx, rows().Name(), from.Revision-1)
	go func() {
		defer close(out)
		for c := range in {
			b := s.batch(&c, from)
			if len(b.Changes) == 0 && b.Err == nil {
				continue
			}
			select {
			case out <- b:
			case <-ctx.Done():
				return
			}
			if b.Err != nil {
				return
			}
		}
	}()
	return out
}

func (s Series) batch(c *store.Changes, from Position) Batch {
	b := Batch{Err: c.Err}
	for _, ch := range c.Changes {
		if ch.Value == nil {
			continue
		}
		rec, err := rows().Decode(ch)
		if err != nil {
			b.Err = err
			break
		}
		if made := s.change(&rec); made.Position.Compare(from) > 0 {
			b.Changes = append(b.Changes, made)
		}
	}
	sorted(b.Changes)
	return b
}
