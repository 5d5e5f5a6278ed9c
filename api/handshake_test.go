package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

// TestHandshakesEndWithoutTurn: a connection that gets no turn ends, after headerTimeout or when it is closed.
func TestHandshakesEndWithoutTurn(t *testing.T) {
	for name, closes := range map[string]bool{"late": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newTurns(1)
				leave, _ := u.enter(t.Context(), address(0), 1)
				c, outer := pipe(u, 1)
				go func() { _, _ = outer.Write([]byte{1}) }()
				began, want := time.Now(), headerTimeout
				if closes {
					want = time.Second
					time.AfterFunc(want, func() { c.Close() })
				}
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, errNoTurn) || time.Since(began) != want {
					t.Errorf("after %v: %v, want %v after %v", time.Since(began), err, errNoTurn, want)
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
	s.Listener = guardListener(s.Listener, rate, limit.New[netip.Addr](rate), u, func() { t.Error("a connection is refused") })
	s.Config.ConnState = noteState
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

// slowAuthority takes its time to read the authorities.
type slowAuthority struct {
	HostAuthority
	asked, goOn chan struct{}
}

func (a slowAuthority) Pool(context.Context) (*x509.CertPool, error) {
	a.asked <- struct{}{}
	<-a.goOn
	return x509.NewCertPool(), nil
}

// TestNoTurnWhileTheStoreIsRead: a handshake that waits for the store holds no turn.
func TestNoTurnWhileTheStoreIsRead(t *testing.T) {
	u := newTurns(1)
	authority := slowAuthority{asked: make(chan struct{}), goOn: make(chan struct{})}
	s := &Server{hosts: authority}
	c, outer := pipe(u, 1)
	defer outer.Close()
	ended := make(chan error, 1)
	go func() {
		if !c.begin() {
			ended <- errNoTurn
			return
		}
		_, err := s.poolOf(&tls.ClientHelloInfo{Conn: c})
		ended <- err
	}()
	<-authority.asked
	leave, ok := u.enter(t.Context(), address(2), 1)
	if !ok {
		t.Fatal("another connection gets no turn")
	}
	leave()
	authority.goOn <- struct{}{}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	c.Close()
	if u.free != 1 {
		t.Errorf("%d turns are free in the end", u.free)
	}
}
