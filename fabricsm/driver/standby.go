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
	p     *poller // nil: the transport cannot be polled
	began bool
	facts []sm.Fact
}

// standbyPause is the rest of a Standby after it moved packets. With the window of the core it
// bounds what a standby asks to some thousand requests a second.
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

// Run reads the fabric until ctx ends (nil), or the transport fails. It may be called again.
func (s *Standby) Run(ctx context.Context) error {
	l := s.l
	if !s.began {
		s.began = true
		l.now = time.Now()
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
	return s.loop(ctx, nil)
}

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

// Lead goes on as Run of this package does, with what was read. Run of the Standby must have
// returned. Facts are those of the store, opened, and those that the Standby was made with
// but for what hosts registered: the caller compares them, see sm.SameGround. Port and Core
// of the options do not count.
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
	l.initCounters()
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

// breathe rests between packets of a standby.
func (l *loop) breathe(timer *time.Timer) {
	timer.Reset(standbyPause)
	l.complete.Store(l.core.Overlooks())
	select {
	case <-timer.C:
	case <-l.told:
		l.leave()
	}
}
