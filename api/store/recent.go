package store

import "sync"

// recentBytes bounds what a Store keeps of records that transactions read and wrote: twice as many bytes of keys and values.
const recentBytes = 32 << 20

// recent is what single records were when a transaction of this process read or wrote them last. It may be out of date: a transaction
// makes what it takes from it a condition of its commit.
type recent struct {
	mu       sync.Mutex
	now, old map[string]seen // old has what was not used since now was begun
	bytes    int             // of now
	most     int             // of bytes
}

// seen is a record, or that there is none.
type seen struct {
	item  Item
	found bool
}

func newRecent(most int) *recent { return &recent{now: map[string]seen{}, most: most} }

// get returns what a key was.
func (r *recent) get(key string) (seen, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x, ok := r.now[key]; ok {
		return x, true
	}
	x, ok := r.old[key]
	if ok {
		delete(r.old, key)
		r.put(key, x)
	}
	return x, ok
}

// keep keeps what a key was.
func (r *recent) keep(key string, x seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.old, key)
	r.put(key, x)
}

// put adds to now. Where that is full, all that is old is forgotten.
func (r *recent) put(key string, x seen) {
	if was, ok := r.now[key]; ok {
		r.bytes -= size(key, was)
	}
	if n := size(key, x); r.bytes+n > r.most && len(r.now) > 0 {
		delete(r.now, key)
		r.now, r.old, r.bytes = map[string]seen{}, r.now, 0
	}
	r.now[key] = x
	r.bytes += size(key, x)
}

func size(key string, x seen) int { return len(key) + len(x.item.Value) + 100 }

// forget forgets what a key was.
func (r *recent) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, ok := r.now[key]; ok {
		r.bytes -= size(key, was)
		delete(r.now, key)
	}
	delete(r.old, key)
}
