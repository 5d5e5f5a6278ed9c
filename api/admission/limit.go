package admission

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxLimited bounds how many sources or hosts a limiter remembers. When it is
// full, the one that has been quiet longest is forgotten.
const maxLimited = 10_000

// limiter limits the rate of requests by key.
type limiter struct {
	rate Rate

	mu    sync.Mutex
	byKey map[string]*limited
}

type limited struct {
	bucket *rate.Limiter
	last   time.Time
}

func newLimiter(r Rate) *limiter { return &limiter{rate: r, byKey: map[string]*limited{}} }

// allow reports whether key may make one more request now.
func (l *limiter) allow(key string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.byKey[key]
	if k == nil {
		if len(l.byKey) >= maxLimited {
			l.forget()
		}
		k = &limited{bucket: rate.NewLimiter(rate.Every(l.rate.Every), l.rate.Burst)}
		l.byKey[key] = k
	}
	k.last = now
	return k.bucket.AllowN(now, 1)
}

// forget drops the quieter half, so that a flood of new keys costs little.
func (l *limiter) forget() {
	var oldest, newest time.Time
	for _, k := range l.byKey {
		if oldest.IsZero() || k.last.Before(oldest) {
			oldest = k.last
		}
		if k.last.After(newest) {
			newest = k.last
		}
	}
	middle := oldest.Add(newest.Sub(oldest) / 2)
	for key, k := range l.byKey {
		if !k.last.After(middle) {
			delete(l.byKey, key)
		}
	}
}
