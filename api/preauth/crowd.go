package preauth

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Bounds of connections that were refused and are closed late.
const (
	// closeLate is how long a connection that comes too often is held, unread, before it is closed: a client that sends one after
	// the other is slowed down, and costs neither a TLS handshake nor a goroutine meanwhile.
	closeLate    = 2 * time.Second
	maxLate      = 512
	maxLateOfOne = 8
)

// late holds connections until they are closed.
type late struct {
	mu     sync.Mutex
	held   []lateConn // in the order in which they end
	of     map[netip.Addr]int
	ticker *time.Timer // nil: nothing is held
}

type lateConn struct {
	conn   net.Conn
	source netip.Addr
	until  time.Time
}

// close closes a connection, later if there is room for that.
func (l *late) close(conn net.Conn, source netip.Addr, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held) >= maxLate || l.of[source] >= maxLateOfOne {
		_ = conn.Close()
		return
	}
	if l.of == nil {
		l.of = map[netip.Addr]int{}
	}
	l.held = append(l.held, lateConn{conn, source, now.Add(closeLate)})
	l.of[source]++
	if l.ticker == nil {
		l.ticker = time.AfterFunc(closeLate, l.due)
	}
}

// due closes the connections whose time has come.
func (l *late) due() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, n := time.Now(), 0
	for ; n < len(l.held) && !l.held[n].until.After(now); n++ {
		l.drop(&l.held[n])
	}
	l.held = append([]lateConn(nil), l.held[n:]...)
	if l.ticker = nil; len(l.held) > 0 {
		l.ticker = time.AfterFunc(l.held[0].until.Sub(now), l.due)
	}
}

func (l *late) drop(c *lateConn) {
	_ = c.conn.Close()
	if l.of[c.source]--; l.of[c.source] == 0 {
		delete(l.of, c.source)
	}
}

// end closes all that are held.
func (l *late) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.held {
		l.drop(&l.held[i])
	}
	l.held = nil
	if l.ticker != nil {
		l.ticker.Stop()
		l.ticker = nil
	}
}

// Bounds of the connections of sources that have shown no known credential, of all of them together. One takes some 100 KiB
// of memory.
const (
	crowdOfCPU = 192 // for each CPU
	maxCrowd   = 1024
)

// crowdOf returns the bound for a number of CPUs.
func crowdOf(cpus int) int { return min(crowdOfCPU*cpus, maxCrowd) }

// crowd are the open connections of sources. Where there are as many as may be, one that a further source opens takes the place of
// the oldest of the source that has most, if that has more than the further one then has.
type crowd struct {
	mu   sync.Mutex
	most int
	open int
	of   map[netip.Addr][]*guardedConn // the oldest first
}

func newCrowd(most int) *crowd { return &crowd{most: most, of: map[netip.Addr][]*guardedConn{}} }

// enter takes a place for a connection, and reports whether there was one. It returns the connection that must be closed for that,
// nil if none.
func (c *crowd) enter(conn *guardedConn) (evicted *guardedConn, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.most {
		var most netip.Addr
		for s, list := range c.of {
			if len(list) > len(c.of[most]) {
				most = s
			}
		}
		if len(c.of[most]) <= len(c.of[conn.source])+1 {
			return nil, false
		}
		evicted = c.of[most][0]
		c.remove(evicted)
	}
	c.of[conn.source] = append(c.of[conn.source], conn)
	c.open++
	return evicted, true
}

// leave returns the place of a connection, if it has one.
func (c *crowd) leave(conn *guardedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(conn)
}

func (c *crowd) remove(conn *guardedConn) {
	list := c.of[conn.source]
	for i := range list {
		if list[i] != conn {
			continue
		}
		c.open--
		if list = append(list[:i:i], list[i+1:]...); len(list) == 0 {
			delete(c.of, conn.source)
		} else {
			c.of[conn.source] = list
		}
		return
	}
}
