package loopback

import (
	"errors"
	"net"
	"testing"
)

// A port is claimed once at a time, and not while a program listens on it.
func TestClaim(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if _, err := claim(port); !errors.Is(err, errTaken) {
		t.Errorf("a port that a program listens on: %v, want %v", err, errTaken)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := claim(port)
	if err != nil {
		t.Fatal(err)
	}
	if c.Address != l.Addr().String() {
		t.Errorf("claimed %s, want %v", c.Address, l.Addr())
	}
	if _, err := claim(port); !errors.Is(err, errTaken) {
		t.Errorf("a port that is claimed: %v, want %v", err, errTaken)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err = claim(port); err != nil {
		t.Fatalf("after the claim has ended: %v", err)
	}
	c.Close()
}
