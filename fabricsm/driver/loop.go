package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/transport"
)

// loop is one run of a core. Everything but receive and jobs happens in the
// goroutine of run.
type loop struct {
	o    Options
	log  *slog.Logger
	core *sm.Core

	full    chan []transport.Packet // received, to be stepped in
	free    chan []transport.Packet // buffers to be filled again
	failure chan error              // the receiver's end
	done    chan struct{}           // run has ended
	tables  chan *sm.TablesReady

	out   timeouts
	keys  *classKeys // nil: none
	fence fence

	besides []*beside // all machines beside the core

	gate   *gate
	sa     *administration // nil: none
	fromSA chan told       // nil without it

	reply sm.Reply
	trap  sm.Received
	did   sm.Output // of the last step; here, since a local one would be allocated for each

	facts   []sm.Fact          // of this round, to be saved before send
	saveAt  time.Time          // when to try again, as the store could not take them; zero: it could
	send    []transport.Packet // of this round
	answers answers            // that go when all of send has
	later   []int              // of take: packets that are stepped in after answers to this manager
	placed  int                // end ports that were seen while found is false
	found   bool               // the fabric was settled once: each new port is logged
	alike   map[alike]int      // nodes with the same problem, by the problem
	wake    time.Time
	again   time.Time // when requests are looked at that may have to be sent again; zero: never
	now     time.Time // of this round: one look at the clock for all that came at once
	ended   bool      // Until said so

	told     <-chan struct{} // closed when the owner wants the end; nil once it began
	leaveBy  time.Time       // when resigning is given up; zero: not begun
	resigned bool
}

func newLoop(o Options) *loop {
	if o.Timeout == 0 {
		o.Timeout = 200 * time.Millisecond
	}
	if o.Core.PortGUID == 0 {
		o.Core.PortGUID = o.Port.GUID()
	}
	if o.Record != nil && o.Core.MKey.Source != nil {
		o.Core.MKey.Source = o.Record.Source(o.Core.MKey.Source)
	}
	l := &loop{
		o: o, log: o.Log, core: sm.New(o.Core),
		full: make(chan []transport.Packet, 2), free: make(chan []transport.Packet, 2),
		failure: make(chan error, 1), done: make(chan struct{}),
		tables: make(chan *sm.TablesReady, 1),
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.gate = newGate(l.front())
	l.out.init(o.Timeout)
	l.initKeys()
	l.initCounters()
	for range cap(l.free) {
		l.free <- make([]transport.Packet, batch)
	}
	return l
}

func (l *loop) load() ([]sm.Fact, error) {
	if l.o.Store == nil {
		return nil, nil
	}
	facts, err := l.o.Store.Load()
	if err != nil {
		return nil, fmt.Errorf("load LIDs and device facts from the store: %w", err)
	}
	if _, err := keys.NewBook(sm.KeyRecords(facts)); err != nil {
		return nil, fmt.Errorf("load keys from the store: %w; restore the store from a backup", err)
	}
	return facts, nil
}

// lost names what failed on the port, and what to do.
func (l *loop) lost(what string, err error) error {
	return fmt.Errorf("%s port %v: %w; check the device or simulator and start again", what, l.o.Port.GUID(), err)
}

// receive hands on what arrives, in two buffers that go round.
func (l *loop) receive() {
	for {
		var buf []transport.Packet
		select {
		case buf = <-l.free:
		case <-l.done:
			return
		}
		n, err := l.o.Port.Receive(buf[:cap(buf)])
		if got := l.sift(time.Now(), buf[:n]); len(got) > 0 {
			select {
			case l.full <- got:
			case <-l.done:
				return
			}
		} else {
			l.free <- buf // there is room: it was taken from there
		}
		if err != nil {
			select {
			case l.failure <- err:
			case <-l.done: // run does not listen any longer
			}
			return
		}
	}
}

// stop ends the receiver and detaches.
func (l *loop) stop() {
	close(l.done)
	if l.o.Asker != nil && l.sa != nil {
		l.o.Asker.at.CompareAndSwap(l.sa, nil)
	}
	if err := l.o.Port.Close(); err != nil {
		l.log.Warn("closing the fabric port", "error", err)
	}
}

// begin starts the core.
func (l *loop) begin(facts []sm.Fact) {
	l.now = time.Now()
	if l.o.Record != nil {
		l.o.Record.Begin(l.now, l.o.Core)
	}
	l.keys.step(&keymgr.Started{Facts: facts})
	l.step(&sm.Started{Facts: facts})
}

// leave begins the end: a master looks after its succession first, unless a lease says who
// succeeds it.
func (l *loop) leave() {
	l.now = time.Now()
	l.told = nil
	if l.o.Fence != nil {
		l.resigned = true
		return
	}
	l.leaveBy = l.now.Add(resignTime)
	l.step(&sm.Resign{})
}

// resignTime bounds how long a master looks after its succession.
const resignTime = 2 * time.Second

func (l *loop) run(ctx context.Context, intents <-chan sm.Intent) error {
	if err := l.flush(); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	l.told = ctx.Done()
	for !l.ended && !l.resigned {
		timer.Reset(time.Until(l.next()))
		select {
		case <-l.told:
			l.leave()
		case buf := <-l.full:
			l.take(buf)
			l.free <- buf
		case t := <-l.tables:
			l.routes(t)
		case in, ok := <-intents:
			l.intent(in, ok, &intents)
		case in, ok := <-l.o.Inputs:
			l.input(in, ok)
		case t := <-l.fromSA:
			l.administered(t)
		case <-l.gate.dropped: // next returns when to report it
		case err := <-l.failure:
			if errors.Is(err, transport.ErrClosed) && ctx.Err() != nil {
				return nil
			}
			return l.lost("receive from", err)
		case <-timer.C:
			l.expire()
		}
		if err := l.flush(); err != nil {
			return err
		}
	}
	return nil
}

// intent steps in the newest of the intents that wait. A closed channel has none.
func (l *loop) intent(in sm.Intent, ok bool, intents *<-chan sm.Intent) {
	if !ok {
		*intents = nil
		return
	}
	l.now = time.Now()
	l.step(&sm.IntentSet{Intent: latest(in, *intents)})
}

// routes steps in the result of a routing job.
func (l *loop) routes(t *sm.TablesReady) {
	l.now = time.Now()
	l.step(t)
}

// administered steps in what came of what hosts registered.
func (l *loop) administered(t told) {
	l.now = time.Now()
	for _, in := range t.tell {
		l.step(in)
	}
	for _, e := range t.events {
		l.tell(e)
	}
}

// input steps in what else came. A closed channel has nothing more.
func (l *loop) input(in sm.Input, ok bool) {
	if !ok {
		l.o.Inputs = nil
		return
	}
	l.now = time.Now()
	l.step(in)
	switch in := in.(type) {
	case *sm.ReleaseKeys:
		l.keys.step(&keymgr.Release{})
	case *sm.ResumeKeys:
		l.keys.step(&keymgr.Resume{})
	case *sm.RetireKey:
		l.keys.step(&keymgr.Retire{GUID: in.GUID})
	default:
	}
}

// latest returns the newest of the intents that wait.
func latest(in sm.Intent, more <-chan sm.Intent) sm.Intent {
	for {
		select {
		case next, ok := <-more:
			if !ok {
				return in
			}
			in = next
		default:
			return in
		}
	}
}

// next is when something is due at the latest.
func (l *loop) next() time.Time {
	at := l.now.Add(time.Hour)
	if due, ok := l.out.next(); ok && due.Before(at) {
		at = due
	}
	for _, t := range [...]time.Time{l.wake, l.again, l.leaveBy, l.saveAt} {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	for _, b := range l.besides {
		at = b.next(at)
	}
	return l.nextLook(l.nextDropped(at))
}

// expire steps in the requests that were not answered in time, and the wake.
func (l *loop) expire() {
	l.now = time.Now()
	now := l.now
	for {
		id, ok := l.out.expired(now)
		if !ok {
			break
		}
		l.reply.ID, l.reply.Outcome = id, sm.TimedOut
		l.step(&l.reply)
	}
	if !l.wake.IsZero() && !now.Before(l.wake) {
		l.step(&sm.Woken{})
	}
	if !l.leaveBy.IsZero() && !now.Before(l.leaveBy) {
		l.resigned = true
	}
	for _, b := range l.besides {
		b.expire(now)
	}
	l.tellDropped()
}

// step advances the core and gathers what it wants done.
func (l *loop) step(in sm.Input) {
	if l.o.Record != nil {
		l.o.Record.Input(l.now, in)
	}
	out := &l.did
	*out = l.core.Step(l.now, in)
	if l.o.Record != nil {
		l.o.Record.Output(out)
	}
	l.keep(out.Save)
	for i := range out.Answer {
		l.answers.add(&out.Answer[i])
	}
	for i := range out.Send {
		r := &out.Send[i]
		l.send = append(l.send, transport.Packet{MAD: r.MAD, LID: r.LID})
		l.out.begin(r, &l.send[len(l.send)-1].MAD)
	}
	if out.Job != nil {
		job := out.Job
		go func() { l.tables <- job.Run() }() // one at a time: the channel holds its result
	}
	l.wake = out.Wake
	l.resigned = l.resigned || out.Resigned // leave says so, too
	for _, e := range out.Events {
		l.tell(e)
	}
	if out.View != nil {
		l.show(out.View)
	}
}

func (l *loop) tell(e sm.Event) {
	l.logged(e)
	if l.o.OnEvent != nil {
		l.o.OnEvent(e)
	}
}

func (l *loop) show(v *sm.View) {
	for _, b := range l.besides {
		b.shown(v)
	}
	if l.sa != nil {
		l.sa.show(v)
	} else {
		l.gate.sight.Store(sa.SightAlone(v, limiter.DefaultConfig()))
	}
	if l.o.OnView != nil {
		l.o.OnView(v)
	}
	if l.o.Until != nil && l.o.Until(v) {
		l.ended = true
	}
}

// flush makes facts durable, then sends.
func (l *loop) flush() error {
	if saved, err := l.saveFacts(); !saved || err != nil {
		return err
	}
	l.resend(len(l.send))
	for sent := 0; ; {
		if sent = l.guard(sent); sent == len(l.send) {
			if l.send, sent = l.answers.take(l.send[:0]), 0; len(l.send) == 0 {
				break
			}
			continue
		}
		n, err := l.o.Port.Send(l.send[sent:min(len(l.send), sent+most)])
		if err != nil {
			return l.lost("send to", err)
		}
		sent += n
		l.stamp(time.Now())
	}
	return nil
}

// stamp starts the time of all requests that were sent now.
func (l *loop) stamp(now time.Time) {
	l.out.stamp(now)
	for _, b := range l.besides {
		b.out.stamp(now)
	}
}
