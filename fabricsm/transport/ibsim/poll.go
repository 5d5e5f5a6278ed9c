package ibsim

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/transport"
)

var _ transport.Poller = (*Port)(nil)

// A data socket holds few datagrams before it is full, eleven by default (net.unix.max_dgram_qlen), and ibsim does not read
// while it cannot write. So a client that waits for room to send, and does not receive meanwhile, blocks ibsim and itself
// permanently. These calls never wait.

// TrySend hands packets to the simulator in order until its queue is full.
func (p *Port) TrySend(packets []transport.Packet) (int, error) {
	if p.lanes != nil {
		return p.lanes.sendSM(packets)
	}
	return p.trySend(packets)
}

func (p *Port) trySend(packets []transport.Packet) (int, error) {
	s := p.send
	s.mu.Lock()
	defer s.mu.Unlock()
	for sent := 0; sent < len(packets); {
		rest := packets[sent:]
		s.done, s.want, s.errno = 0, s.b.load(rest, (*frameHeader).outgoing), 0
		err := s.raw.Control(s.try)
		sent += s.done
		switch {
		case err != nil:
			return sent, p.wrap(err)
		case s.errno == unix.EAGAIN:
			return sent, nil
		case s.errno != 0:
			return sent, p.wrap(s.errno)
		}
	}
	return len(packets), nil
}

// tryOnce sends until the queue is full or the batch is through.
func (s *sender) tryOnce(fd uintptr) {
	for s.done < s.want && s.errno == 0 {
		var n int
		if n, s.errno = s.b.send(fd, s.done, s.want); s.errno == 0 {
			s.done += n
		}
	}
}

// TryReceive takes up to len(packets) that have arrived.
func (p *Port) TryReceive(packets []transport.Packet) (int, error) {
	if p.lanes != nil {
		return p.lanes.sm.receive(packets)
	}
	r := p.recv
	r.done, r.want, r.errno = 0, min(len(packets), batchSize), 0
	if err := r.raw.Control(r.try); err != nil {
		return 0, p.wrap(err)
	}
	if r.errno == unix.EAGAIN {
		return 0, nil
	}
	if r.errno != 0 {
		return 0, p.wrap(r.errno)
	}
	return r.sift(packets, (*frameHeader).received), nil
}

func (r *receiver) tryOnce(fd uintptr) {
	r.done, r.errno = r.b.receive(fd, r.want)
	if r.errno != 0 {
		r.done = 0
	}
}

// Pause blocks until something has arrived, at most d.
func (p *Port) Pause(d time.Duration) error {
	if p.lanes != nil {
		_, err := p.lanes.sm.wait(d)
		return err
	}
	r := p.recv
	r.patience = unix.NsecToTimespec(d.Nanoseconds())
	if err := r.raw.Control(r.pause); err != nil {
		return p.wrap(err)
	}
	return nil
}

// pauseOnce waits for the socket for as long as patience lasts. The next TryReceive reports errors of the socket.
func (r *receiver) pauseOnce(fd uintptr) {
	r.polled[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	_, _ = unix.Ppoll(r.polled[:], &r.patience, nil)
}

// Wait blocks until something has arrived. When the simulator dies it returns an
// error that wraps transport.ErrLost within about a second.
func (p *Port) Wait() error {
	if p.lanes != nil {
		return p.lanes.waitSM()
	}
	p.watch.mu.Lock()
	defer p.watch.mu.Unlock()
	for {
		if err := p.watch.arm(p.data); err != nil {
			return p.wrap(err)
		}
		err := p.recv.raw.Read(somethingArrived)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return p.wrap(err)
		default:
			if err := p.probe(); err != nil {
				return err
			}
		}
	}
}

// somethingArrived looks without taking. An error counts: TryReceive will say
// which.
func somethingArrived(fd uintptr) bool {
	var b byte
	_, _, errno := unix.Syscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	return errno != syscall.EAGAIN
}
