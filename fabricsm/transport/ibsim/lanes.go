package ibsim

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/transport"
)

var _ transport.Laned = (*Port)(nil)

const (
	// mostSA is how many packets wait for the SA's lane before they are dropped.
	mostSA = 4096
	// mostSM is how many wait for the SM's lane before the other takes no more from
	// the socket.
	mostSM = 1 << 14
	// sendSA is how many packets the SA's lane sends before others may.
	sendSA = 16
	// hot is how often in vain the SA's lane still watches the socket after it got
	// packets of its own.
	hot = 4
	// away is how long a lane may not have received before one that relies on it
	// watches the socket itself.
	away = time.Millisecond
	// rounds is how often a lane that found only packets of the other looks for more: a
	// flood of those must not keep it.
	rounds = 4
	// yield is how long the SM's lane goes first on a wire that it found full.
	yield = time.Millisecond
)

// lanes are two ways through one socket. The rules are in package transport.
type lanes struct {
	port   *Port
	sm, sa lane

	refused atomic.Int64 // when the SM's lane last found the wire full, in nanoseconds since 1970; 0: it is through
	dropped atomic.Uint64
	early   [batchSize]transport.Packet // of the SA's lane

	mu       sync.Mutex // of all below, of the two lanes and of the port's receiver
	guard    *time.Timer
	guarding bool   // guard is set
	whom     *lane  // the lane on which the other relied when it was set
	looks    uint64 // and how often that had received
	closed   bool
}

// lane is one of them.
type lane struct {
	*lanes
	other *lane

	queue queue
	bell  int // an eventfd

	asleep   bool
	watching bool   // the socket, while asleep
	looks    uint64 // calls of TryReceive
	stalled  bool   // there was none for long
	got      int    // packets since it last slept
	burst    bool   // several of them at once
	hot      int    // of the SA's lane

	sleep    func(fd uintptr)
	patience *unix.Timespec
	buffer   unix.Timespec
	polled   [2]unix.PollFd
	rings    [8]byte // of the bell
}

// SA implements transport.Laned.
func (p *Port) SA() (transport.SALane, error) {
	l := &lanes{port: p}
	l.guard = time.AfterFunc(time.Hour, l.look)
	l.guard.Stop()
	l.sm.queue.most, l.sa.queue.most = mostSM, mostSA
	l.sa.queue.shares = transport.NewShares(mostSA)
	l.sm.other, l.sa.other = &l.sa, &l.sm
	for _, x := range []*lane{&l.sm, &l.sa} {
		x.lanes, x.bell, x.stalled, x.sleep = l, -1, true, x.sleepOnce
	}
	for _, x := range []*lane{&l.sm, &l.sa} {
		var err error
		if x.bell, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
			l.free()
			return nil, os.NewSyscallError("eventfd", err)
		}
	}
	p.lanes = l
	return saLane{&l.sa}, nil
}

// ring wakes a lane that is asleep. Called with mu held.
func (x *lane) ring() {
	if x.asleep {
		_, _ = unix.Write(x.bell, once)
	}
}

// once is the value that rings an eventfd.
var once = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// receive returns packets for this lane, and puts packets for the other lane into its queue.
func (x *lane) receive(packets []transport.Packet) (n int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.looks++
	x.stalled = false
	n = x.queue.pop(packets)
	again := n < len(packets)
	for round := 0; again && round < rounds; round++ {
		var k int
		if k, again, err = x.take(packets[n:]); err != nil {
			return n, err
		}
		if n += k; n > 0 {
			break
		}
	}
	x.note(n)
	return n, nil
}

// note stores the data for the decisions of the next wait.
func (x *lane) note(n int) {
	x.got += n
	x.burst = n > 1
	if n > 0 && x == &x.lanes.sa {
		x.hot = hot
	}
}

// take takes datagrams from the socket, at most as many as there is room for if all are for this lane. It returns how many
// were for this lane, and whether there may be more. Called with mu held.
func (x *lane) take(own []transport.Packet) (n int, more bool, err error) {
	r := x.port.recv
	want := min(len(own), batchSize)
	if x == &x.lanes.sa {
		want = min(want, x.lanes.sm.queue.room())
	}
	if want == 0 {
		return 0, false, nil
	}
	r.done, r.want, r.errno = 0, want, 0
	if err := r.raw.Control(r.try); err != nil {
		return 0, false, x.port.wrap(err)
	}
	if r.errno == unix.EAGAIN {
		return 0, false, nil
	}
	if r.errno != 0 {
		return 0, false, x.port.wrap(r.errno)
	}
	rang := false
	for i := range r.done {
		if r.b.msgs[i].n != frameSize {
			continue
		}
		var p *transport.Packet
		to := x.lanes.of(&r.b.frames[i])
		if to == x {
			p = &own[n]
			n++
		} else if p = to.queue.push(); p == nil {
			x.dropped.Add(1) // only the SA's queue can be full here
			continue
		}
		p.MAD = *r.b.frames[i].mad()
		r.b.frames[i].header().received(p)
		switch {
		case to == x:
		case to.queue.keep():
			rang = true
		default:
			x.dropped.Add(1) // only the SA's queue has shares
		}
	}
	if rang {
		x.other.ring()
	}
	return n, r.done == want, nil
}

// of returns the lane of a datagram.
func (l *lanes) of(f *frame) *lane {
	if f.isSA() {
		return &l.sa
	}
	return &l.sm
}

// wait blocks until there may be something for the lane, at most d; d < 0 means forever. late is true if d is over.
func (x *lane) wait(d time.Duration) (late bool, err error) {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return false, transport.ErrClosed
	}
	if x.queue.n > 0 {
		x.mu.Unlock()
		return false, nil
	}
	if x.got == 0 && x.hot > 0 {
		x.hot--
	}
	x.got = 0
	x.asleep, x.watching = true, x.watches()
	if !x.watching && !x.other.asleep {
		x.rely(x.other)
	}
	x.mu.Unlock()

	x.patience = nil
	if d >= 0 {
		x.buffer = unix.NsecToTimespec(d.Nanoseconds())
		x.patience = &x.buffer
	}
	err = x.port.recv.raw.Control(x.sleep)

	x.mu.Lock()
	defer x.mu.Unlock()
	x.asleep, x.watching = false, false
	if x.other.asleep && !x.other.watching {
		x.rely(x)
	}
	if err != nil || x.closed {
		return false, x.port.wrap(err)
	}
	if x.polled[0].Revents != 0 {
		_, _ = unix.Read(x.bell, x.rings[:])
	}
	return x.polled[0].Revents == 0 && x.polled[1].Revents == 0, nil
}

// watches decides whether a lane that goes to sleep watches the socket. Called with
// mu held.
func (x *lane) watches() bool {
	switch sa := &x.lanes.sa; {
	case x.other.asleep && !x.other.watching:
		return true // at least one lane must watch
	case x == sa:
		return sa.hot > 0 || x.other.stalled
	default:
		return sa.hot == 0 || sa.stalled
	}
}

// sleepOnce waits for the bell, and for the socket if it is watched. The next receive reports errors of the socket.
func (x *lane) sleepOnce(fd uintptr) {
	x.polled[0] = unix.PollFd{Fd: int32(x.bell), Events: unix.POLLIN}
	x.polled[1] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	n := 1
	if x.watching {
		n = 2
	}
	_, _ = unix.Ppoll(x.polled[:n], x.patience, nil)
}

// rely sets the guard: a lane that is awake is relied on by one that sleeps. Called
// with mu held.
func (l *lanes) rely(on *lane) {
	if !l.guarding && !l.closed {
		l.guarding, l.whom, l.looks = true, on, on.looks
		l.guard.Reset(away)
	}
}

// look is the function of the guard.
func (l *lanes) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.guarding = false
	for _, x := range []*lane{&l.sm, &l.sa} {
		switch {
		case !x.asleep || x.watching || x.other.asleep:
		case l.whom == x.other && l.looks == x.other.looks:
			x.other.stalled = true
			x.ring()
		default:
			l.rely(x.other)
		}
	}
}

// close wakes both lanes permanently.
func (l *lanes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.guard.Stop()
	l.sm.asleep, l.sa.asleep = true, true
	l.sm.ring()
	l.sa.ring()
}

// free closes the bells, when they are no longer in use.
func (l *lanes) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range []*lane{&l.sm, &l.sa} {
		_ = unix.Close(x.bell)
		x.bell = -1
	}
}

// receiveSM waits for at least one packet of the SM's lane.
func (l *lanes) receiveSM(packets []transport.Packet) (int, error) {
	for {
		n, err := l.sm.receive(packets)
		if n > 0 || err != nil {
			return n, err
		}
		if err := l.waitSM(); err != nil {
			return 0, err
		}
	}
}

// waitSM blocks until something has arrived for the SM's lane. When the simulator
// dies it returns an error that wraps transport.ErrLost within about a second.
func (l *lanes) waitSM() error {
	for {
		late, err := l.sm.wait(silence)
		if err != nil || !late {
			return err
		}
		if err := l.port.probe(); err != nil {
			return err
		}
	}
}

// sendSM sends packets. If the wire is full, it sends fewer than given.
func (l *lanes) sendSM(packets []transport.Packet) (int, error) {
	n, err := l.port.trySend(packets)
	if n < len(packets) {
		l.refused.Store(time.Now().UnixNano())
	} else if l.refused.Load() != 0 {
		l.refused.Store(0)
	}
	return n, err
}

// saLane is the lane of subnet administration.
type saLane struct{ *lane }

// Dropped implements transport.SALane.
func (s saLane) Dropped() uint64 { return s.dropped.Load() }

// TrySend implements transport.Lane.
func (s saLane) TrySend(packets []transport.Packet) (sent int, err error) {
	for sent < len(packets) {
		if at := s.refused.Load(); at != 0 && time.Now().UnixNano()-at < yield.Nanoseconds() {
			return sent, nil
		}
		some := packets[sent:min(len(packets), sent+sendSA)]
		n, err := s.port.trySend(some)
		if sent += n; err != nil || n < len(some) {
			return sent, err
		}
	}
	return sent, nil
}

// TryReceive implements transport.Lane.
func (s saLane) TryReceive(packets []transport.Packet) (int, error) { return s.receive(packets) }

// Pause implements transport.Lane.
func (s saLane) Pause(d time.Duration) error {
	_, err := s.wait(d)
	return err
}

// Wait implements transport.Lane. After a burst it goes on looking for a moment.
func (s saLane) Wait() error {
	if s.burst {
		if found, err := s.lookOn(); found || err != nil {
			return err
		}
	}
	_, err := s.wait(-1)
	return err
}

// lookOn looks for packets without sleeping, for as long as linger, and reports
// whether there are any.
func (s saLane) lookOn() (bool, error) {
	for begin := time.Now(); time.Since(begin) < linger; {
		if found, err := s.lookOnce(); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

func (s saLane) lookOnce() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.n == 0 {
		// Its queue is where these go that come early.
		n, _, err := s.take(s.early[:])
		if err != nil {
			return false, err
		}
		for i := range n {
			*s.queue.push() = s.early[i]
			s.queue.keep() // it was empty: there is room for any source
		}
	}
	return s.queue.n > 0, nil
}
