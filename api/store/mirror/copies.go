package mirror

import (
	"context"
	"maps"
	"slices"

	"portcullis/api/store"
)

// Collection is one that a Mirror follows.
type Collection struct {
	name string
	read func(ctx context.Context, snap store.Snapshot) (held, error)
}

// Of returns a collection to follow.
func Of[T any](c store.Collection[T]) Collection {
	return Collection{name: c.Name(), read: func(ctx context.Context, snap store.Snapshot) (held, error) {
		list, _, err := c.List(ctx, snap, "")
		if err != nil {
			return nil, err
		}
		h := &records[T]{of: c, now: make(map[string]store.Record[T], len(list))}
		for _, r := range list {
			h.now[r.Key] = r
		}
		return h, nil
	}}
}

// held is what one collection holds.
type held interface {
	// change applies a change, which may be of another collection.
	change(ch store.Change) error
}

type records[T any] struct {
	of  store.Collection[T]
	now map[string]store.Record[T]
}

func (h *records[T]) change(ch store.Change) error {
	key, ok := h.of.KeyOf(ch.Key)
	switch {
	case !ok:
		return nil
	case ch.Value == nil:
		delete(h.now, key)
		return nil
	}
	r, err := h.of.Decode(ch)
	if err == nil {
		h.now[key] = r
	}
	return err
}

// Copies are what collections held at one revision.
type Copies struct {
	revision int64
	of       map[string]held // by the name of the collection
}

// Revision returns the revision of the store as of which the copies are.
func (c *Copies) Revision() int64 { return c.revision }

// List returns all records of a collection, in key order, as Collection.List does. ok is false where c is nil, and where it has no
// copy of that collection.
func List[T any](c *Copies, of store.Collection[T]) (_ []store.Record[T], ok bool) {
	if c == nil {
		return nil, false
	}
	h, ok := c.of[of.Name()].(*records[T])
	if !ok {
		return nil, false
	}
	out := make([]store.Record[T], 0, len(h.now))
	for _, key := range slices.Sorted(maps.Keys(h.now)) {
		out = append(out, h.now[key])
	}
	return out, true
}
