// Package memory is a store.Backend that keeps everything in memory, with every
// revision: for drills, which play the service in virtual time and leave nothing
// behind. It passes the suite that the real one passes.
package memory

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"portcullis/api/store"
)

// Backend implements store.Backend. Use New.
type Backend struct {
	now func() time.Time

	mu        sync.Mutex
	revision  int64
	keys      map[string][]version // by key, oldest first
	log       []store.Change       // of all revisions, in order
	leases    map[store.Lease]lease
	lastLease store.Lease
	changed   chan struct{} // closed with each commit
	closed    bool
}

// version is what a key was from a revision on.
type version struct {
	item     store.Item
	revision int64
	lease    store.Lease
	gone     bool
}

// lease is a lease that has not ended.
type lease struct {
	ttl   time.Duration
	until time.Time
}

// New makes an empty one. now is the clock of leases.
func New(now func() time.Time) *Backend {
	return &Backend{
		now: now, revision: 1, keys: make(map[string][]version), leases: make(map[store.Lease]lease), changed: make(chan struct{}),
	}
}

// Read implements store.Backend.
func (b *Backend) Read(ctx context.Context, key string, prefix bool, rev int64) (store.Items, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.serves(ctx); err != nil {
		return store.Items{}, err
	}
	b.expire()
	if rev == 0 {
		rev = b.revision
	}
	out := store.Items{Items: []store.Item{}, Revision: rev}
	for _, k := range b.named(key, prefix) {
		if v, ok := b.at(k, rev); ok {
			item := v.item
			item.Value = slices.Clone(item.Value)
			out.Items = append(out.Items, item)
		}
	}
	return out, nil
}

// Range implements store.Backend.
func (b *Backend) Range(ctx context.Context, prefix, after string, limit int, rev int64) (store.Items, error) {
	out, err := b.Read(ctx, prefix, true, rev)
	if err != nil {
		return store.Items{}, err
	}
	first, _ := slices.BinarySearchFunc(out.Items, after, func(i store.Item, key string) int { return strings.Compare(i.Key, key) })
	if first < len(out.Items) && out.Items[first].Key == after {
		first++
	}
	out.Items = out.Items[first:]
	out.Items = out.Items[:min(limit, len(out.Items))]
	return out, nil
}

// Get implements store.Backend.
func (b *Backend) Get(ctx context.Context, keys []string, rev int64) (store.Items, error) {
	out := store.Items{Items: []store.Item{}, Revision: rev}
	for _, k := range keys {
		one, err := b.Read(ctx, k, false, out.Revision)
		if err != nil {
			return store.Items{}, err
		}
		out.Items, out.Revision = append(out.Items, one.Items...), one.Revision
	}
	return out, nil
}

// named lists the keys that were ever used, in order.
func (b *Backend) named(key string, prefix bool) []string {
	if !prefix {
		return []string{key}
	}
	var out []string
	for k := range b.keys {
		if strings.HasPrefix(k, key) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// at returns what a key was at a revision, if there was something.
func (b *Backend) at(key string, rev int64) (version, bool) {
	list := b.keys[key]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].revision <= rev {
			return list[i], !list[i].gone
		}
	}
	return version{}, false
}

// Commit implements store.Backend.
func (b *Backend) Commit(ctx context.Context, batch store.Batch) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.serves(ctx); err != nil {
		return 0, err
	}
	b.expire()
	for _, c := range batch.If {
		if !b.holds(c) {
			return 0, store.ErrConflict
		}
	}
	for _, o := range batch.Do {
		if _, ok := b.leases[o.Lease]; o.Lease != 0 && !ok {
			return 0, store.ErrLeaseEnded
		}
	}
	if len(batch.Do) > 0 {
		b.write(batch.Do)
	}
	return b.revision, nil
}

func (b *Backend) holds(c store.Condition) bool {
	for _, k := range b.named(c.Key, c.Prefix) {
		v, ok := b.at(k, b.revision)
		switch {
		case c.Prefix && ok && v.item.Modified > c.Modified:
			return false
		case !c.Prefix && (!ok && c.Modified != 0 || ok && v.item.Modified != c.Modified):
			return false
		}
	}
	return true
}

// write applies operations at one new revision.
func (b *Backend) write(ops []store.Op) {
	b.revision++
	for _, o := range ops {
		was, there := b.at(o.Key, b.revision)
		v := version{revision: b.revision, lease: o.Lease, gone: o.Delete}
		change := store.Change{Key: o.Key, Revision: b.revision}
		switch {
		case o.Delete && !there:
			continue
		case !o.Delete:
			v.item = store.Item{Key: o.Key, Value: slices.Clone(o.Value), Created: b.revision, Modified: b.revision}
			if there {
				v.item.Created = was.item.Created
			}
			change.Value, change.Created = v.item.Value, v.item.Created
		}
		b.keys[o.Key] = append(b.keys[o.Key], v)
		b.log = append(b.log, change)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// expire deletes what is bound to leases that have ended.
func (b *Backend) expire() {
	now := b.now()
	ended := maps.Clone(b.leases)
	maps.DeleteFunc(ended, func(_ store.Lease, l lease) bool { return now.Before(l.until) })
	b.end(ended)
}

// end deletes leases, and what is bound to them.
func (b *Backend) end(ended map[store.Lease]lease) {
	if len(ended) == 0 {
		return
	}
	var ops []store.Op
	for _, k := range b.named("", true) {
		if v, ok := b.at(k, b.revision); ok && ended[v.lease] != (lease{}) {
			ops = append(ops, store.Op{Key: k, Delete: true})
		}
	}
	for l := range ended {
		delete(b.leases, l)
	}
	if len(ops) > 0 {
		b.write(ops)
	}
}

// Watch implements store.Backend.
func (b *Backend) Watch(ctx context.Context, prefix string, from int64) <-chan store.Changes {
	out := make(chan store.Changes)
	go func() {
		defer close(out)
		for {
			b.mu.Lock()
			b.expire()
			news, changed, closed, ends := b.after(prefix, from), b.changed, b.closed, b.nextEnd()
			b.mu.Unlock()
			if closed {
				news.Err = store.ErrClosed
			}
			if len(news.Changes) > 0 || news.Err != nil {
				select {
				case out <- news:
				case <-ctx.Done():
					return
				}
			}
			if news.Err != nil {
				return
			}
			from = max(from, news.Revision)
			select {
			case <-changed:
			case <-ends:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// nextEnd fires when the next lease ends; nil: there is none.
func (b *Backend) nextEnd() <-chan time.Time {
	var next time.Time
	for _, l := range b.leases {
		if next.IsZero() || l.until.Before(next) {
			next = l.until
		}
	}
	if next.IsZero() {
		return nil
	}
	return time.After(max(next.Sub(b.now()), time.Millisecond))
}

// after returns the changes of keys after a revision, up to now.
func (b *Backend) after(prefix string, from int64) store.Changes {
	out := store.Changes{Revision: b.revision}
	for _, c := range b.log {
		if c.Revision > from && strings.HasPrefix(c.Key, prefix) {
			out.Changes = append(out.Changes, c)
		}
	}
	return out
}

// NewLease implements store.Backend.
func (b *Backend) NewLease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.serves(ctx); err != nil {
		return 0, err
	}
	b.lastLease++
	b.leases[b.lastLease] = lease{ttl: ttl, until: b.now().Add(ttl)}
	return b.lastLease, nil
}

// KeepAlive implements store.Backend.
func (b *Backend) KeepAlive(ctx context.Context, id store.Lease) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.serves(ctx); err != nil {
		return err
	}
	b.expire()
	l, ok := b.leases[id]
	if !ok {
		return store.ErrLeaseEnded
	}
	l.until = b.now().Add(l.ttl)
	b.leases[id] = l
	return nil
}

// Revoke implements store.Backend.
func (b *Backend) Revoke(ctx context.Context, id store.Lease) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.serves(ctx); err != nil {
		return err
	}
	b.expire()
	if l, ok := b.leases[id]; ok {
		b.end(map[store.Lease]lease{id: l})
	}
	return nil
}

func (b *Backend) serves(ctx context.Context) error {
	if b.closed {
		return store.ErrClosed
	}
	return ctx.Err()
}

// Failed implements store.Backend: memory does not fail.
func (b *Backend) Failed() <-chan struct{} { return nil }

// Err implements store.Backend.
func (b *Backend) Err() error { return nil }

// Close implements store.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.changed)
		b.changed = make(chan struct{})
	}
	return nil
}

// Dump returns all that is, or ever was, kept: what a thief of the store finds.
func (b *Backend) Dump() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []byte
	for _, c := range b.log {
		out = append(append(append(out, c.Key...), '\t'), c.Value...)
		out = append(out, '\n')
	}
	return out
}
