package testenv

import (
	"errors"
	"net"
	"testing"
)

// A port is claimed by one test at a time, and not while a program listens on it.
func TestClaimPort(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if _, err := claimPort(dir, port); !errors.Is(err, errTaken) {
		t.Errorf("a port that a program listens on: %v, want %v", err, errTaken)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	claim, err := claimPort(dir, port)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claimPort(dir, port); !errors.Is(err, errTaken) {
		t.Errorf("a port that is claimed: %v, want %v", err, errTaken)
	}
	if err := claim.Close(); err != nil {
		t.Fatal(err)
	}
	claim, err = claimPort(dir, port)
	if err != nil {
		t.Fatalf("after the claim has ended: %v", err)
	}
	claim.Close()
}
