// Package driver runs a Subnet Manager core over a transport: it owns the
// clock, the wire, the timeouts and the order "durable before sent".
package driver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/transport"
)

// Store keeps the facts that must survive a restart.
type Store interface {
	// Load returns all facts saved before, in the order they were saved; facts that a later one replaces may be left out.
	Load() ([]sm.Fact, error)
	// Save makes facts durable before it returns. It must not keep the slice. An error
	// that is ErrLater has the driver try again, until when nothing is sent; another one
	// ends it.
	Save([]sm.Fact) error
}

// ErrLater says that a Store cannot take facts now and may be able to later.
var ErrLater = errors.New("try again later")

// Options say what to run and where to report. OnEvent, OnView, OnKeys and Until are called from the driver's loop and must
// not block.
type Options struct {
	Port  transport.Port // closed by Run when it returns
	Core  sm.Config      // PortGUID is taken from Port when zero
	Store Store          // nil: nothing survives
	Log   *slog.Logger   // nil: silent

	// Fence says whether this process may change the fabric, nil: always. Nothing that
	// changes it is sent, saved or granted while it may not.
	Fence Fence

	// Stay has subnet administration answer after the end of ctx, nil: it ends with ctx. It needs Fence.
	Stay *Stay

	// Timeout is how long an answer may take; default 200 ms. Too short: lost
	// time on repetitions that slow devices answer twice. Too long: a silent
	// device is noticed late.
	Timeout time.Duration

	// Inputs are further inputs of the core, passed to it in order: multicast groups, alias GUIDs, marks of operators. A
	// closed or nil channel means that no more comes.
	Inputs <-chan sm.Input

	// Record records all inputs and outputs of the core, nil: they are not recorded. See package record.
	Record Recorder

	// SA answers as subnet administration beside the core, nil: there is none. It belongs to the driver from then on. The
	// port has to be transport.Laned.
	SA *sa.Agent
	// SASettings changes its settings, once they were checked. A closed or nil channel
	// means that no more come.
	SASettings <-chan sa.Settings
	// Asker has it answer questions that come by no port, nil: there are none.
	Asker *Asker

	OnEvent func(sm.Event)
	OnView  func(*sm.View)
	OnKeys  func(*keymgr.Status) // how far the keys of classes are
	// OnSA receives the status of subnet administration once a second. It is called by a goroutine of its own, which it
	// must not block.
	OnSA func(*sa.Status)
	// Until ends Run without an error when it returns true for a view. It is
	// how "bring the fabric up and stop" is said; see UntilSettled.
	Until func(*sm.View) bool
}

// Recorder writes down a run of a core. It must not keep what it is given.
type Recorder interface {
	// Source returns the source of M_Keys that the core is to use in place of another.
	Source(keys.Source) keys.Source
	Begin(now time.Time, cfg sm.Config)
	Input(now time.Time, in sm.Input)
	Output(out *sm.Output)
}

// keys refuses what would lose the keys of devices.
func (o *Options) keys() error {
	switch {
	case o.Core.MKey.Source == nil && !o.Core.ClassKeys.On():
		return nil
	case o.Store == nil:
		return errors.New("run subnet manager: keys are given out and there is no store to keep them: a restart would find every device locked; name a state directory")
	default:
		return nil
	}
}

// UntilSettled is an Options.Until: the fabric is settled under this SM as
// master.
func UntilSettled(v *sm.View) bool { return v.Settled }

// batch is the most packets taken from the wire at once.
const batch = 256

// Run runs a core until ctx ends (nil), Options.Until says so (nil), or the
// store or the transport fails. The latest of intents wins; a closed or nil
// channel means that no more intents come. It closes Options.Port.
func Run(ctx context.Context, o Options, intents <-chan sm.Intent) error {
	if o.Port == nil {
		return errors.New("run subnet manager: no port is given")
	}
	l := newLoop(o)
	defer l.stop()
	if err := errors.Join(o.Core.Check(), o.keys()); err != nil {
		return err
	}
	facts, err := l.load()
	if err != nil {
		return err
	}
	if err := o.Port.SetIsSM(true); err != nil {
		return l.lost("announce the subnet manager on", err)
	}
	if err := l.administer(facts); err != nil {
		return err
	}
	l.begin(facts)
	if port, ok := o.Port.(transport.Poller); ok {
		p := newPoller(port)
		go p.waiter(l.done)
		if err := l.poll(ctx, p, intents); err != nil || !l.stays() {
			return err
		}
		return l.stayPolled(p)
	}
	go l.receive()
	if err := l.run(ctx, intents); err != nil || !l.stays() {
		return err
	}
	return l.stay()
}
