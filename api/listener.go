package api

import (
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"portcullis/api/limit"
)

// maxOpen bounds the connections that one source may hold open at once, and its requests
// whose body is on the way: HTTP/2 carries many of these over one connection.
const maxOpen = 128

// places bounds how much of something each of many may hold at once.
type places[K comparable] struct {
	mu   sync.Mutex
	held map[K]int
}

// holder is what bodies under way are counted for: a known token, or a source without one.
type holder struct {
	token  string
	source netip.Addr
}

// enter takes a place, if there is one left for source.
func (p *places[K]) enter(source K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[source] >= maxOpen {
		return false
	}
	if p.held == nil {
		p.held = map[K]int{}
	}
	p.held[source]++
	return true
}

// leave frees the place of a source.
func (p *places[K]) leave(source K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[source]--; p.held[source] == 0 {
		delete(p.held, source)
	}
}

// guardedListener drops connections of a source that opens too many, before a
// TLS handshake is spent on them.
type guardedListener struct {
	net.Listener
	limit    *limit.Limiter[netip.Addr]
	slow     *limit.Limiter[netip.Addr] // of sources that used up their refusals
	refusals *limit.Limiter[netip.Addr]
	refused  func()
	open     places[netip.Addr]
	crowd    *crowd
	late     late
	turns    *turns // of handshakes
}

func guardListener(l net.Listener, r limit.Rate, refusals *limit.Limiter[netip.Addr], turns *turns, refused func()) *guardedListener {
	return &guardedListener{
		Listener: l, limit: limit.New[netip.Addr](r), slow: limit.New[netip.Addr](limit.Rate{PerSecond: 1, Burst: 1}), refusals: refusals, refused: refused,
		crowd: newCrowd(crowdOf(runtime.GOMAXPROCS(0))), turns: turns,
	}
}

// allows reports whether a source may open a connection now.
func (g *guardedListener) allows(source netip.Addr, now time.Time) bool {
	if !g.refusals.Has(source, now) && !g.slow.Allow(source, now) {
		return false
	}
	return g.limit.Allow(source, now) && g.open.enter(source)
}

// Accept waits for a connection that is within the limits of its source.
func (g *guardedListener) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		now, c := time.Now(), &guardedConn{Conn: conn, source: sourceOf(conn.RemoteAddr().String()), turns: g.turns}
		if !g.allows(c.source, now) {
			g.refused()
			g.late.close(conn, c.source, now)
			continue
		}
		c.leave = sync.OnceFunc(func() {
			g.crowd.leave(c)
			g.open.leave(c.source)
		})
		evicted, ok := g.crowd.enter(c)
		if evicted != nil {
			g.refused()
			_ = evicted.Conn.Close() // its server finds that out, and closes it
		}
		if !ok {
			g.refused()
			c.leave()
			g.late.close(conn, c.source, now)
			continue
		}
		return c, nil
	}
}

// Close closes the listener, and the connections that were to be closed later.
func (g *guardedListener) Close() error {
	err := g.Listener.Close()
	g.late.end()
	return err
}
