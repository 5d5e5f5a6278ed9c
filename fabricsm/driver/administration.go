package driver

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// administration runs subnet administration beside the core. Requests are answered by a goroutine of its own, on a lane of
// its own, whatever the core is doing:
//
//	serve   receives, answers, sends
//	look    takes views, and work that is due
//	keep    makes registrations durable, then confirms them and passes them to the core
//
// The first two share the agent under a lock; neither holds it while it waits. A view is made ready for answering before
// the lock is taken.
type administration struct {
	lane  transport.SALane
	store Store
	fence Fence // nil: it is always open
	log   *slog.Logger

	gate *gate

	mu    sync.Mutex
	agent *sa.Agent
	out   sa.Output
	send  []transport.Packet // packets that the wire had no room for
	sent  int                // of these
	due   time.Time          // when the timer rings
	keeps kept               // outputs that have to be kept
	owed  int                // inputs and events not yet passed to the core
	full  atomic.Bool        // the store cannot take what hosts register

	toldSecrets bool // of keep: it was logged that secrets are not kept
	reload      chan chan<- loaded

	views  chan *sm.View
	traps  chan sm.Received
	change <-chan sa.Settings
	onShow func(*sa.Status) // nil: the status is not reported
	timer  *time.Timer
	wake   chan bool // something has to be kept
	told   chan told
	ended  chan struct{}
	failed chan error
}

// told holds the inputs for the core and the events for its listeners, passed on once they are durable.
type told struct {
	tell   []sm.Input
	events []sm.Event
}

const (
	// keepAhead is how many facts may wait to become durable. Then no more registrations
	// are taken.
	keepAhead = 256
	// tellAhead is how many inputs and events may wait for the core before the same is done.
	tellAhead = 4096
	// mostUnsent is how many packets may wait for room on the wire before requests are dropped. They are received all the
	// same: a simulator that cannot write does not read.
	mostUnsent = 4096
	// trapsAhead is how many traps may wait to be reported to subscribers; the rest of a
	// storm is not.
	trapsAhead = 64
)

// administer begins it.
func (l *loop) administer(facts []sm.Fact) error {
	if l.o.SA == nil {
		return nil
	}
	port, ok := l.o.Port.(transport.Laned)
	if !ok {
		return fmt.Errorf("run subnet administration on port %v: this kind of port has no lane for it; switch fabric.sa.enabled off", l.o.Port.GUID())
	}
	lane, err := port.SA()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("run subnet administration on port %v: %w; switch fabric.sa.enabled off", l.o.Port.GUID(), err)
	case err != nil:
		return l.lost("open the lane of subnet administration on", err)
	}
	a := &administration{
		lane: lane, store: l.o.Store, fence: l.o.Fence, log: l.log, agent: l.o.SA, gate: l.gate,
		views: make(chan *sm.View, 1), traps: make(chan sm.Received, trapsAhead), change: l.o.SASettings, onShow: l.o.OnSA, timer: time.NewTimer(time.Hour), wake: make(chan bool, 1),
		told: make(chan told, 1), reload: make(chan chan<- loaded), ended: l.done, failed: l.failure,
	}
	l.sa, l.fromSA = a, a.told
	if err := a.agent.Restore(time.Now(), facts, &a.out); err != nil {
		return err
	}
	if err := a.flush(); err != nil {
		return l.lost("send to", err)
	}
	go a.serve()
	go a.look()
	go a.keep()
	if l.o.Asker != nil {
		l.o.Asker.at.Store(a)
	}
	return nil
}

// show hands on the newest view.
func (a *administration) show(v *sm.View) {
	for {
		select {
		case a.views <- v:
			return
		default:
		}
		select {
		case <-a.views: // an older one that was not taken yet
		default:
		}
	}
}

// forward hands on a trap to its subscribers. While many wait it is dropped.
func (a *administration) forward(in *sm.Received) {
	if in.QP != 0 || in.MAD.Method() != mad.MethodTrap || in.MAD.Attr() != mad.AttrNotice {
		return
	}
	select {
	case a.traps <- *in:
	default:
	}
}

// fail ends the driver, unless it is ending.
func (a *administration) fail(err error) {
	select {
	case a.failed <- err:
	case <-a.ended:
	}
}

// serve answers what comes.
func (a *administration) serve() {
	buf := make([]transport.Packet, batch)
	for {
		n, err := a.lane.TryReceive(buf)
		if err != nil {
			a.fail(err)
			return
		}
		if n > 0 || a.blocked() {
			if err := a.take(buf[:n]); err != nil {
				a.fail(err)
				return
			}
		}
		switch {
		case n > 0:
		case a.blocked():
			err = a.lane.Pause(retrySend)
		default:
			err = a.lane.Wait()
		}
		if err != nil {
			a.fail(err)
			return
		}
	}
}

// take has packets answered. Where answers take a while it releases the lock of the agent in between.
func (a *administration) take(packets []transport.Packet) error {
	for {
		n, err := a.takeSome(packets)
		if packets = packets[n:]; len(packets) == 0 || err != nil {
			return err
		}
	}
}

func (a *administration) takeSome(packets []transport.Packet) (n int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if len(a.send)-a.sent > mostUnsent {
		return len(packets), a.flush() // a client that asks again may find the wire free
	}
	barred := a.barred()
	for was := a.agent.Worked(); n < len(packets) && a.agent.Worked()-was < sa.Stride; n++ {
		a.agent.Hold(barred || a.full.Load() || len(a.keeps.facts)+len(a.out.Save) > keepAhead || a.owed > tellAhead)
		a.agent.Take(now, &packets[n], &a.out)
	}
	return n, a.flush()
}

// blocked reports whether packets wait for room on the wire.
func (a *administration) blocked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent < len(a.send)
}

// look takes views, settings and work that is due.
func (a *administration) look() {
	var (
		view  *sm.View
		sight *sa.Sight
		stood bool // another was master, and may have registered something since
	)
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	for {
		var (
			ready *sa.Sight
			trap  *sm.Received
		)
		select {
		case view = <-a.views:
			sight = a.agent.Sight(sight, view)
			ready = sight
			stood = stood || view.State == ib.SMStandby
		case in := <-a.traps:
			trap = &in
		case s, ok := <-a.change:
			if !ok {
				a.change = nil
				continue
			}
			if err := a.configure(&s); err != nil {
				a.log.Error("subnet administration keeps its settings", "error", err)
				continue
			}
			if view != nil {
				sight = a.agent.Sight(sight, view)
				ready = sight
			}
		case <-tick.C:
			if a.onShow != nil {
				a.onShow(a.status())
			}
			continue
		case <-a.timer.C:
		case <-a.ended:
			return
		}
		if ready != nil {
			a.gate.sight.Store(ready)
		}
		if ready != nil && ready.Serving() && stood {
			stood = false
			if err := a.again(); err != nil {
				a.fail(err)
				return
			}
		}
		if err := a.turn(ready, trap); err != nil {
			a.fail(err)
			return
		}
	}
}

// showEvery is how often it is shown how subnet administration stands.
const showEvery = time.Second

func (a *administration) status() *sa.Status {
	a.mu.Lock()
	s := a.agent.Status()
	a.mu.Unlock()
	s.Front = a.gate.status()
	return s
}

func (a *administration) configure(s *sa.Settings) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.agent.Configure(time.Now(), s, &a.out) // turn does what follows
}

func (a *administration) turn(ready *sa.Sight, trap *sm.Received) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if ready != nil {
		a.agent.Look(now, ready, &a.out)
	}
	if trap != nil {
		var n mad.Notice
		if mad.Decode(trap.MAD.Data(), &n) == nil {
			a.agent.Forward(now, trap.LID, &n, &a.out)
		}
	}
	if next := a.agent.Next(); !next.IsZero() && !now.Before(next) {
		a.agent.Expire(now, &a.out)
	}
	a.due = time.Time{}
	return a.flush()
}

// flush performs the output of the agent. Work that has to be durable first is left to keep: no goroutine waits for the
// store, or for the core, under the lock.
func (a *administration) flush() error {
	if o := &a.out; o.Waits() || len(o.Events) > 0 {
		k := &a.keeps
		k.facts, k.tell, k.events = append(k.facts, o.Save...), append(k.tell, o.Tell...), append(k.events, o.Events...)
		if len(k.send) < mostUnsent { // a client without an answer asks again, and reports are sent again
			k.send = append(k.send, o.Held...)
		}
		select {
		case a.wake <- true:
		default:
		}
	}
	err := a.push(a.out.Send)
	a.out.Reset()
	if next := a.agent.Next(); !next.IsZero() {
		a.ring(next)
	}
	return err
}

// ring has look come back at a time, unless it does before.
func (a *administration) ring(at time.Time) {
	if a.due.IsZero() || at.Before(a.due) {
		a.due = at
		a.timer.Reset(max(time.Until(at), 0))
	}
}

// push sends what there is room for, after what waits for room.
func (a *administration) push(more []transport.Packet) error {
	if a.sent == len(a.send) {
		n, err := a.lane.TrySend(more)
		if err != nil || n == len(more) {
			return err
		}
		more = more[n:]
		a.send, a.sent = a.send[:0], 0
	}
	a.send = append(a.send, more...)
	n, err := a.lane.TrySend(a.send[a.sent:])
	if a.sent += n; a.sent == len(a.send) {
		a.send, a.sent = a.send[:0], 0
		return err
	}
	a.ring(time.Now().Add(retrySend)) // serve may be waiting for packets, not for room
	return err
}
