package keymgr_test

import (
	"cmp"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/transport"
)

const (
	answerTime = 10 * time.Microsecond
	timeout    = 200 * time.Millisecond
	maxSteps   = 4_000_000
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// chaos says what may happen to GMPs between the manager and the fabric.
type chaos struct{ lose, twice, delay float64 }

type owner uint8

const (
	ofCore owner = iota
	ofKeys
)

type arrival struct {
	at  time.Time
	seq int
	p   transport.Packet
}

// asked names a request that is out.
type asked struct {
	who owner
	id  sm.RequestID
}

type pending struct {
	asked
	due time.Time
}

// env runs a core and a key manager against a simulated fabric in virtual time, as
// package driver does.
type env struct {
	t    testing.TB
	list *netlist.Netlist
	fab  *sim.Fabric
	st   *sim.Station
	cfg  sm.Config
	core *sm.Core
	mgr  *keymgr.Manager
	rng  *rand.Rand
	bad  chaos

	now     time.Time
	facts   []sm.Fact
	saved   map[name]keys.Record
	inbox   []arrival
	seq     int
	out     map[asked]time.Time
	order   []pending
	wakes   [2]time.Time
	job     *sm.RouteJob
	view    *sm.View
	status  *keymgr.Status
	events  []sm.Event
	sent    map[mad.Method]int // GMPs
	steps   int                // of the manager
	total   int
	measure bool // count what the manager allocates
	allocs  uint64
	unsafe  string // how a key was shown that must not be
}

type name struct {
	kind keys.Kind
	guid ib.GUID
}

func newEnv(t testing.TB, l *netlist.Netlist, device sim.Device, seed uint64) *env {
	t.Helper()
	e := &env{
		t: t, list: l, fab: sim.NewWith(l, sim.Options{LoseSilently: true, Device: device}), now: epoch,
		rng: rand.New(rand.NewPCG(seed, 1)), saved: make(map[name]keys.Record), sent: make(map[mad.Method]int),
	}
	var err error
	if e.st, err = e.fab.Station("sm", true); err != nil {
		t.Fatal(err)
	}
	m, err := keys.DrawMaster(rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	on := sm.ClassKeyConfig{Enable: sm.KeyEnabled, Lease: 60}
	e.cfg = sm.Config{
		PortGUID: e.st.GUID(), AuditPeriod: -1, MKey: sm.MKeyConfig{Places: sm.PlacesSeen},
		ClassKeys: sm.ClassKeysConfig{Source: keys.Derived{Master: m}, CC: on, VS: on, N2N: on},
	}
	return e
}

// start begins, or begins again after a crash, with what was saved.
func (e *env) start() {
	e.t.Helper()
	if err := e.cfg.Check(); err != nil {
		e.t.Fatal(err)
	}
	e.core = sm.New(e.cfg)
	e.mgr = keymgr.New(e.cfg.ClassKeys, e.core)
	e.out, e.order, e.inbox, e.job, e.view, e.status = make(map[asked]time.Time), nil, nil, nil, nil, nil
	e.wakes = [2]time.Time{}
	e.st.SetIsSM(true)
	e.stepKeys(&keymgr.Started{Facts: slices.Clone(e.facts)})
	e.step(&sm.Started{Facts: slices.Clone(e.facts)})
}

func (e *env) count() {
	if e.total++; e.total > maxSteps {
		e.t.Fatalf("no end after %d steps, %v of virtual time; status %+v", e.total, e.now.Sub(epoch), e.status)
	}
}

func (e *env) save(facts []sm.Fact) {
	e.facts = append(e.facts, facts...)
	for _, f := range facts {
		if f.Key != nil {
			e.saved[name{f.Key.Kind, f.Key.GUID}] = *f.Key
		}
	}
}

func (e *env) step(in sm.Input) {
	e.count()
	out := e.core.Step(e.now, in)
	e.save(out.Save)
	var packets []transport.Packet
	for _, a := range out.Answer {
		packets = append(packets, transport.Packet{MAD: a.MAD, LID: a.LID, QP: a.QP})
	}
	for _, r := range out.Send {
		e.await(ofCore, r.ID)
		packets = append(packets, transport.Packet{MAD: r.MAD, LID: r.LID})
	}
	if out.Job != nil {
		e.job = out.Job
	}
	e.events = append(e.events, out.Events...)
	e.wakes[ofCore] = out.Wake
	e.exchange(packets, false)
	if out.View != nil {
		e.view = out.View
		e.stepKeys(&keymgr.Seen{View: out.View})
	}
}

func (e *env) stepKeys(in keymgr.Input) {
	e.count()
	e.steps++
	var before, after runtime.MemStats
	if e.measure {
		runtime.ReadMemStats(&before)
	}
	out := e.mgr.Step(e.now, in)
	if e.measure {
		runtime.ReadMemStats(&after)
		e.allocs += after.Mallocs - before.Mallocs
	}
	e.save(out.Save)
	var packets []transport.Packet
	for _, a := range out.Answer {
		packets = append(packets, transport.Packet{MAD: a.MAD, LID: a.LID, QP: a.QP})
	}
	for _, r := range out.Send {
		e.sent[r.MAD.Method()]++
		e.await(ofKeys, r.ID)
		e.checkShown(&r)
		if e.rng.Float64() >= e.bad.lose {
			packets = append(packets, transport.Packet{MAD: r.MAD, LID: r.LID, QP: 1})
		}
	}
	e.events = append(e.events, out.Events...)
	if out.Status != nil {
		e.status = out.Status
	}
	e.wakes[ofKeys] = out.Wake
	e.exchange(packets, true)
}

// checkShown finds a key on its way to a device that is not its own, or that no
// record has.
func (e *env) checkShown(r *sm.Request) {
	k := keys.New(r.MAD.MKey().Reveal())
	if k.IsZero() {
		return
	}
	for n, rec := range e.saved {
		if classes[n.kind] == r.MAD.Class() && (rec.Current.Key == k || rec.Pending.Key == k || rec.Previous.Key == k) {
			if who := e.holder(r.LID); who != n.guid && who != 0 {
				e.unsafe = "a key was shown to another device"
			}
			return
		}
	}
	e.unsafe = "a key was sent before its record was saved"
}

// holder gives who has a LID: nobody, if it was just restarted.
func (e *env) holder(lid ib.LID) ib.GUID {
	for _, p := range endPorts(e.list) {
		if e.fab.PortInfo(p.node, p.num).LID == lid {
			return p.guid
		}
	}
	return 0
}

func (e *env) await(who owner, id sm.RequestID) {
	p := pending{asked{who, id}, e.now.Add(timeout)}
	e.out[p.asked] = p.due
	e.order = append(e.order, p)
}

func (e *env) exchange(packets []transport.Packet, gmp bool) {
	for _, p := range packets {
		e.arrive(e.st.Exchange([]transport.Packet{p}, nil), gmp)
	}
}

func (e *env) arrive(packets []transport.Packet, gmp bool) {
	for _, p := range packets {
		if gmp && e.rng.Float64() < e.bad.lose {
			continue
		}
		e.post(p, gmp)
		if gmp && e.rng.Float64() < e.bad.twice {
			e.post(p, gmp)
		}
	}
}

func (e *env) post(p transport.Packet, gmp bool) {
	at := e.now.Add(answerTime)
	if gmp && e.rng.Float64() < e.bad.delay {
		at = at.Add(time.Duration(e.rng.Int64N(int64(2 * timeout))))
	}
	e.seq++
	a := arrival{at, e.seq, p}
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
		e.step(job.Run())
		return true
	}
	at, what := until, ""
	earlier := func(t time.Time, name string) {
		if !t.IsZero() && t.Before(at) {
			at, what = t, name
		}
	}
	if len(e.inbox) > 0 {
		earlier(e.inbox[0].at, "arrival")
	}
	for len(e.order) > 0 {
		if due, ok := e.out[e.order[0].asked]; ok && due.Equal(e.order[0].due) {
			earlier(due, "timeout")
			break
		}
		e.order = e.order[1:]
	}
	earlier(e.wakes[ofCore], "core")
	earlier(e.wakes[ofKeys], "keys")
	if d, ok := e.fab.NextEvent(); ok {
		earlier(epoch.Add(d), "fabric")
	}
	e.count()
	if at.After(e.now) {
		e.now = at
	}
	e.fab.Advance(max(0, e.now.Sub(epoch)-e.fab.Now()))
	e.arrive(e.st.Take(nil), true)
	switch what {
	case "arrival":
		p := e.inbox[0].p
		e.inbox = e.inbox[1:]
		e.deliver(&p)
	case "timeout":
		out := e.order[0].asked
		delete(e.out, out)
		e.replied(out.who, sm.Reply{ID: out.id, Outcome: sm.TimedOut})
	case "core":
		e.wakes[ofCore] = time.Time{}
		e.step(&sm.Woken{})
	case "keys":
		e.wakes[ofKeys] = time.Time{}
		e.stepKeys(&keymgr.Woken{})
	case "":
		return false
	}
	return true
}

func (e *env) replied(who owner, r sm.Reply) {
	if who == ofKeys {
		e.stepKeys((*keymgr.Reply)(&r))
	} else {
		e.step(&r)
	}
}

func (e *env) deliver(p *transport.Packet) {
	out := asked{ofCore, sm.RequestID(uint32(p.MAD.TID()))}
	if !p.MAD.IsSMP() {
		out.who = ofKeys
	}
	if p.Undelivered || p.MAD.Method() == mad.MethodGetResp {
		if _, ok := e.out[out]; !ok {
			return
		}
		delete(e.out, out)
		r := sm.Reply{ID: out.id, Outcome: sm.Answered, MAD: p.MAD}
		if p.Undelivered {
			r.Outcome = sm.Undelivered
		}
		e.replied(out.who, r)
		return
	}
	in := sm.Received{MAD: p.MAD, LID: p.LID, QP: p.QP}
	if out.who == ofKeys {
		e.stepKeys((*keymgr.Received)(&in))
	} else {
		e.step(&in)
	}
}

func (e *env) run(d time.Duration) {
	for until := e.now.Add(d); e.next(until); {
	}
}

// quiet reports that the fabric is settled, keys included.
func (e *env) quiet() bool {
	return e.view != nil && e.view.Settled && e.status != nil && !e.status.Busy && len(e.out) == 0 && len(e.inbox) == 0
}

func (e *env) settle(d time.Duration) {
	e.t.Helper()
	until := e.now.Add(d)
	for !e.quiet() {
		if !e.next(until) {
			e.t.Fatalf("not settled after %v: status %+v, GMPs %v, events %v", d, e.status, e.sent, e.events)
		}
	}
}

func fabrics(t *testing.T, f func(t *testing.T, l *netlist.Netlist)) {
	for what, shape := range map[string]func() (*netlist.Netlist, error){
		"one switch": func() (*netlist.Netlist, error) { return netlist.Single(netlist.Shape{Hosts: 3, Radix: 4}) },
		"two levels": func() (*netlist.Netlist, error) { return netlist.FatTree2(netlist.Shape{Hosts: 12, Radix: 8}) },
		"chain":      func() (*netlist.Netlist, error) { return netlist.Chain(netlist.Shape{Hosts: 6, Radix: 36}) },
		"dual port":  func() (*netlist.Netlist, error) { return netlist.DualPort(netlist.Shape{Hosts: 5, Radix: 8}) },
	} {
		t.Run(what, func(t *testing.T) {
			l, err := shape()
			f(t, must(t, l, err))
		})
	}
}

func must(t testing.TB, l *netlist.Netlist, err error) *netlist.Netlist {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func single(t testing.TB, hosts, radix int) *netlist.Netlist {
	t.Helper()
	l, err := netlist.Single(netlist.Shape{Hosts: hosts, Radix: radix})
	return must(t, l, err)
}

func (e *env) takeEvents() []sm.Event {
	out := e.events
	e.events = nil
	return out
}

func eventsOf[E sm.Event](events []sm.Event) (out []E) {
	for _, ev := range events {
		if x, ok := ev.(E); ok {
			out = append(out, x)
		}
	}
	return out
}
