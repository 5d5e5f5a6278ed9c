package fabric

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"portcullis/api/store"
	"portcullis/api/store/mirror"
)

// sheet mirrors one collection that this package writes: what shall be there,
// and which keys of it the store does not have yet.
type sheet[T any] struct {
	records store.Collection[T]
	now     map[string]T
	dirty   map[string]bool
	order   []string // keys that were dirty, sorted: those that are written next
}

func newSheet[T any](c store.Collection[T]) *sheet[T] {
	return &sheet[T]{records: c, now: map[string]T{}, dirty: map[string]bool{}}
}

// source is where records are read: as of one revision, from copies where there are any.
type source struct {
	store.Snapshot
	copies *mirror.Copies // nil: none
}

// list returns all records of a collection, in key order.
func list[T any](ctx context.Context, from source, of store.Collection[T]) ([]store.Record[T], error) {
	if recs, ok := mirror.List(from.copies, of); ok {
		return recs, nil
	}
	recs, _, err := of.List(ctx, from.Snapshot, "")
	return recs, err
}

// load takes what the store holds. A record that is not written yet stays as it is: it is newer.
func (s *sheet[T]) load(ctx context.Context, from source) error {
	recs, err := list(ctx, from, s.records)
	if err != nil {
		return err
	}
	stored := make(map[string]T, len(recs))
	for _, rec := range recs {
		stored[rec.Key] = rec.Value
	}
	for k := range s.dirty {
		if v, ok := s.now[k]; ok {
			stored[k] = v
		} else {
			delete(stored, k)
		}
	}
	s.now = stored
	return nil
}

func (s *sheet[T]) get(key string) (T, bool) {
	v, ok := s.now[key]
	return v, ok
}

// set changes a record, and reports whether it was different.
func (s *sheet[T]) set(key string, v T) bool {
	if old, ok := s.now[key]; ok && reflect.DeepEqual(old, v) {
		return false
	}
	s.now[key], s.dirty[key] = v, true
	return true
}

func (s *sheet[T]) drop(key string) {
	if _, ok := s.now[key]; ok {
		delete(s.now, key)
		s.dirty[key] = true
	}
}

func (s *sheet[T]) keys() []string { return slices.Sorted(maps.Keys(s.now)) }

// pending returns up to n writes, in key order. Keys that became dirty meanwhile come after those before them are written.
func (s *sheet[T]) pending(n int) (out []write) {
	for len(s.order) > 0 && !s.dirty[s.order[0]] {
		s.order = s.order[1:]
	}
	if len(s.order) == 0 {
		s.order = slices.Sorted(maps.Keys(s.dirty))
	}
	for _, key := range s.order {
		if len(out) == n {
			break
		}
		if s.dirty[key] {
			out = append(out, s.write(key))
		}
	}
	return out
}

func (s *sheet[T]) write(key string) write {
	v, there := s.now[key]
	return write{
		put: func(_ context.Context, tx *store.Tx) error {
			if !there {
				s.records.Delete(tx, key)
				return nil
			}
			return s.records.Put(tx, key, v)
		},
		done: func() { delete(s.dirty, key) },
	}
}

// write is one record on its way into the store.
type write struct {
	put  func(context.Context, *store.Tx) error
	done func() // it landed
}
