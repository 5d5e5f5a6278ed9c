package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"portcullis/api/fabric"
	"portcullis/api/store"
	"portcullis/fabricsm/sm"
)

// followedFacts are the facts in the store as of a revision that follows the store, without
// loading them again. It ends when a fact of the core changes: then a standby reads again.
type followedFacts struct {
	end  context.CancelFunc
	news chan struct{} // has a token after a change of what is below

	mu       sync.Mutex
	by       map[string]sm.Fact
	revision int64 // up to which they are known
	ended    bool
}

// followFacts follows facts that were loaded at a revision, until ctx ends. It calls ended when a fact of the core has
// changed, or when changes are no longer reported.
func followFacts(ctx context.Context, st *store.Store, loaded []store.Record[sm.Fact], revision int64, ended func()) *followedFacts {
	f := &followedFacts{by: make(map[string]sm.Fact, len(loaded)), revision: revision, news: make(chan struct{}, 1)}
	for _, r := range loaded {
		f.by[r.Key] = r.Value
	}
	ctx, f.end = context.WithCancel(ctx)
	go func() {
		// All of the store is watched, since its other changes say up to when facts are known.
		for c := range st.Watch(ctx, "", revision) {
			if !f.take(c) {
				break
			}
		}
		f.mu.Lock()
		f.ended = true
		f.mu.Unlock()
		f.end()
		ended()
	}()
	return f
}

// take takes changes, and reports whether the facts of the core are those from before.
func (f *followedFacts) take(c store.Changes) bool {
	if c.Err != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ch := range c.Changes {
		key, is := fabric.Facts().KeyOf(ch.Key)
		if !is {
			continue
		}
		if ch.Value == nil {
			if was := f.by[key]; !was.Kind.OfSA() {
				return false
			}
			delete(f.by, key)
			continue
		}
		r, err := fabric.Facts().Decode(ch)
		if err != nil || !r.Value.Kind.OfSA() {
			return false
		}
		f.by[key] = r.Value
	}
	f.revision = c.Revision
	select {
	case f.news <- struct{}{}:
	default:
	}
	return true
}

// factsPatience is how long facts are waited for that were not loaded again.
const factsPatience = 200 * time.Millisecond

// at returns the facts as of a revision or later, in the order of their keys, and whether they
// are known.
func (f *followedFacts) at(ctx context.Context, revision int64) ([]sm.Fact, bool) {
	ctx, cancel := context.WithTimeout(ctx, factsPatience)
	defer cancel()
	for {
		f.mu.Lock()
		if !f.ended && f.revision >= revision {
			defer f.mu.Unlock()
			out := make([]sm.Fact, 0, len(f.by))
			for _, key := range slices.Sorted(maps.Keys(f.by)) {
				out = append(out, f.by[key])
			}
			return out, true
		}
		ended := f.ended
		f.mu.Unlock()
		if ended {
			return nil, false
		}
		select {
		case <-f.news:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// know has a term begin with the facts that the standby knows as of its beginning: nothing
// but this term may write facts from then on.
func (b *standby) know(ctx context.Context, revision int64, link *fabric.Link, to *loadedOnce) {
	b.mu.Lock()
	r := b.ready
	b.mu.Unlock()
	if r == nil {
		return
	}
	if facts, known := r.followed.at(ctx, revision); known {
		to.facts, to.known = link.Loaded(facts), true
	}
}
