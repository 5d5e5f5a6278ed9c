// Package written says whether records were written between two revisions of a store, so that what was made of them need not be made again.
//
// It follows the changes of all writers, also of other instances. What it does not know counts as written.
package written

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"portcullis/api/store"
)

const (
	// mostWait is how long an answer waits for changes that the store has and that did not come yet.
	mostWait = 100 * time.Millisecond
	// pause is the rest after the store did not answer, or ended a watch.
	pause = time.Second
	// mostKeys is how many keys are kept of the records below one prefix that were written last.
	mostKeys = 4096
)

// Log knows when records below some prefixes were written last. Its methods may be called from any goroutine.
type Log struct {
	store    *store.Store
	prefixes []string

	mu    sync.Mutex
	from  int64             // changes after this revision are known
	seen  int64             // up to this one; 0: none are known
	last  map[string]*wrote // by prefix
	moved chan struct{}     // closed when one of these changes
}

// wrote is what was written below a prefix.
type wrote struct {
	last int64            // revision
	from int64            // keys are known of what was written after this revision
	keys map[string]int64 // with the revision at which they were written last
}

// add adds a key. Where there are too many, none that was written before counts as known.
func (w *wrote) add(key string, revision int64) {
	if len(w.keys) == mostKeys {
		w.keys, w.from = map[string]int64{}, w.last
	}
	w.keys[key], w.last = revision, max(w.last, revision)
}

// New returns a Log of records whose keys begin with the prefixes. It knows nothing before Run.
func New(s *store.Store, prefixes ...string) *Log {
	return &Log{store: s, prefixes: prefixes, moved: make(chan struct{})}
}

// Run follows the store until ctx ends. Nothing is known from then on.
func (l *Log) Run(ctx context.Context) {
	for ctx.Err() == nil {
		l.follow(ctx)
		l.set(func() { l.seen = 0 })
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// follow follows the store until it does not answer, or ends the watch.
func (l *Log) follow(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	snap, err := l.store.Snapshot(ctx)
	if err != nil {
		return
	}
	l.set(func() { l.from, l.seen, l.last = snap.Revision, snap.Revision, map[string]*wrote{} })
	for c := range l.store.Watch(ctx, "", snap.Revision) {
		if c.Err != nil {
			return
		}
		l.set(func() { l.take(&c) })
	}
}

// take takes changes. The caller holds the lock.
func (l *Log) take(c *store.Changes) {
	for i := range c.Changes {
		for _, prefix := range l.prefixes {
			if strings.HasPrefix(c.Changes[i].Key, prefix) {
				if l.last[prefix] == nil {
					l.last[prefix] = &wrote{keys: map[string]int64{}}
				}
				l.last[prefix].add(c.Changes[i].Key, c.Changes[i].Revision)
			}
		}
	}
	l.seen = max(l.seen, c.Revision)
}

func (l *Log) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	close(l.moved)
	l.moved = make(chan struct{})
}

// Unwritten reports whether it is known that no record below the given prefixes was written, or removed, after one revision and up to another
// one, which is to be one that the store has.
func (l *Log) Unwritten(ctx context.Context, after, upTo int64, prefixes ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.knows(ctx, after, upTo) {
		return false
	}
	for _, prefix := range prefixes {
		if !slices.Contains(l.prefixes, prefix) || l.last[prefix] != nil && l.last[prefix].last > after {
			return false
		}
	}
	return true
}

// Keys returns the keys of the records below a prefix that were written, or removed, after one revision and up to another one, which is to be
// one that the store has, sorted. Some may have been written later. It reports false if that is not known, or if they are too many.
func (l *Log) Keys(ctx context.Context, after, upTo int64, prefix string) (keys []string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.knows(ctx, after, upTo) || !slices.Contains(l.prefixes, prefix) {
		return nil, false
	}
	w := l.last[prefix]
	switch {
	case w == nil:
		return nil, true
	case w.from > after:
		return nil, false
	}
	for key, revision := range w.keys {
		if revision > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, true
}

// knows waits until the changes up to a revision came, for a moment, and reports whether all since another one are known. The caller holds the
// lock.
func (l *Log) knows(ctx context.Context, after, upTo int64) bool {
	ctx, cancel := context.WithTimeout(ctx, mostWait)
	defer cancel()
	for l.seen != 0 && l.seen < upTo && ctx.Err() == nil {
		moved := l.moved
		l.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
		l.mu.Lock()
	}
	return upTo >= after && l.seen >= upTo && l.seen != 0 && l.from <= after // a store that was restored goes back
}
