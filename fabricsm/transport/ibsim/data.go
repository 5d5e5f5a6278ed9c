package ibsim

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/transport"
)

// silence is how long Receive waits before it asks whether the simulator still
// lives: a datagram socket does not learn that its peer was killed.
const silence = time.Second

// sender is the sending half of a data socket. step is a field so that a call
// of raw.Write allocates no closure.
type sender struct {
	mu   sync.Mutex
	raw  syscall.RawConn
	b    *batch
	step func(fd uintptr) bool
	try  func(fd uintptr)

	done, want int // messages of the batch
	errno      syscall.Errno
}

func newSender(raw syscall.RawConn) *sender {
	s := &sender{raw: raw, b: newBatch()}
	s.try = s.tryOnce
	s.step = func(fd uintptr) bool {
		for s.done < s.want {
			n, errno := s.b.send(fd, s.done, s.want)
			if errno == unix.EAGAIN {
				return false
			}
			if s.errno = errno; errno != 0 {
				return true
			}
			s.done += n
		}
		return true
	}
	return s
}

// send sends packets in order, with headers that fill writes, and returns how
// many went.
func (s *sender) send(packets []transport.Packet, fill func(*frameHeader, *transport.Packet)) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sent := 0; sent < len(packets); {
		rest := packets[sent:]
		s.done, s.want, s.errno = 0, s.b.load(rest, fill), 0
		err := s.raw.Write(s.step)
		sent += s.done
		if err == nil && s.errno != 0 {
			err = s.errno
		}
		if err != nil {
			return sent, err
		}
	}
	return len(packets), nil
}

// A peer that sends one datagram at a time, each after the answer to the one before, is served by a cheaper call that takes
// only one. That call is used after alone single datagrams. Every lookAgain-th call checks whether there are more by now.
const (
	alone     = 4
	lookAgain = 16
	// linger is how long a receiver goes on looking after it took several at once. Their
	// sender needs about as long to wake up as to ask again; a receiver that sleeps
	// meanwhile has both wait for each other in turn, and pays more for being woken than
	// for looking.
	linger = 50 * time.Microsecond
)

// receiver is the receiving half of a data socket. One goroutine uses it at a
// time.
type receiver struct {
	raw  syscall.RawConn
	b    *batch
	step func(fd uintptr) bool
	try  func(fd uintptr)
	wait func(fd uintptr)

	alone      uint // messages in a row that await found alone
	done, want int
	errno      syscall.Errno

	pause    func(fd uintptr)
	patience unix.Timespec // of the next pause
	polled   [1]unix.PollFd
}

func newReceiver(raw syscall.RawConn) *receiver {
	r := &receiver{raw: raw, b: newBatch()}
	r.try, r.wait, r.pause = r.tryOnce, r.waitOnce, r.pauseOnce
	r.step = func(fd uintptr) bool {
		n, errno := r.b.receive(fd, r.want)
		if errno == unix.EAGAIN {
			return false
		}
		if r.errno = errno; errno == 0 {
			r.done = n
		}
		return true
	}
	return r
}

// receive waits for a batch and lets fill read the headers. Datagrams of a
// wrong size are left out, so n can be 0 without an error.
func (r *receiver) receive(packets []transport.Packet, fill func(*frameHeader, *transport.Packet)) (n int, err error) {
	r.done, r.want, r.errno = 0, min(len(packets), batchSize), 0
	if err := r.raw.Read(r.step); err != nil {
		return 0, err
	}
	if r.errno != 0 {
		return 0, r.errno
	}
	return r.sift(packets, fill), nil
}

// await is receive for a caller with nothing else to wait for. It waits in the system call that receives, so a single
// datagram costs one call and one wake-up. It fails only when the socket closes.
func (r *receiver) await(packets []transport.Packet, fill func(*frameHeader, *transport.Packet)) (n int, err error) {
	r.want = min(len(packets), batchSize)
	if err := r.raw.Control(r.wait); err != nil {
		return 0, err
	}
	if r.errno != 0 {
		return 0, r.errno
	}
	return r.sift(packets, fill), nil
}

func (r *receiver) waitOnce(fd uintptr) {
	switch {
	case r.alone < alone && r.lookOn(fd):
	case r.alone >= alone && r.alone%lookAgain != 0:
		r.done, r.errno = r.b.awaitOne(fd)
	default:
		r.done, r.errno = r.b.await(fd, r.want)
	}
	if r.alone++; r.done > 1 {
		r.alone = 0
	}
	if r.errno != 0 {
		r.done = 0
	}
}

// lookOn looks for messages without sleeping, for as long as linger, and reports
// whether the wait is over.
func (r *receiver) lookOn(fd uintptr) bool {
	for begin := time.Now(); time.Since(begin) < linger; {
		if r.done, r.errno = r.b.receive(fd, r.want); r.errno != unix.EAGAIN {
			return true
		}
	}
	return false
}

// sift copies the received packets, and leaves out datagrams of a wrong size.
func (r *receiver) sift(packets []transport.Packet, fill func(*frameHeader, *transport.Packet)) (n int) {
	for i := range r.done {
		if r.b.msgs[i].n != frameSize {
			continue
		}
		p := &packets[n]
		p.MAD = *r.b.frames[i].mad()
		fill(r.b.frames[i].header(), p)
		n++
	}
	return n
}

// watch is when the read deadline of a port was set.
type watch struct {
	mu    sync.Mutex // held by the one that receives
	armed time.Time
}

// arm sets the read deadline again when half of it has passed. Doing so for every batch would cost as much as the batch.
func (w *watch) arm(c *socket) error {
	now := time.Now()
	if now.Sub(w.armed) < silence/2 {
		return nil
	}
	w.armed = now
	return c.SetReadDeadline(now.Add(silence))
}

// Send hands packets to the simulator in order. It blocks while the
// simulator's queue is full, some 250 packets.
func (p *Port) Send(packets []transport.Packet) (int, error) {
	n, err := p.send.send(packets, (*frameHeader).outgoing)
	if err != nil {
		return n, p.wrap(err)
	}
	return n, nil
}

// Receive waits for at least one packet and takes up to len(packets) that are
// there. When the simulator dies it returns an error that wraps
// transport.ErrLost within about a second.
func (p *Port) Receive(packets []transport.Packet) (int, error) {
	if len(packets) == 0 {
		return 0, nil
	}
	if p.lanes != nil {
		return p.lanes.receiveSM(packets)
	}
	p.watch.mu.Lock()
	defer p.watch.mu.Unlock()
	for {
		if err := p.watch.arm(p.data); err != nil {
			return 0, p.wrap(err)
		}
		n, err := p.recv.receive(packets, (*frameHeader).received)
		switch {
		case n > 0:
			return n, nil
		case err == nil: // only malformed datagrams
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return 0, p.wrap(err)
		default:
			if err := p.probe(); err != nil {
				return 0, err
			}
		}
	}
}
