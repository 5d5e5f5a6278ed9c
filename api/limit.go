package api

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxSources bounds the memory of a limiter. When so many sources are active
// at once, further ones share a single bucket.
const maxSources = 8192

// Rate is a token bucket: PerSecond on average, Burst at once.
type Rate struct {
	PerSecond float64
	Burst     int
}

// limiter holds one token bucket for each source address.
type limiter struct {
	rate Rate

	mu       sync.Mutex
	sources  map[netip.Addr]*rate.Limiter
	overflow *rate.Limiter
}

func newLimiter(r Rate) *limiter {
	l := &limiter{rate: r, sources: map[netip.Addr]*rate.Limiter{}}
	l.overflow = l.bucket()
	return l
}

func (l *limiter) bucket() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(l.rate.PerSecond), l.rate.Burst)
}

// allow takes one token from the bucket of source at time now.
func (l *limiter) allow(source netip.Addr, now time.Time) bool {
	l.mu.Lock()
	b := l.sources[source]
	if b == nil {
		b = l.admit(source, now)
	}
	l.mu.Unlock()
	return b.AllowN(now, 1)
}

// admit makes a bucket for a new source. When the map is full it first
// forgets the sources whose buckets are full again: forgetting those changes
// nothing for them.
func (l *limiter) admit(source netip.Addr, now time.Time) *rate.Limiter {
	if len(l.sources) >= maxSources {
		for a, b := range l.sources {
			if b.TokensAt(now) >= float64(l.rate.Burst) {
				delete(l.sources, a)
			}
		}
	}
	if len(l.sources) >= maxSources {
		return l.overflow
	}
	b := l.bucket()
	l.sources[source] = b
	return b
}

// sourceOf gives the address a limit is kept for: an IPv4 address, or the /64
// of an IPv6 address because one host owns all of it. Anything else, such as
// a Unix socket, is the zero Addr.
func sourceOf(remote string) netip.Addr {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	addr := ap.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr
	}
	p, err := addr.Prefix(64)
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr()
}

// hostOf gives the address without its port, as the audit log wants it.
func hostOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}
