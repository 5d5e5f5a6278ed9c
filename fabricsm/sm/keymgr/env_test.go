package keymgr_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// chaos has the faults of GMPs between the manager and the fabric.
type chaos struct{ lose, twice, delay float64 }

// late is how much later than others a GMP may arrive.
const late = 400 * time.Millisecond

type name struct {
	kind keys.Kind
	guid ib.GUID
}

// env is a stage that watches its key manager: the records that it saves, the MADs that it sends, and their cost.
type env struct {
	*testbed.Stage
	t         testing.TB
	rng       *rand.Rand
	bad       chaos
	loseTraps bool // unsolicited GMPs are lost
	standby   bool // another manager is master

	saved   map[name]keys.Record
	sent    map[mad.Method]int // GMPs
	out     map[sm.RequestID]mad.Class
	most    map[mad.Class]int // that were out at once
	steps   int               // of the manager
	mark    int               // position in the events, see told
	measure bool
	allocs  uint64
	unsafe  string // how a key was shown that must not be
}

func newEnv(t testing.TB, l *netlist.Netlist, device sim.Device, seed uint64) *env {
	t.Helper()
	e := &env{
		t: t, rng: rand.New(rand.NewPCG(seed, 2)), saved: make(map[name]keys.Record), sent: make(map[mad.Method]int),
		out: make(map[sm.RequestID]mad.Class), most: make(map[mad.Class]int),
	}
	m, err := keys.DrawMaster(rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	on := sm.ClassKeyConfig{Enable: sm.KeyEnabled, Lease: 60}
	e.Stage, err = testbed.New(testbed.Options{
		Netlist: l, Manager: "sm", Fabric: sim.Options{LoseSilently: true, Device: device}, Seed: seed,
		SM: sm.Config{
			AuditPeriod: -1, MKey: mkeys.Config{Places: keyplace.Seen},
			ClassKeys: sm.ClassKeysConfig{Source: keys.Derived{Master: m}, CC: on, VS: on, N2N: on},
		},
		Keys: func(cfg sm.ClassKeysConfig, f keymgr.Fabric) testbed.KeyManager {
			clear(e.out)
			return &watched{e, keymgr.New(cfg, f)}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.OnSend = func(r *sm.Request) bool { return !r.MAD.IsSMP() && e.rng.Float64() < e.bad.lose }
	e.OnAnswer = func(p *transport.Packet) bool {
		return !p.MAD.IsSMP() && (e.loseTraps && p.MAD.Method() == mad.MethodTrap || e.rng.Float64() < e.bad.lose)
	}
	e.Delays = func(p *transport.Packet) []time.Duration {
		if p.MAD.IsSMP() || e.bad == (chaos{}) {
			return []time.Duration{0}
		}
		delays := []time.Duration{e.delay()}
		if e.rng.Float64() < e.bad.twice {
			delays = append(delays, e.delay())
		}
		return delays
	}
	return e
}

func (e *env) delay() time.Duration {
	if e.rng.Float64() < e.bad.delay {
		return time.Duration(e.rng.Int64N(int64(late)))
	}
	return 0
}

// watched is a manager under observation.
type watched struct {
	e *env
	m *keymgr.Manager
}

// Step implements testbed.KeyManager.
func (w *watched) Step(now time.Time, in keymgr.Input) keymgr.Output {
	e := w.e
	e.steps++
	switch in := in.(type) {
	case *keymgr.Seen:
		if e.standby {
			v := *in.View
			v.State = ib.SMStandby
			in.View = &v
		}
	case *keymgr.Reply:
		delete(e.out, in.ID)
	}
	var before, after runtime.MemStats
	if e.measure {
		runtime.ReadMemStats(&before)
	}
	out := w.m.Step(now, in)
	if e.measure {
		runtime.ReadMemStats(&after)
		e.allocs += after.Mallocs - before.Mallocs
	}
	for _, f := range out.Save {
		if f.Key != nil {
			e.saved[name{f.Key.Kind, f.Key.GUID}] = *f.Key
		}
	}
	for i := range out.Send {
		r := &out.Send[i]
		e.sent[r.MAD.Method()]++
		e.out[r.ID] = r.MAD.Class()
		e.checkShown(r)
	}
	count := make(map[mad.Class]int)
	for _, c := range e.out {
		count[c]++
		e.most[c] = max(e.most[c], count[c])
	}
	return out
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

// holder returns the GUID of the port with a LID, 0 if it has none after a restart.
func (e *env) holder(lid ib.LID) ib.GUID {
	for _, p := range endPorts(e.List) {
		if e.Fabric.PortInfo(p.node, p.num).LID == lid {
			return p.guid
		}
	}
	return 0
}

// start begins, or begins again after a crash, with the saved records.
func (e *env) start() {
	e.t.Helper()
	if err := e.SM.Check(); err != nil {
		e.t.Fatal(err)
	}
	e.Start()
}

func (e *env) settle(d time.Duration) {
	e.t.Helper()
	if err := e.Settle(d); err != nil {
		e.t.Fatalf("%v; status %+v, GMPs %v, told %v", err, e.KeyStatus(), e.sent, e.told())
	}
}

// told returns the events since they were last taken.
func (e *env) told() (out []sm.Event) {
	for _, h := range e.Since(e.mark) {
		out = append(out, h.Event)
	}
	return out
}

func (e *env) takeEvents() []sm.Event {
	out := e.told()
	e.mark = e.Mark()
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

// exchange sends GMPs from a node, and returns the answers.
func (e *env) exchange(from string, packets ...transport.Packet) []transport.Packet {
	e.t.Helper()
	st, err := e.Fabric.Station(from, false)
	if err != nil {
		e.t.Fatal(err)
	}
	defer st.Close()
	return st.Exchange(packets, nil)
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
