package driver

import (
	"context"
	"errors"
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// Standby is a run of a core that reads the fabric along while another instance is master:
// see sm.Mandate. It sends Gets alone, saves nothing, and announces no subnet manager.
// Its methods are for one goroutine.
type Standby struct {
	l     *loop
	p     *poller   // nil: the transport cannot be polled
	began time.Time // zero: not yet
	took  time.Duration
	facts []sm.Fact
}

// standbyPause is the rest of a Standby after it moved packets. With the window of the core,
// of eight requests, it bounds what a standby asks to 4,000 requests a second.
const standbyPause = 2 * time.Millisecond

// NewStandby makes a Standby on a port, which it closes in the end. Facts are those that the
// master has; of the options only Port, Core, Timeout and Log count.
func NewStandby(o Options, facts []sm.Fact) (*Standby, error) {
	if o.Port == nil {
		return nil, errors.New("stand by as subnet manager: no port is given")
	}
	if err := o.Core.Check(); err != nil {
		return nil, errors.Join(err, o.Port.Close())
	}
	if _, err := keys.NewBook(sm.KeyRecords(facts)); err != nil {
		return nil, errors.Join(err, o.Port.Close())
	}
	l := newLoop(Options{Port: o.Port, Core: o.Core, Timeout: o.Timeout, Log: o.Log, Fence: shut{}})
	l.standby, l.fence.closed = true, true
	return &Standby{l: l, facts: facts}, nil
}

// shut is a Fence that is never open.
type shut struct{}

func (shut) Left() time.Duration { return 0 }

// Run reads the fabric until ctx ends (nil), the transport fails, or the read state is of no use: ErrUnlinked, ErrDiverged.
func (s *Standby) Run(ctx context.Context) error {
	l := s.l
	if s.began.IsZero() {
		l.now = time.Now()
		s.began = l.now
		l.step(&sm.Started{Facts: s.facts})
		l.step(&sm.Mandate{})
		s.facts = nil
		if port, ok := l.o.Port.(transport.Poller); ok {
			s.p = newPoller(port)
			go s.p.waiter(l.done)
		} else {
			go l.receive()
		}
	}
	err := s.loop(ctx, nil)
	s.took = time.Since(s.began)
	if !l.read.IsZero() {
		s.took = l.read.Sub(s.began)
	}
	return err
}

// Took returns, after Run has returned, how long it took to read the whole fabric, or for how
// long that was tried.
func (s *Standby) Took() time.Duration { return s.took }

func (s *Standby) loop(ctx context.Context, intents <-chan sm.Intent) error {
	s.l.resigned = false
	if s.p != nil {
		return s.l.poll(ctx, s.p, intents)
	}
	return s.l.run(ctx, intents)
}

// Holds reports, after Run has returned, whether the whole fabric was read, and nothing was
// found that facts do not say.
func (s *Standby) Holds() bool { return !s.l.diverged && s.l.core.Overlooks() }

// Complete reports whether the whole fabric was read, as of a moment ago. It may be called by
// any goroutine.
func (s *Standby) Complete() bool { return s.l.complete.Load() }

// Close ends a Standby that is not to lead.
func (s *Standby) Close() { s.l.stop() }

// Lead goes on as Run of this package does, with the state that was read. Run of the Standby must have returned. Facts are
// those of the store, opened. They must equal those that the Standby was made with, except for registrations of hosts: the
// caller compares them, see sm.SameGround. Port and Core of the options do not count.
func (s *Standby) Lead(ctx context.Context, o Options, facts []sm.Fact, intents <-chan sm.Intent) error {
	l := s.l
	defer l.stop()
	o.Port, o.Core, o.Timeout = l.o.Port, l.o.Core, l.o.Timeout
	if err := o.keys(); err != nil {
		return err
	}
	l.o, l.standby = o, false
	if o.Log != nil {
		l.log = o.Log
	}
	l.initKeys()
	if err := o.Port.SetIsSM(true); err != nil {
		return l.lost("announce the subnet manager on", err)
	}
	if err := l.administer(facts); err != nil {
		return err
	}
	l.startKeys(facts)
	if o.Fence == nil {
		l.fence.closed = false
		l.step(&sm.Mandate{Held: true})
	}
	return s.loop(ctx, intents)
}

// ErrUnlinked says that the port of a Standby has no link: the read state is of no use.
var ErrUnlinked = errors.New("the own port has no link")

// ErrDiverged says that a Standby found something that is to be saved, and facts do not say. The
// master will say it, or a later reading will not find it.
var ErrDiverged = errors.New("it is not as the facts of the leader say")

// breathe rests between packets of a standby. Its error ends the run.
func (l *loop) breathe(timer *time.Timer) error {
	whole := l.core.Overlooks()
	if l.complete.Store(whole); whole && l.read.IsZero() {
		l.read = time.Now()
	}
	switch {
	case l.core.Unlinked():
		return ErrUnlinked
	case l.diverged:
		return ErrDiverged
	}
	timer.Reset(standbyPause)
	select {
	case <-timer.C:
	case <-l.told:
		l.leave()
	}
	return nil
}
