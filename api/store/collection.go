package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Upgrade turns data written at an older version into the next version's.
type Upgrade func(data json.RawMessage) (json.RawMessage, error)

// Collection is the records of one type, kept as JSON under a common name. It
// holds no state and may be a package variable. Keys are not empty.
type Collection[T any] struct {
	name     string
	version  int
	upgrades []Upgrade
}

// NewCollection names a collection and the version of T. upgrades[i] lifts
// version i+1 to i+2; there must be one less than version, since every release
// reads what all earlier ones wrote.
func NewCollection[T any](name string, version int, upgrades ...Upgrade) Collection[T] {
	if version != len(upgrades)+1 {
		panic(fmt.Sprintf("store: collection %s is at version %d with %d upgrades", name, version, len(upgrades)))
	}
	return Collection[T]{name: name + "/", version: version, upgrades: upgrades}
}

// Record is one record with its revisions.
type Record[T any] struct {
	Key      string
	Value    T
	Created  int64
	Modified int64
}

// Name returns the prefix of the collection's keys, for Watch.
func (c Collection[T]) Name() string { return c.name }

// KeyOf returns the record's key of a store key, false if the store key belongs to another collection.
func (c Collection[T]) KeyOf(storeKey string) (string, bool) {
	return strings.CutPrefix(storeKey, c.name)
}

// Get returns the record at key, or an error that is ErrNotFound.
func (c Collection[T]) Get(ctx context.Context, r Reader, key string) (Record[T], error) {
	items, err := r.read(ctx, c.name+key, false)
	if err != nil {
		return Record[T]{}, fmt.Errorf("read %s%s: %w", c.name, key, err)
	}
	if len(items.Items) == 0 {
		return Record[T]{}, fmt.Errorf("%s%s: %w", c.name, key, ErrNotFound)
	}
	return c.decode(items.Items[0])
}

// List returns every record whose key begins with prefix, in key order, and the revision as of which they were read.
func (c Collection[T]) List(ctx context.Context, r Reader, prefix string) ([]Record[T], int64, error) {
	items, err := r.read(ctx, c.name+prefix, true)
	if err != nil {
		return nil, 0, fmt.Errorf("list %s%s: %w", c.name, prefix, err)
	}
	out, err := c.decodeAll(items.Items)
	return out, items.Revision, err
}

// Page returns up to limit records in key order, beginning after the key after, or at the first if that
// is empty. Fewer than limit are the last.
func (c Collection[T]) Page(ctx context.Context, n Snapshot, after string, limit int) ([]Record[T], error) {
	return c.PageBelow(ctx, n, "", after, limit)
}

// PageBelow is Page of the records whose keys begin with prefix.
func (c Collection[T]) PageBelow(ctx context.Context, n Snapshot, prefix, after string, limit int) ([]Record[T], error) {
	switch {
	case after == "" || strings.HasPrefix(after, prefix):
	case after < prefix:
		after = ""
	default:
		return nil, nil // it comes after all of them
	}
	if after != "" {
		after = c.name + after
	}
	items, err := n.page(ctx, c.name+prefix, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list %s%s: %w", c.name, prefix, err)
	}
	return c.decodeAll(items)
}

// Of returns the records at keys that exist, in the order of keys.
func (c Collection[T]) Of(ctx context.Context, n Snapshot, keys []string) ([]Record[T], error) {
	if len(keys) == 0 {
		return nil, nil
	}
	named := make([]string, len(keys))
	for i, k := range keys {
		named[i] = c.name + k
	}
	items, err := n.get(ctx, named)
	if err != nil {
		return nil, fmt.Errorf("read %d records of %s: %w", len(keys), c.name, err)
	}
	return c.decodeAll(items)
}

func (c Collection[T]) decodeAll(items []Item) ([]Record[T], error) {
	out := make([]Record[T], 0, len(items))
	for _, i := range items {
		rec, err := c.decode(i)
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

// Put writes the record when tx commits. Unless the key was read through tx
// before, it overwrites whatever is there.
func (c Collection[T]) Put(tx *Tx, key string, v T) error { return c.PutLeased(tx, key, v, 0) }

// PutLeased is Put of a record that vanishes with the lease.
func (c Collection[T]) PutLeased(tx *Tx, key string, v T, l Lease) error {
	if key == "" {
		return fmt.Errorf("put %s: empty key", c.name)
	}
	data, err := json.Marshal(v)
	if err == nil {
		data, err = json.Marshal(envelope{Version: c.version, Data: data})
	}
	if err != nil {
		return fmt.Errorf("encode %s%s: %w", c.name, key, err)
	}
	tx.write(Op{Key: c.name + key, Value: data, Lease: l})
	return nil
}

// Delete removes the record when tx commits; it need not exist.
func (c Collection[T]) Delete(tx *Tx, key string) { tx.write(Op{Key: c.name + key, Delete: true}) }

// Expect makes it a condition of tx that the record at key was last changed at revision
// modified, without reading it. Where it was not, Update tries again and ends with
// ErrConflict.
func (c Collection[T]) Expect(tx *Tx, key string, modified int64) {
	tx.expect(Condition{Key: c.name + key, Modified: modified})
}

// Decode reads the record out of a change that Store.Watch sent and that is no
// deletion.
func (c Collection[T]) Decode(ch Change) (Record[T], error) {
	return c.decode(Item{Key: ch.Key, Value: ch.Value, Created: ch.Created, Modified: ch.Revision})
}

// Event is one change of a record. Deleted records have the zero Value.
type Event[T any] struct {
	Record[T]
	Deleted bool
	Err     error // the watch ended; only in the last event
}

// Watch sends each change of the collection after revision from until ctx ends. Begin with the revision that List returned;
// resume with Record.Modified of the last event seen. ErrCompacted asks to List again.
func (c Collection[T]) Watch(ctx context.Context, s *Store, from int64) <-chan Event[T] {
	in, out := s.Watch(ctx, c.name, from), make(chan Event[T])
	go func() {
		defer close(out)
		for batch := range in {
			for _, ev := range c.events(batch) {
				select {
				case out <- ev:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

// Follow calls all with every record, in key order, and then each with every change since. It returns why it ended: the error of the store,
// or of ctx.
func (c Collection[T]) Follow(ctx context.Context, s *Store, all func([]Record[T]), each func(*Event[T])) error {
	list, revision, err := c.List(ctx, s, "")
	if err != nil {
		return err
	}
	all(list)
	for ev := range c.Watch(ctx, s, revision) {
		if ev.Err != nil {
			return ev.Err
		}
		each(&ev)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return fmt.Errorf("follow %s: the watch ended", c.name)
}

func (c Collection[T]) events(b Changes) []Event[T] {
	var out []Event[T]
	for _, ch := range b.Changes {
		key, _ := c.KeyOf(ch.Key)
		ev := Event[T]{Record: Record[T]{Key: key, Created: ch.Created, Modified: ch.Revision}, Deleted: ch.Value == nil}
		if !ev.Deleted {
			ev.Record, ev.Err = c.decode(Item{Key: ch.Key, Value: ch.Value, Created: ch.Created, Modified: ch.Revision})
		}
		out = append(out, ev)
	}
	if b.Err != nil {
		out = append(out, Event[T]{Err: b.Err})
	}
	return out
}

// envelope is what is stored: which version of the type wrote the data.
type envelope struct {
	Version int             `json:"v"`
	Data    json.RawMessage `json:"d"`
}

func (c Collection[T]) decode(i Item) (Record[T], error) {
	key, _ := c.KeyOf(i.Key)
	rec := Record[T]{Key: key, Created: i.Created, Modified: i.Modified}
	var e envelope
	if err := json.Unmarshal(i.Value, &e); err != nil {
		return rec, fmt.Errorf("decode %s: %w: %w", i.Key, ErrUnreadable, err)
	}
	if e.Version < 1 || e.Version > c.version {
		return rec, fmt.Errorf("decode %s: record has version %d, this service knows 1 to %d: run the newer service", i.Key, e.Version, c.version)
	}
	for v := e.Version; v < c.version; v++ {
		var err error
		if e.Data, err = c.upgrades[v-1](e.Data); err != nil {
			return rec, fmt.Errorf("upgrade %s from version %d: %w", i.Key, v, err)
		}
	}
	if err := json.Unmarshal(e.Data, &rec.Value); err != nil {
		return rec, fmt.Errorf("decode %s: %w: %w", i.Key, ErrUnreadable, err)
	}
	return rec, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
