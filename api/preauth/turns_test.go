package preauth

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/limit"
)

func address(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)}) }

// wait has a source wait for a turn that lasts, and sends its address when it comes.
func wait(ctx context.Context, u *turns, source netip.Addr, lasts time.Duration, came chan<- netip.Addr) {
	if leave, ok := u.enter(ctx, source, maxWaitingOne); ok {
		came <- source
		time.Sleep(lasts)
		leave()
	}
}

// TestTurnsAreFair: a source that sends one request is served after one of each of the others at most, and before all that have
// used more.
func TestTurnsAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const strangers, each = 60, maxWaitingOne
		u := newTurns(1)
		came := make(chan netip.Addr, strangers*each+10)
		first, ok := u.enter(t.Context(), address(999), maxWaitingOne)
		if !ok {
			t.Fatal("the first one has to wait")
		}
		for range each {
			for n := range strangers {
				go wait(t.Context(), u, address(n), 5*time.Millisecond, came)
			}
		}
		synctest.Wait()
		honest := netip.MustParseAddr("127.2.0.1")
		go wait(t.Context(), u, honest, 5*time.Millisecond, came)
		synctest.Wait()
		first()
		for n := 1; ; n++ {
			if <-came == honest {
				if n > strangers+1 {
					t.Errorf("it was served as number %d, behind %d sources", n, strangers)
				}
				break
			}
		}
		for range 2 * strangers { // by now each has used some
			<-came
		}
		late := netip.MustParseAddr("127.2.0.2")
		go wait(t.Context(), u, late, time.Millisecond, came)
		synctest.Wait()
		if next := <-came; next != late {
			t.Errorf("%v goes before a source that used nothing", next)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if u.free != 1 || u.count != 0 || len(u.waiting) != 0 {
			t.Errorf("in the end %d slots are free and %d wait", u.free, u.count)
		}
		leave, _ := u.enter(t.Context(), honest, maxWaitingOne)
		time.Sleep(time.Millisecond / 2)
		leave()
		if len(u.used) > 1 {
			t.Errorf("%d sources are remembered after two minutes", len(u.used))
		}
	})
}

// TestTurnsAreBounded: a limited number of requests waits, for each source and in total. The others are refused at once.
// One that stops waiting leaves its place.
func TestTurnsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newTurns(1)
		leave, _ := u.enter(t.Context(), address(0), maxWaitingOne)
		ctx, cancel := context.WithCancel(t.Context())
		came := make(chan netip.Addr, 2*maxWaiting)
		waiting := 0
		for n := 1; waiting < maxWaiting; n++ {
			for range maxWaitingOne {
				go wait(ctx, u, address(n), 0, came)
				waiting++
			}
			synctest.Wait()
			if began := time.Now(); n == 1 {
				if _, ok := u.enter(ctx, address(n), maxWaitingOne); ok || time.Since(began) > 0 {
					t.Errorf("%d of one source wait", maxWaitingOne+1)
				}
			}
		}
		if _, ok := u.enter(ctx, address(maxWaiting), maxWaitingOne); ok || u.count != maxWaiting {
			t.Errorf("%d wait, and one more does", u.count)
		}
		cancel()
		synctest.Wait()
		if u.count != 0 || len(u.waiting) != 0 {
			t.Errorf("%d wait although they gave up", u.count)
		}
		leave()
		if leave, ok := u.enter(t.Context(), address(1), maxWaitingOne); !ok {
			t.Error("the slot is lost")
		} else {
			leave()
		}
	})
}

// fakeConn is a connection that notes when it was closed.
type fakeConn struct {
	net.Conn
	remote string
	closed time.Time
}

func (c *fakeConn) Close() error         { c.closed = time.Now(); return nil }
func (c *fakeConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.remote), Port: 1} }

// fakeListener accepts connections that are there.
type fakeListener struct {
	net.Listener
	conns []*fakeConn
}

var errNoMore = errors.New("no more")

func (l *fakeListener) Accept() (net.Conn, error) {
	if len(l.conns) == 0 {
		return nil, errNoMore
	}
	c := l.conns[0]
	l.conns = l.conns[1:]
	return c, nil
}

func (l *fakeListener) Close() error { return nil }

// TestClosesLate: a connection that comes too often is closed later, unless there are too many of them.
func TestClosesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeListener{}
		refused := 0
		g := New(1).Listener(l, limit.Rate{PerSecond: 1, Burst: 1}, limit.New[netip.Addr](limit.Rate{PerSecond: 1, Burst: 100}), func() { refused++ }).(*guardedListener)
		var all []*fakeConn
		for range maxLateOfOne + 3 {
			all = append(all, &fakeConn{remote: "127.1.0.1"})
		}
		other := &fakeConn{remote: "127.1.0.2"}
		l.conns = append(append(l.conns, all...), other)
		if c, err := g.Accept(); err != nil || c.(*guardedConn).Conn != all[0] {
			t.Fatalf("the first: %v, %v", c, err)
		}
		if c, err := g.Accept(); err != nil || c.(*guardedConn).Conn != other {
			t.Fatalf("that of another address: %v, %v", c, err)
		}
		closed := func(list []*fakeConn) (n int) {
			g.late.mu.Lock()
			defer g.late.mu.Unlock()
			for _, c := range list {
				if !c.closed.IsZero() {
					n++
				}
			}
			return n
		}
		if held := all[1 : 1+maxLateOfOne]; closed(held) != 0 || closed(all[1+maxLateOfOne:]) != 2 || refused != len(all)-1 {
			t.Errorf("%d of those that are held are closed, %d of the others, %d refused", closed(held), closed(all[1+maxLateOfOne:]), refused)
		}
		began := time.Now()
		time.Sleep(2 * closeLate)
		synctest.Wait()
		g.late.mu.Lock()
		for _, c := range all[1 : 1+maxLateOfOne] {
			if c.closed.Sub(began) != closeLate {
				t.Errorf("closed after %v, want %v", c.closed.Sub(began), closeLate)
			}
		}
		if len(g.late.held) != 0 || len(g.late.of) != 0 {
			t.Errorf("%d are still held", len(g.late.held))
		}
		g.late.mu.Unlock()
		again := &fakeConn{remote: "127.1.0.2"}
		l.conns = []*fakeConn{again, {remote: "127.1.0.2"}}
		_, _ = g.Accept()
		if _, err := g.Accept(); !errors.Is(err, errNoMore) {
			t.Error(err)
		}
		if err := g.Close(); err != nil || len(g.late.held) != 0 {
			t.Errorf("closed: %v, %d are held", err, len(g.late.held))
		}
	})
}

// TestCrowd: the connections of all sources together are bounded, and one of a source that has few is accepted in place of the oldest
// of one that has most.
func TestCrowd(t *testing.T) {
	const most = 64
	c := newCrowd(most)
	conn := func(n int) *guardedConn {
		g := &guardedConn{Conn: &fakeConn{}, source: address(n)}
		g.leave = func() { c.leave(g) }
		return g
	}
	oldest := conn(0)
	if _, ok := c.enter(oldest); !ok {
		t.Fatal("the first is refused")
	}
	for n := range most - 1 {
		if _, ok := c.enter(conn(n % 2)); !ok {
			t.Fatalf("connection %d is refused", n+2)
		}
	}
	if evicted, ok := c.enter(conn(2)); !ok || evicted != oldest {
		t.Errorf("of another source: %v, in place of %v, want that it is accepted in place of the oldest", ok, evicted)
	}
	for n := 3; n < 3*most; n++ {
		_, _ = c.enter(conn(n))
	}
	if c.open > most {
		t.Errorf("%d are open", c.open)
	}
	if _, ok := c.enter(conn(0)); ok && len(c.of[address(0)]) > 2 {
		t.Errorf("a source has %d where others have one", len(c.of[address(0)]))
	}
	for _, list := range c.of {
		for len(list) > 0 {
			one := list[0]
			list = list[1:]
			one.leave()
			one.leave()
		}
	}
	if c.open != 0 || len(c.of) != 0 {
		t.Errorf("%d are open after all were closed", c.open)
	}
}
