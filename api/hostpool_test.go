package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"testing"

	"portcullis/api/limit"
	"portcullis/api/preauth"
)

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

// oneConn is a listener that accepts one connection.
type oneConn struct {
	net.Listener
	conn net.Conn
}

func (l oneConn) Accept() (net.Conn, error) { return l.conn, nil }

// TestNoTurnWhileTheStoreIsRead: a handshake that waits for the store holds no turn.
func TestNoTurnWhileTheStoreIsRead(t *testing.T) {
	t.Parallel()
	u := preauth.New(1)
	rate := limit.Rate{PerSecond: 1, Burst: 1}
	inner, outer := net.Pipe()
	defer outer.Close()
	c, err := u.Listener(oneConn{conn: inner}, rate, limit.New[netip.Addr](rate), func() { t.Error("the connection is refused") }).Accept()
	if err != nil {
		t.Fatal(err)
	}
	authority := slowAuthority{asked: make(chan struct{}), goOn: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { _, _ = outer.Write([]byte{1}) }()
	go func() {
		_, err := c.Read(make([]byte, 1))
		if err == nil {
			_, err = poolOf(authority, &tls.ClientHelloInfo{Conn: c})
		}
		ended <- err
	}()
	<-authority.asked
	leave, ok := u.Enter(t.Context(), netip.MustParseAddr("127.1.0.2"))
	if !ok {
		t.Fatal("another connection gets no turn")
	}
	leave()
	authority.goOn <- struct{}{}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	c.Close()
	if leave, ok = u.Enter(t.Context(), netip.MustParseAddr("127.1.0.3")); !ok {
		t.Fatal("the turn is not free in the end")
	}
	leave()
}
