package testenv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Ports from firstPort to lastPort are given to tests. Linux assigns none of them to a socket that
// asks for any port: those are 32768 to 60999 (ip_local_port_range).
const (
	firstPort = 20000
	lastPort  = 32767
)

// Address returns an address of loopback, "127.0.0.1:PORT", on which no process listens and which no
// other test is given until this one has ended, also in other processes.
func Address(t testing.TB) string {
	t.Helper()
	return Addresses(t, 1)[0]
}

// Addresses returns n addresses as Address does.
func Addresses(t testing.TB, n int) []string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "portcullis-test-ports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var given []string
	const all = lastPort - firstPort + 1
	first := rand.N(all)
	for i := 0; len(given) < n; i++ {
		if i == all {
			t.Fatalf("no port of %d to %d is free: other programs have all of them", firstPort, lastPort)
		}
		port := firstPort + (first+i)%all
		claim, err := claimPort(dir, port)
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { claim.Close() })
		given = append(given, loopback(port))
	}
	return given
}

var errTaken = errors.New("another process has the port")

// claimPort returns the open file whose lock claims a port, or errTaken.
// The file stays when the claim ends: a file that is removed and made again could be locked twice.
func claimPort(dir string, port int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = listens(port)
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EADDRINUSE) {
		return nil, errTaken
	}
	return nil, fmt.Errorf("claim port %d: %w", port, err)
}

func listens(port int) error {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return err
	}
	return l.Close()
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
