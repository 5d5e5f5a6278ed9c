package preauth

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/limit"
)

// pipe returns a connection that is guarded, and its other side.
func pipe(u *turns, n int) (*guardedConn, net.Conn) {
	inner, outer := net.Pipe()
	return &guardedConn{Conn: inner, source: address(n), turns: u, leave: func() {}}, outer
}

// TestHandshakesTakeTurns: what a connection received is worked on while it has a turn, which it returns when it reads again,
// writes, is closed or is open.
func TestHandshakesTakeTurns(t *testing.T) {
	for name, goOn := range map[string]func(c *guardedConn){
		"reads":  func(c *guardedConn) { go func() { _, _ = c.Read(make([]byte, 1)) }() },
		"writes": func(c *guardedConn) { go func() { _, _ = c.Write([]byte{1}) }() },
		"closes": func(c *guardedConn) { c.Close() },
		"opens":  func(c *guardedConn) { c.opened() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newTurns(1)
				first, a := pipe(u, 1)
				second, b := pipe(u, 2)
				for _, outer := range []net.Conn{a, b} {
					go func() { _, _ = outer.Write([]byte{1}) }()
				}
				if n, err := first.Read(make([]byte, 1)); n != 1 || err != nil {
					t.Fatalf("the first reads %d, %v", n, err)
				}
				var came time.Time
				go func() {
					if n, err := second.Read(make([]byte, 1)); n == 1 && err == nil {
						came = time.Now()
					}
				}()
				time.Sleep(time.Second)
				synctest.Wait()
				if !came.IsZero() {
					t.Error("the second goes on while the first has the only turn")
				}
				began := time.Now()
				goOn(first)
				synctest.Wait()
				if !came.Equal(began) {
					t.Errorf("the second goes on at %v, want at once when the first %s", came, name)
				}
				first.Close()
				second.Close()
				a.Close()
				b.Close()
				synctest.Wait()
				if u.free != 1 || u.count != 0 {
					t.Errorf("in the end %d turns are free and %d wait", u.free, u.count)
				}
			})
		})
	}
}

// TestHandshakesEndWithoutTurn: a connection that gets no turn ends, after HeaderTimeout or when it is closed.
func TestHandshakesEndWithoutTurn(t *testing.T) {
	for name, closes := range map[string]bool{"late": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newTurns(1)
				leave, _ := u.enter(t.Context(), address(0), 1)
				c, outer := pipe(u, 1)
				go func() { _, _ = outer.Write([]byte{1}) }()
				began, want := time.Now(), HeaderTimeout
				if closes {
					want = time.Second
					time.AfterFunc(want, func() { c.Close() })
				}
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, ErrNoTurn) || time.Since(began) != want {
					t.Errorf("after %v: %v, want %v after %v", time.Since(began), err, ErrNoTurn, want)
				}
				c.Close()
				outer.Close()
				leave()
				if u.free != 1 || u.count != 0 {
					t.Errorf("in the end %d turns are free and %d wait", u.free, u.count)
				}
			})
		})
	}
}

// TestServerTakesTurns: a server's TLS handshake waits for a turn, and requests after it need none.
func TestServerTakesTurns(t *testing.T) {
	u := newTurns(1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	rate := limit.Rate{PerSecond: 100, Burst: 100}
	s.Listener = (&Bounds{slots: u}).Listener(s.Listener, rate, limit.New[netip.Addr](rate), func() { t.Error("a connection is refused") })
	s.Config.ConnState = NoteState
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()

	leave, _ := u.enter(t.Context(), address(0), 1)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	shaken := make(chan error, 1)
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	go func() { shaken <- c.Handshake() }()
	for waits := false; !waits; {
		u.mu.Lock()
		waits = u.count == 1
		u.mu.Unlock()
		select {
		case err := <-shaken:
			t.Fatalf("the handshake ended without a turn: %v", err)
		default:
		}
	}
	leave()
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	c.Close()

	get := func() {
		t.Helper()
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	get()
	leave, _ = u.enter(t.Context(), address(0), 1)
	defer leave()
	get() // over the same connection
}

// TestPause: a connection that waits for something else holds no turn meanwhile, and waits for one after that.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newTurns(1)
		c, outer := pipe(u, 1)
		defer outer.Close()
		if !c.begin() {
			t.Fatal("the connection gets no turn")
		}
		var leave func()
		began, waits := time.Now(), time.Second
		err := Pause(c, func() {
			var ok bool
			if leave, ok = u.enter(t.Context(), address(2), 1); !ok {
				t.Error("another connection gets no turn")
			}
			time.AfterFunc(waits, leave)
		})
		if err != nil || time.Since(began) != waits {
			t.Errorf("it goes on after %v: %v", time.Since(began), err)
		}
		if err := Pause(c, func() { _, _ = u.enter(t.Context(), address(2), 1) }); !errors.Is(err, ErrNoTurn) {
			t.Errorf("while another one has the only turn: %v", err)
		}
		c.Close()
	})
	called := false
	if err := Pause(&fakeConn{}, func() { called = true }); err != nil || !called {
		t.Errorf("with a connection that is not bounded: %v, called: %v", err, called)
	}
}
