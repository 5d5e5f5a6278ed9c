package preauth

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// HeaderTimeout is how long a connection may wait for its turn, and how long a server of a Listener waits for the headers of a request.
const HeaderTimeout = 5 * time.Second

// ErrNoTurn ends a handshake that got no turn in time.
var ErrNoTurn = errors.New("no turn for the TLS handshake in time")

// guardedConn is a connection of a source. Until its first request is read, it takes a turn for what it has received: so the
// work of TLS handshakes is shared by sources like that of requests without a credential, and few goroutines at once
// compete with the Subnet Manager. Close returns the turn, and the place of the connection.
type guardedConn struct {
	net.Conn
	source netip.Addr
	leave  func()
	turns  *turns

	mu     sync.Mutex
	open   bool // the handshake is over, no turn is needed
	closed bool
	done   func() // returns the turn that it has, nil: it has none
	cancel func() // ends its wait for a turn, nil: it does not wait
}

// Read implements net.Conn. The work on what was read before is over.
func (c *guardedConn) Read(p []byte) (int, error) {
	c.end()
	n, err := c.Conn.Read(p)
	if n > 0 && !c.begin() {
		return 0, ErrNoTurn
	}
	return n, err
}

// Write implements net.Conn. It may wait for the other side, so it holds no turn.
func (c *guardedConn) Write(p []byte) (int, error) {
	c.end()
	return c.Conn.Write(p)
}

// begin waits for a turn, and reports whether the connection may go on.
func (c *guardedConn) begin() bool {
	c.mu.Lock()
	if c.open || c.closed {
		c.mu.Unlock()
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), HeaderTimeout)
	defer cancel()
	c.cancel = cancel
	c.mu.Unlock()
	done, ok := c.turns.enter(ctx, c.source, MaxOpen)
	c.mu.Lock()
	c.cancel = nil
	late := c.closed
	if ok && !late {
		c.done = done
	}
	c.mu.Unlock()
	if ok && late {
		done()
	}
	return ok && !late
}

// end returns the turn, if there is one.
func (c *guardedConn) end() {
	c.mu.Lock()
	done := c.done
	c.done = nil
	c.mu.Unlock()
	if done != nil {
		done()
	}
}

// opened notes that the handshake is over.
func (c *guardedConn) opened() {
	c.mu.Lock()
	c.open = true
	c.mu.Unlock()
	c.end()
}

// Close closes the connection.
func (c *guardedConn) Close() error {
	c.mu.Lock()
	c.closed = true
	if c.cancel != nil {
		c.cancel()
	}
	c.mu.Unlock()
	c.end()
	c.leave()
	return c.Conn.Close()
}

// Pause calls f, which may wait for something else than the other side, while conn holds no turn. It returns ErrNoTurn if the
// connection gets none again. A connection that is not of a Listener has none.
func Pause(conn net.Conn, f func()) error {
	c, guarded := conn.(*guardedConn)
	if !guarded {
		f()
		return nil
	}
	c.end()
	f()
	if !c.begin() {
		return ErrNoTurn
	}
	return nil
}

// NoteState is the server's ConnState: a connection whose first request was read needs no turn for what it reads.
func NoteState(conn net.Conn, state http.ConnState) {
	if state != http.StateActive {
		return
	}
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if c, ok := conn.(*guardedConn); ok {
		c.opened()
	}
}
