package preauth

import (
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"portcullis/api/limit"
)

// guardedListener drops connections of a source that opens too many, before a
// TLS handshake is spent on them.
type guardedListener struct {
	net.Listener
	limit    *limit.Limiter[netip.Addr]
	slow     *limit.Limiter[netip.Addr] // of sources that used up their refusals
	refusals *limit.Limiter[netip.Addr]
	refused  func()
	open     Places[netip.Addr]
	crowd    *crowd
	late     late
	turns    *turns // of handshakes
}

// Listener returns a listener that accepts from l what is within the limits of its source: each is the rate of new connections of
// one source, refusals are those requests of a source that were refused, and refused is called for each connection that is not served. A
// server of it needs NoteState.
func (b *Bounds) Listener(l net.Listener, each limit.Rate, refusals *limit.Limiter[netip.Addr], refused func()) net.Listener {
	return &guardedListener{
		Listener: l, limit: limit.New[netip.Addr](each), slow: limit.New[netip.Addr](limit.Rate{PerSecond: 1, Burst: 1}), refusals: refusals, refused: refused,
		crowd: newCrowd(crowdOf(runtime.GOMAXPROCS(0))), turns: b.slots,
	}
}

// allows reports whether a source may open a connection now.
func (g *guardedListener) allows(source netip.Addr, now time.Time) bool {
	if !g.refusals.Has(source, now) && !g.slow.Allow(source, now) {
		return false
	}
	return g.limit.Allow(source, now) && g.open.Enter(source)
}

// Accept waits for a connection that is within the limits of its source.
func (g *guardedListener) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		now, c := time.Now(), &guardedConn{Conn: conn, source: SourceOf(conn.RemoteAddr().String()), turns: g.turns}
		if !g.allows(c.source, now) {
			g.refused()
			g.late.close(conn, c.source, now)
			continue
		}
		c.leave = sync.OnceFunc(func() {
			g.crowd.leave(c)
			g.open.Leave(c.source)
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
