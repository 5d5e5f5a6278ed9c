package sm_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// meter sums up what a core costs: its own work, and that of routing jobs. The
// simulator's work and the harness's are not in it.
type meter struct {
	on          bool
	bytes       bool // count bytes, too, which stops the world twice a step
	steps       int
	core, route time.Duration
	alloc       uint64 // bytes that steps allocated
}

// measure runs f for a core or a routing job.
func (m *meter) measure(took *time.Duration, alloc *uint64, f func()) {
	if !m.on {
		f()
		return
	}
	var before, after runtime.MemStats
	if m.bytes {
		runtime.ReadMemStats(&before)
	}
	began := time.Now()
	f()
	*took += time.Since(began)
	if m.bytes {
		runtime.ReadMemStats(&after)
		*alloc += after.TotalAlloc - before.TotalAlloc
	}
}

// running is a three-level fat tree of 36-port switches that is settled, its
// hosts dealt over 32 partitions.
type running struct {
	*env
	all    []endPort
	tenant []int // by host
	rev    int64
	top    *netlist.Node
}

const dealtOver = 32

// run brings such a fabric up.
func run(t testing.TB, size int) *running {
	t.Helper()
	l, err := netlist.FatTree3(netlist.Shape{Hosts: size, Radix: 36})
	l = list(t, l, err)
	r := &running{env: newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1, Enforcement: sm.Accepted}, 1), all: hosts(l)}
	r.onStep = func() { r.steps, r.events = 0, r.events[:0] } // as many as it takes
	for i := range r.all {
		r.tenant = append(r.tenant, i*dealtOver/len(r.all))
	}
	for i := range l.Nodes {
		if n := &l.Nodes[i]; n.Type == ib.NodeSwitch && !slices.ContainsFunc(n.Ports, func(p netlist.Port) bool {
			return p.Peer != "" && l.Find(p.Peer).Type != ib.NodeSwitch
		}) {
			r.top = n
		}
	}
	r.start()
	r.want(r.intent())
	r.mustSettle(10 * time.Minute)
	r.rest()
	return r
}

// intent grants each host its partition.
func (r *running) intent() sm.Intent {
	r.rev++
	in := sm.Intent{Revision: r.rev, Grants: make([]sm.Grant, len(r.all))}
	for i := range r.all {
		in.Grants[i] = r.all[i].grant(ib.PKey(0x9000 + r.tenant[i]))
	}
	return in
}

// rest lets the background work be done.
func (r *running) rest() {
	r.env.run(30 * time.Second)
	r.mustSettle(time.Minute)
}

func (r *running) sent() (n int) {
	for _, sent := range r.smps {
		n += sent
	}
	return n
}

// move moves a host to another tenant.
func (r *running) move(turn int) {
	h := 1 + turn%3
	r.tenant[h] = (r.tenant[h] + 1) % dealtOver
	r.step(&sm.IntentSet{Intent: r.intent()})
}

// moveAlone does the same and sends the core only that change.
func (r *running) moveAlone(turn int) {
	h := 1 + turn%3
	before := r.all[h].grant(ib.PKey(0x9000 + r.tenant[h]))
	r.tenant[h] = (r.tenant[h] + 1) % dealtOver
	r.rev++
	r.step(&sm.IntentChanged{
		Revision: r.rev, Withdraw: []sm.Grant{before},
		Grant: []sm.Grant{r.all[h].grant(ib.PKey(0x9000 + r.tenant[h]))},
	})
}

// cable pulls a cable of a switch in the topmost tier, or puts it back.
func (r *running) cable(turn int, up bool) {
	num := ib.PortNum(1 + turn%4)
	p := r.top.Ports[num]
	var err error
	if up {
		err = r.fab.Relink(r.top.Name, num, p.Peer, p.PeerPort)
	} else {
		err = r.fab.Unlink(r.top.Name, num)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.arrive(r.st.Take(nil))
}

// rounds are changes of one thing; each leaves the fabric as it was, but for the
// move.
var rounds = []struct {
	name   string
	routes bool // forwarding changes
	steps  []func(r *running, turn int)
}{
	{"tenant move", false, []func(*running, int){(*running).moveAlone}},
	{"tenant move in a whole intent", false, []func(*running, int){(*running).move}},
	{"host cable pulled and put back", false, []func(*running, int){
		func(r *running, turn int) { r.pull(r.hostOf(turn)) },
		func(r *running, turn int) { r.plug(r.hostOf(turn)) },
	}},
	{"host rebooted", false, []func(*running, int){
		func(r *running, turn int) { r.pull(r.hostOf(turn)); r.plug(r.hostOf(turn)) },
	}},
	{"switch cable pulled and put back", true, []func(*running, int){
		func(r *running, turn int) { r.cable(turn, false) },
		func(r *running, turn int) { r.cable(turn, true) },
	}},
}

// hostOf returns the host of a turn, so that none flaps.
func (r *running) hostOf(turn int) *endPort { return &r.all[len(r.all)*3/4+turn%7] }

// round makes a round of changes, each settled before the next, and measures what
// that costs the core.
func (r *running) round(turn int, steps []func(*running, int)) {
	for _, change := range steps {
		r.meter.on = true
		change(r, turn)
		r.env.run(time.Millisecond)
		r.mustSettle(time.Minute)
		r.meter.on = false
		r.rest()
	}
}

// BenchmarkChange makes changes of one thing on running fabrics. It measures their cost for the core and, apart from that,
// for routing.
func BenchmarkChange(b *testing.B) {
	for _, size := range []int{1944, 5184, 10368} {
		b.Run(fmt.Sprint(size, " hosts"), func(b *testing.B) {
			var r *running
			for _, c := range rounds {
				b.Run(c.name, func(b *testing.B) {
					if r == nil {
						r = run(b, size)
					}
					r.t = b
					r.round(0, c.steps)
					r.meter = meter{bytes: true}
					sent := r.sent()
					n := 0
					for b.Loop() {
						n++
						r.round(n, c.steps)
					}
					each := float64(b.N)
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(float64(r.meter.core.Microseconds())/each, "core-us/op")
					b.ReportMetric(float64(r.meter.route.Microseconds())/each, "route-us/op")
					b.ReportMetric(float64(r.meter.alloc)/each, "core-B/op")
					b.ReportMetric(float64(r.meter.steps)/each, "steps/op")
					b.ReportMetric(float64(r.sent()-sent)/each, "SMPs/op")
				})
			}
		})
	}
}
