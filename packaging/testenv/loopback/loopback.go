// Package loopback claims TCP ports of loopback for programs that tests and benchmarks start.
package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// Ports from firstPort to lastPort are claimed. Linux assigns none of them to a socket that
// asks for any port: those are 32768 to 60999 (ip_local_port_range).
const (
	firstPort = 20000
	lastPort  = 32767
)

// Claim is a port that no other claim has, also of another process. It ends when it is closed, or the process ends.
type Claim struct {
	Address string       // "127.0.0.1:PORT", on which no process listened when it was claimed
	lock    net.Listener // on an abstract socket, which is no file: it has one process at a time, and nothing stays behind
}

// Close ends the claim.
func (c *Claim) Close() error { return c.lock.Close() }

// New claims a port, or returns an error if all ports are taken.
func New() (*Claim, error) {
	const all = lastPort - firstPort + 1
	first := rand.N(all)
	for i := range all {
		c, err := claim(firstPort + (first+i)%all)
		if !errors.Is(err, errTaken) {
			return c, err
		}
	}
	return nil, fmt.Errorf("no port of %d to %d is free: other programs have all of them", firstPort, lastPort)
}

var errTaken = errors.New("another process has the port")

// claim claims a port, or returns errTaken.
func claim(port int) (*Claim, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	lock, err := net.Listen("unix", fmt.Sprintf("@portcullis-test-port-%d", port))
	if err == nil {
		if err = listens(address); err == nil {
			return &Claim{address, lock}, nil
		}
		lock.Close()
	}
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, errTaken
	}
	return nil, fmt.Errorf("claim port %d: %w", port, err)
}

func listens(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}
