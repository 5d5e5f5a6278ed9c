package umad

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/transport"
)

var _ transport.Laned = (*Port)(nil)

// saLane is subnet administration on a descriptor of its own.
type saLane struct {
	port *Port
	file *os.File
	send *sender
	recv *receiver
	some func(fd uintptr) bool
}

// SA implements transport.Laned. The errors it can return include *OpenError and
// *RegisterError.
func (p *Port) SA() (transport.SALane, error) {
	fd, err := p.sys.open(p.path)
	if err != nil {
		return nil, &OpenError{Path: p.path, Err: err}
	}
	l := &saLane{port: p, file: os.NewFile(uintptr(fd), p.path), some: readable}
	if l.send, l.recv, err = p.open(l.file, fd, []Agent{saAgent()}); err != nil {
		return nil, errors.Join(err, l.file.Close())
	}
	l.send.try, l.recv.try = true, true
	p.sa = l
	return l, nil
}

// readable reports whether a read would return at once, with a packet or an error.
func readable(fd uintptr) bool {
	polled := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, _ := unix.Poll(polled[:], 0)
	return n > 0
}

// TrySend implements transport.Lane. A request that the kernel refuses comes back
// undelivered, an answer is lost; see Port.Send.
func (l *saLane) TrySend(packets []transport.Packet) (int, error) {
	n, err := sendAll(l.send, l.recv, packets)
	switch {
	case err == nil, errors.Is(err, unix.EAGAIN):
		return n, nil
	default:
		return n, l.port.named(err)
	}
}

// TryReceive implements transport.Lane.
func (l *saLane) TryReceive(packets []transport.Packet) (int, error) {
	r := l.recv
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.returned(packets); n > 0 || len(packets) == 0 {
		return n, nil
	}
	n, err := r.receive(packets)
	switch {
	case n > 0, err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		return n, nil // the deadline says that a request came back meanwhile
	default:
		return 0, l.port.wrap(err)
	}
}

// Pause implements transport.Lane.
func (l *saLane) Pause(d time.Duration) error {
	if !l.recv.until(time.Now().Add(d)) {
		return nil
	}
	err := l.Wait()
	l.recv.until(time.Time{})
	return err
}

// Wait implements transport.Lane.
func (l *saLane) Wait() error {
	err := l.recv.raw.Read(l.some)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return l.port.wrap(err)
}

// Dropped implements transport.SALane. The kernel does not report its drops.
func (l *saLane) Dropped() uint64 { return 0 }
