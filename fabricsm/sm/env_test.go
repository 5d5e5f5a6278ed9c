package sm_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// answerTime is how long an answer takes, and timeout how long env waits.
const (
	answerTime = 10 * time.Microsecond
	timeout    = 200 * time.Millisecond
	maxSteps   = 200_000
	stepsEach  = 100 // for each node, where these are more
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// chaos says what may happen to packets between the core and the fabric.
type chaos struct {
	lose, twice, delay, garble float64 // shares, 0 to 1
}

// env runs a core against a simulated fabric in virtual time. It does what
// package driver does, in one goroutine, one input after the other.
type env struct {
	t    testing.TB
	list *netlist.Netlist
	fab  *sim.Fabric
	st   *sim.Station
	cfg  sm.Config
	core *sm.Core
	rng  *rand.Rand
	bad  chaos

	now       time.Time
	facts     []sm.Fact
	keys      map[ib.GUID]keys.Record // saved
	inbox     []arrival               // by time, then order
	seq       int
	out       map[sm.RequestID]time.Time
	order     []sm.RequestID
	wake      time.Time
	job       *sm.RouteJob
	intent    sm.Intent
	view      *sm.View
	events    []sm.Event
	taken     int // events taken before those
	smps      map[string]int
	steps     int
	resigned  bool // the core said so
	idle      int  // turns since the last step
	onStep    func()
	mangle    func(*transport.Packet)               // changes whatever arrives
	slow      func(*transport.Packet) time.Duration // how much longer an answer takes
	changed   change                                // on devices since the last judgement
	rogues    []*rogue
	meddle    func(set bool, m *mad.MAD) // changes answers on their way
	asked     map[ib.TID]bool            // by transaction: it was a Set
	logSend   func(*sm.Request)
	logAnswer func(*sm.Response)
	hostile   map[string]liar // by node name: answers in place of the node
	onArrival func(*sm.Received)
	meter     meter
}

// change says which tables of devices may have changed.
type change struct{ lids, keys bool }

// changes records the changes of a request on a device.
func (e *env) changes(m *mad.MAD) {
	if m.Method() == mad.MethodSet {
		e.changed.lids = e.changed.lids || m.Attr() == mad.AttrPortInfo
		e.changed.keys = e.changed.keys || m.Attr() == mad.AttrPKeyTable
	}
}

type arrival struct {
	at  time.Time
	seq int
	p   *transport.Packet // as it is some hundred bytes, which sorting would move
}

func newEnv(t testing.TB, list *netlist.Netlist, o sim.Options, cfg sm.Config, seed uint64) *env {
	t.Helper()
	e := &env{
		t: t, list: list, fab: sim.NewWith(list, o), cfg: cfg, now: epoch,
		rng: rand.New(rand.NewPCG(seed, 1)), smps: make(map[string]int), asked: make(map[ib.TID]bool), keys: make(map[ib.GUID]keys.Record),
	}
	var err error
	if e.st, err = e.fab.Station("sm", true); err != nil {
		t.Fatal(err)
	}
	e.cfg.PortGUID = e.st.GUID()
	return e
}

// start begins, or begins again after a crash, with what was saved.
func (e *env) start() {
	e.core = sm.New(e.cfg)
	e.out = make(map[sm.RequestID]time.Time)
	e.order, e.inbox, e.wake, e.job, e.view = nil, nil, time.Time{}, nil, nil
	e.st.SetIsSM(true)
	e.step(&sm.Started{Facts: slices.Clone(e.facts)})
}

func (e *env) want(in sm.Intent) {
	e.intent = in
	e.step(&sm.IntentSet{Intent: in})
}

// wantChanged wants the same as want, and says only what differs from before.
func (e *env) wantChanged(in sm.Intent) {
	change := &sm.IntentChanged{Revision: in.Revision}
	for _, g := range in.Grants {
		if !slices.Contains(e.intent.Grants, g) {
			change.Grant = append(change.Grant, g)
		}
	}
	for _, g := range e.intent.Grants {
		if !slices.Contains(in.Grants, g) {
			change.Withdraw = append(change.Withdraw, g)
		}
	}
	e.intent = in
	e.step(change)
}

// step advances the core and does what it wants.
func (e *env) step(in sm.Input) {
	e.idle = 0
	if e.steps++; e.steps > max(maxSteps, stepsEach*len(e.list.Nodes)) {
		e.t.Fatalf("no end after %d steps, %v of virtual time: input %T, %d in the inbox, %d out, wake %v, SMPs %v, problems %q",
			e.steps, e.now.Sub(epoch), in, len(e.inbox), len(e.out), e.wake.Sub(e.now), e.smps, e.problems())
	}
	var out sm.Output
	e.meter.measure(&e.meter.core, &e.meter.alloc, func() { out = e.core.Step(e.now, in) })
	if e.meter.on {
		e.meter.steps++
	}
	e.facts = append(e.facts, out.Save...)
	for _, f := range out.Save {
		if f.Key != nil {
			e.keys[f.GUID] = *f.Key
		}
	}
	var packets []transport.Packet
	for i := range out.Answer {
		a := &out.Answer[i]
		if e.logAnswer != nil {
			e.logAnswer(a)
		}
		packets = append(packets, transport.Packet{MAD: a.MAD, LID: a.LID, QP: a.QP})
	}
	for i := range out.Send {
		r := &out.Send[i]
		if e.logSend != nil {
			e.logSend(r)
		}
		e.smps[r.MAD.Method().String()+" "+r.MAD.Attr().String()]++
		e.asked[r.MAD.TID()] = r.MAD.Method() == mad.MethodSet
		e.out[r.ID] = e.now.Add(timeout)
		e.order = append(e.order, r.ID)
		if m, ok := e.lie(r); ok {
			e.post(transport.Packet{MAD: m, LID: ib.PermissiveLID})
			continue
		}
		if e.rng.Float64() >= e.bad.lose {
			packets = append(packets, transport.Packet{MAD: r.MAD, LID: r.LID})
			e.changes(&r.MAD)
		}
	}
	if out.Job != nil {
		if e.job != nil {
			e.t.Fatal("a second routing job while one is out")
		}
		e.job = out.Job
	}
	e.events = append(e.events, out.Events...)
	if out.View != nil {
		if out.View.Settled && !e.core.ShowsAllKeys(out.View) {
			e.t.Fatal("a view of a settled fabric does not show the P_Key tables that the core knows")
		}
		e.view = out.View
	}
	e.wake, e.resigned = out.Wake, out.Resigned
	for _, p := range packets {
		e.arrive(e.st.Exchange([]transport.Packet{p}, nil))
	}
	for _, r := range e.rogues {
		r.answer(e.t)
		e.arrive(e.st.Take(nil))
	}
	if e.onStep != nil {
		e.onStep()
	}
}

// arrive puts what came back into the inbox, as chaos has it.
func (e *env) arrive(packets []transport.Packet) {
	for _, p := range packets {
		if e.rng.Float64() < e.bad.lose {
			continue
		}
		if e.meddle != nil && p.MAD.Method() == mad.MethodGetResp {
			e.meddle(e.asked[ib.TID(uint32(p.MAD.TID()))], &p.MAD)
		}
		if e.mangle != nil {
			e.mangle(&p)
		}
		if e.rng.Float64() < e.bad.garble {
			p.MAD[e.rng.IntN(mad.Size)] ^= byte(1 + e.rng.IntN(255))
		}
		e.post(p)
		if e.rng.Float64() < e.bad.twice {
			e.post(p)
		}
	}
}

func (e *env) post(p transport.Packet) {
	at := e.now.Add(answerTime)
	if e.slow != nil {
		at = at.Add(e.slow(&p))
	}
	if e.rng.Float64() < e.bad.delay {
		at = at.Add(time.Duration(e.rng.Int64N(int64(2 * timeout))))
	}
	e.seq++
	a := arrival{at: at, seq: e.seq, p: &p}
	i, _ := slices.BinarySearchFunc(e.inbox, a, func(x, y arrival) int {
		return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.seq, y.seq))
	})
	e.inbox = slices.Insert(e.inbox, i, a)
}

// next lets the next thing happen, if it happens before until.
func (e *env) next(until time.Time) bool {
	if e.job != nil {
		job := e.job
		e.job = nil
		var tables *sm.TablesReady
		e.meter.measure(&e.meter.route, new(uint64), func() { tables = job.Run() })
		e.step(tables)
		return true
	}
	at := until
	what := ""
	earlier := func(t time.Time, name string) {
		if !t.IsZero() && t.Before(at) {
			at, what = t, name
		}
	}
	if len(e.inbox) > 0 {
		earlier(e.inbox[0].at, "arrival")
	}
	for len(e.order) > 0 {
		due, ok := e.out[e.order[0]]
		if ok {
			earlier(due, "timeout")
			break
		}
		e.order = e.order[1:]
	}
	earlier(e.wake, "wake")
	if d, ok := e.fab.NextEvent(); ok {
		earlier(epoch.Add(d), "fabric")
	}
	e.idle++
	if e.idle > 100000 {
		d, ok := e.fab.NextEvent()
		e.t.Fatalf("spin: what %q at %v now %v fab now %v next %v %v", what, at.Sub(epoch), e.now.Sub(epoch), e.fab.Now(), d, ok)
	}
	e.advance(at)
	switch what {
	case "arrival":
		p := e.inbox[0].p
		e.inbox = e.inbox[1:]
		e.deliver(p)
	case "timeout":
		id := e.order[0]
		delete(e.out, id)
		e.step(&sm.Reply{ID: id, Outcome: sm.TimedOut})
	case "wake":
		e.wake = time.Time{}
		e.step(&sm.Woken{})
	case "":
		return false
	}
	return true
}

func (e *env) advance(at time.Time) {
	if at.Before(e.now) {
		at = e.now
	}
	e.now = at
	e.fab.Advance(max(0, at.Sub(epoch)-e.fab.Now()))
	e.arrive(e.st.Take(nil))
}

func (e *env) deliver(p *transport.Packet) {
	id := sm.RequestID(uint32(p.MAD.TID()))
	if p.Undelivered || p.MAD.IsSMP() && p.MAD.Method() == mad.MethodGetResp {
		if _, ok := e.out[id]; !ok {
			return
		}
		delete(e.out, id)
		o := sm.Answered
		if p.Undelivered {
			o = sm.Undelivered
		}
		e.step(&sm.Reply{ID: id, Outcome: o, MAD: p.MAD})
		return
	}
	in := &sm.Received{MAD: p.MAD, LID: p.LID, QP: p.QP}
	if e.onArrival != nil {
		e.onArrival(in)
	}
	e.step(in)
}

// run lets d of virtual time pass.
func (e *env) run(d time.Duration) {
	until := e.now.Add(d)
	for e.next(until) {
	}
}

// settle runs until the fabric is settled and nothing is on the way, at most d
// of virtual time.
func (e *env) settle(d time.Duration) bool {
	until := e.now.Add(d)
	for {
		if e.view != nil && e.view.Settled && len(e.inbox) == 0 && len(e.out) == 0 {
			return true
		}
		if !e.next(until) {
			return false
		}
	}
}

func (e *env) mustSettle(d time.Duration) {
	e.t.Helper()
	if !e.settle(d) {
		e.t.Fatalf("not settled after %v: %d requests out, SMPs %v, problems %q", d, len(e.out), e.smps, e.problems())
	}
}

func (e *env) problems() []string {
	if e.view == nil {
		return nil
	}
	return e.view.Problems
}

// takeEvents returns the events since the last call.
func (e *env) takeEvents() []sm.Event {
	out := e.events
	e.events = nil
	e.taken += len(out)
	return out
}

func (e *env) sets() (n int) {
	for _, name := range []string{"SwitchInfo", "PortInfo", "P_KeyTable", "SLtoVLMappingTable", "LinearForwardingTable", "MulticastForwardingTable", "VLArbitration"} {
		n += e.smps["Set "+name]
	}
	return n
}
