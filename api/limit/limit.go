// Package limit says how often each of many parties may do something, in
// bounded memory.
package limit

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// MaxKeys bounds the memory of a Limiter. When so many keys are short of
// tokens at once, further ones share a single bucket.
const MaxKeys = 1 << 15

// Rate is a token bucket: PerSecond on average, Burst at once.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Limiter holds one token bucket for each key. Its methods are safe for
// concurrent use.
type Limiter[K comparable] struct {
	rate Rate

	mu       sync.Mutex
	buckets  map[K]*rate.Limiter
	overflow *rate.Limiter
	swept    time.Time // when full buckets were last looked for
}

// New makes a Limiter in which every key has rate r.
func New[K comparable](r Rate) *Limiter[K] {
	l := &Limiter[K]{rate: r, buckets: map[K]*rate.Limiter{}}
	l.overflow = l.bucket()
	return l
}

// Rate returns the rate of each key.
func (l *Limiter[K]) Rate() Rate { return l.rate }

// Len returns how many keys have a bucket of their own now.
func (l *Limiter[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}

func (l *Limiter[K]) bucket() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(l.rate.PerSecond), l.rate.Burst)
}

// Allow takes one token from the bucket of key at time now, and reports
// whether there was one.
func (l *Limiter[K]) Allow(key K, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(key, now).AllowN(now, 1)
}

// Spend takes n tokens from the bucket of key at time now, at most a burst of them, whether they
// are there or not: a bucket may come to hold less than none.
func (l *Limiter[K]) Spend(key K, now time.Time, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(key, now).ReserveN(now, min(n, l.rate.Burst))
}

// Has reports whether the bucket of key holds a token at time now. It takes none.
func (l *Limiter[K]) Has(key K, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[key]
	return b == nil || b.TokensAt(now) >= 1
}

// of returns the bucket of key.
func (l *Limiter[K]) of(key K, now time.Time) *rate.Limiter {
	if b := l.buckets[key]; b != nil {
		return b
	}
	return l.admit(key, now)
}

// sweepEvery bounds the work that a flood of new keys causes.
const sweepEvery = time.Second

// admit makes a bucket for a new key. When the map is full it first forgets the keys whose buckets are full again:
// forgetting those changes nothing for them. One that is short of tokens is never forgotten, so no caller gets a fresh
// bucket by making the limiter forget.
func (l *Limiter[K]) admit(key K, now time.Time) *rate.Limiter {
	if len(l.buckets) >= MaxKeys && now.Sub(l.swept) >= sweepEvery {
		l.swept = now
		for k, b := range l.buckets {
			if b.TokensAt(now) >= float64(l.rate.Burst) {
				delete(l.buckets, k)
			}
		}
	}
	if len(l.buckets) >= MaxKeys {
		return l.overflow
	}
	b := l.bucket()
	l.buckets[key] = b
	return b
}

// Source returns the address a limit is kept for: an IPv4 address, or the /64 of an IPv6 address because one host owns all
// of it. If there is no address, as for a Unix socket, it returns the zero Addr.
func Source(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	p, err := a.Prefix(64)
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr()
}
