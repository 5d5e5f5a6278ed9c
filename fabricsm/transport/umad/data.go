package umad

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// errEnd is the end of a file that has none.
var errEnd = errors.New("the device is at its end")

// sender is the sending half of the device. step is a field so that a call of
// raw.Write allocates no closure.
type sender struct {
	raw     syscall.RawConn
	form    form
	agents  *agents
	timeout time.Duration
	try     bool // do not wait for room
	step    func(fd uintptr) bool

	mu    sync.Mutex
	buf   [int(form64) + mad.Size]byte
	size  int   // of the packet in buf
	errno error // of the last write
}

func newSender(raw syscall.RawConn, f form, a *agents, timeout time.Duration) *sender {
	s := &sender{raw: raw, form: f, agents: a, timeout: timeout}
	s.step = func(fd uintptr) bool {
		for {
			_, err := unix.Write(int(fd), s.buf[:s.size])
			if err == unix.EINTR {
				continue
			}
			s.errno = err
			return s.try || err != unix.EAGAIN
		}
	}
	return s
}

// one sends a packet of an agent. The error is the poller's or the kernel's.
func (s *sender) one(agent int16, p *transport.Packet) error {
	s.size = s.form.encode(s.buf[:], uint32(agent), s.timeout, p)
	if err := s.raw.Write(s.step); err != nil {
		return err
	}
	return s.errno
}

// refused reports whether an error is about one packet, such as a directed route that the kernel rejects or a moment
// without memory, and not about the device.
func refused(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENOBUFS)
}

// Send hands packets to the kernel in order. A request that the kernel refuses comes back through Receive as undelivered,
// as if it had been lost on the wire; a refused answer is lost. Only the lower 32 bits of the transaction identifier of a
// request reach the wire. The errors it can return include *UnregisteredError, after which the port still works.
func (p *Port) Send(packets []transport.Packet) (int, error) {
	n, err := sendAll(p.send, p.recv, packets)
	if err != nil {
		return n, p.named(err)
	}
	return n, nil
}

// named is wrap for the errors of sendAll.
func (p *Port) named(err error) error {
	if e, ok := errors.AsType[*UnregisteredError](err); ok {
		return e
	}
	return p.wrap(err)
}

// sendAll sends packets in order, and has requests that are refused received.
func sendAll(s *sender, r *receiver, packets []transport.Packet) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range packets {
		agent := s.agents[packets[i].MAD.Class()]
		if agent == noAgent {
			return i, &UnregisteredError{Class: packets[i].MAD.Class()}
		}
		err := s.one(agent, &packets[i])
		switch {
		case err == nil:
		case refused(err):
			r.bounce(&packets[i], err)
		default:
			return i, err
		}
	}
	return len(packets), nil
}

// Stats counts failures of single packets since Dial.
type Stats struct {
	Refused     uint64 // packets that the kernel would not send
	LastRefusal error  // its error for the last of them
	Malformed   uint64 // packets received that are not MADs of 256 bytes
}

// receiver is the receiving half of the device.
type receiver struct {
	file *os.File
	raw  syscall.RawConn
	form form
	try  bool // do not wait for packets
	step func(fd uintptr) bool

	mu   sync.Mutex // held by the one that receives
	buf  [maxPacket]byte
	into []transport.Packet
	n    int
	err  error

	state   sync.Mutex
	stats   Stats
	bounced []transport.Packet // to be received before anything else
}

func newReceiver(file *os.File, raw syscall.RawConn, f form) *receiver {
	r := &receiver{file: file, raw: raw, form: f}
	r.step = func(fd uintptr) bool {
		for r.n < len(r.into) {
			size, err := unix.Read(int(fd), r.buf[:])
			switch {
			case err == unix.EINTR:
			case err == unix.EAGAIN:
				return r.try || r.n > 0
			case err != nil:
				r.err = err
				return true
			case size == 0:
				r.err = errEnd
				return true
			case r.form.decode(r.buf[:size], &r.into[r.n]):
				r.n++
			default:
				r.malformed()
			}
		}
		return true
	}
	return r
}

func (r *receiver) malformed() {
	r.state.Lock()
	defer r.state.Unlock()
	r.stats.Malformed++
}

// bounce has a request received back, and wakes the receiver for it.
func (r *receiver) bounce(p *transport.Packet, err error) {
	r.state.Lock()
	defer r.state.Unlock()
	r.stats.Refused++
	r.stats.LastRefusal = err
	if p.MAD.IsResponse() {
		return
	}
	r.bounced = append(r.bounced, *p)
	b := &r.bounced[len(r.bounced)-1]
	b.Undelivered = true
	ours(&b.MAD)
	_ = r.file.SetReadDeadline(time.Unix(0, 1)) // fails only on a closed file
}

// returned takes requests that were refused. With the last of them the
// receiver may wait again.
func (r *receiver) returned(p []transport.Packet) int {
	r.state.Lock()
	defer r.state.Unlock()
	if len(r.bounced) == 0 {
		return 0
	}
	n := copy(p, r.bounced)
	r.bounced = append(r.bounced[:0], r.bounced[n:]...)
	if len(r.bounced) == 0 {
		_ = r.file.SetReadDeadline(time.Time{})
	}
	return n
}

// until sets how long the receiver waits, unless there is a request that was refused.
func (r *receiver) until(at time.Time) bool {
	r.state.Lock()
	defer r.state.Unlock()
	if len(r.bounced) > 0 {
		return false
	}
	_ = r.file.SetReadDeadline(at) // fails only on a closed file
	return true
}

// receive waits for a batch. An error that comes after packets is kept by the
// kernel for the next call.
func (r *receiver) receive(p []transport.Packet) (int, error) {
	r.into, r.n, r.err = p, 0, nil
	defer func() { r.into = nil }()
	if err := r.raw.Read(r.step); err != nil {
		return r.n, err
	}
	if r.n > 0 {
		return r.n, nil
	}
	return 0, r.err
}

// Receive waits for at least one packet and takes up to len(packets) that are
// there. Answers to our requests, and requests that came back, carry only the
// lower half of the transaction identifier. When the device goes away it
// returns an error that wraps transport.ErrLost.
func (p *Port) Receive(packets []transport.Packet) (int, error) {
	if len(packets) == 0 {
		return 0, nil
	}
	r := p.recv
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if n := r.returned(packets); n > 0 {
			return n, nil
		}
		n, err := r.receive(packets)
		switch {
		case n > 0:
			return n, nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return 0, p.wrap(err)
		}
	}
}

// Stats returns the error counters so far, for packets of both lanes.
func (p *Port) Stats() Stats {
	s := p.recv.told()
	if p.sa != nil {
		of := p.sa.recv.told()
		s.Refused += of.Refused
		s.Malformed += of.Malformed
		if s.LastRefusal == nil {
			s.LastRefusal = of.LastRefusal
		}
	}
	return s
}

func (r *receiver) told() Stats {
	r.state.Lock()
	defer r.state.Unlock()
	return r.stats
}
