package api

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"portcullis/api/limit"
)

// maxOpen bounds the connections one source may hold open at once.
const maxOpen = 128

// guardedListener drops connections of a source that opens too many, before a
// TLS handshake is spent on them.
type guardedListener struct {
	net.Listener
	limit   *limit.Limiter[netip.Addr]
	refused func()

	mu   sync.Mutex
	open map[netip.Addr]int
}

func guardListener(l net.Listener, r limit.Rate, refused func()) *guardedListener {
	return &guardedListener{Listener: l, limit: limit.New[netip.Addr](r), refused: refused, open: map[netip.Addr]int{}}
}

// Accept waits for a connection that is within the limits of its source.
func (g *guardedListener) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		source := sourceOf(conn.RemoteAddr().String())
		if g.limit.Allow(source, time.Now()) && g.enter(source) {
			return &guardedConn{Conn: conn, leave: sync.OnceFunc(func() { g.leave(source) })}, nil
		}
		g.refused()
		conn.Close()
	}
}

func (g *guardedListener) enter(source netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[source] >= maxOpen {
		return false
	}
	g.open[source]++
	return true
}

func (g *guardedListener) leave(source netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[source]--; g.open[source] == 0 {
		delete(g.open, source)
	}
}

// guardedConn gives its place back when it is closed.
type guardedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *guardedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
