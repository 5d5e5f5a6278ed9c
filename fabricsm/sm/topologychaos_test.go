package sm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// TestRandomCabling swaps and pulls cables, changes GUIDs of hosts, reboots nodes, releases ports and crashes the subnet
// manager at random moments under an enforced topology, while packets are lost, duplicated and late. It judges the devices
// after every step. In the end all is put back and released, and must settle.
func TestRandomCabling(t *testing.T) {
	for seed := *from; seed < *from+uint64(*cablings); seed++ { // each takes as long as several of the other kind
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			defer func() {
				if t.Failed() {
					t.Logf("again: go test ./fabricsm/sm -run 'TestRandomCabling' -sm.from=%d -sm.cablings=1", seed)
				}
			}()
			newCabling(t, seed).run()
		})
	}
}

// raceTime is how long a port may be in use that was moved while answers of its
// former host were on their way.
const raceTime = time.Second

// cabling is one random run.
type cabling struct {
	*env
	rnd     *rand.Rand
	spec    *topospec.Spec
	all     []cable
	lies    map[string]bool            // hosts with another GUID than theirs
	wrongAt map[sim.Endpoint]time.Time // by switch port: when it was last not as declared
	off     map[sim.Endpoint]bool
	misused map[sim.Endpoint]time.Time // by switch port: since when it is Active and leads elsewhere
	keyed   bool
}

func newCabling(t *testing.T, seed uint64) *cabling {
	rnd := rand.New(rand.NewPCG(seed, 3))
	var l *netlist.Netlist
	var err error
	switch seed % 3 {
	case 0:
		l, err = netlist.FatTree2(netlist.Shape{Hosts: 8, Leaves: 2, Spines: 2, Radix: 8})
	case 1:
		l, err = netlist.FatTree2(netlist.Shape{Hosts: 12, Radix: 8})
	default:
		l, err = netlist.DualPort(netlist.Shape{Hosts: 4, Radix: 8})
	}
	l = list(t, l, err)
	cfg := sm.Config{}
	if seed%2 == 0 {
		cfg = keyed(t)
		cfg.MKey.Places = keyplace.Declared
	}
	cfg.AuditPeriod = 5 * time.Second
	cfg.Health.Flapping.Action = health.Ignore
	spec := law(t, l)
	cfg.Topology = sm.TopologyConfig{Spec: spec, Mode: topospec.Enforce}
	e := newEnv(t, l, sim.Options{Seed: seed, LoseSilently: seed%2 == 0}, cfg, seed)
	c := &cabling{
		env: e, rnd: rnd, spec: spec, all: cables(l), lies: make(map[string]bool), keyed: seed%2 == 0,
		wrongAt: make(map[sim.Endpoint]time.Time), off: make(map[sim.Endpoint]bool), misused: make(map[sim.Endpoint]time.Time),
	}
	e.onStep = c.check
	return c
}

func (c *cabling) run() {
	c.start()
	in := sm.Intent{Revision: 1}
	for i, h := range hosts(c.list) {
		in.Grants = append(in.Grants, h.grant(ib.PKey(0x8001+i%2)))
	}
	c.want(in)
	c.mustSettle(time.Minute)
	c.bad = chaos{lose: c.rnd.Float64() * 0.3, twice: 0.1, delay: c.rnd.Float64() * 0.2}
	for range ops {
		c.env.run(time.Duration(c.rnd.Int64N(int64(500 * time.Millisecond))))
		c.op()
	}
	c.putBack()
	c.mustSettle(2 * time.Minute)
	c.checkEnd()
}

func (c *cabling) op() {
	x := c.all[c.rnd.IntN(len(c.all))]
	switch c.rnd.IntN(8) {
	case 0:
		c.hands(c.fab.Bounce(x.node, x.num))
	case 1:
		c.hands(c.fab.Unlink(x.node, x.num))
	case 2, 3:
		y := c.all[c.rnd.IntN(len(c.all))]
		if !c.keyed && (c.trunk(x) || c.trunk(y)) {
			return // without M_Keys a Set can reach the wrong switch while the way to the right one is moved
		}
		c.hands(c.fab.Swap(sim.Endpoint{Node: x.node, Port: x.num}, sim.Endpoint{Node: y.node, Port: y.num}))
	case 4:
		hs := hosts(c.list)
		a, b := hs[c.rnd.IntN(len(hs))].node, hs[c.rnd.IntN(len(hs))].node
		c.lies[a.Name] = a != b
		c.hands(c.fab.SetGUIDs(a.Name, b.GUID, b.GUID))
		if c.rnd.IntN(2) == 0 {
			c.hands(c.fab.Bounce(a.Name, 1))
		}
	case 5:
		c.hands(c.fab.Reboot(c.list.Nodes[c.rnd.IntN(len(c.list.Nodes))].Name))
		c.st.SetIsSM(true)
		if c.keyed { // an adapter that has lost its key, and is moved in that moment, takes another's
			c.env.run(3 * time.Second)
		}
	case 6:
		c.start()
		c.want(c.intent)
	case 7:
		c.release()
	}
}

func (c *cabling) trunk(x cable) bool { return c.list.Find(x.peer).Type == ib.NodeSwitch }

// hands checks the fabric after an operation. An operation that failed changed nothing, so its error is ignored.
func (c *cabling) hands(error) {
	c.arrive(c.st.Take(nil))
	c.noteWrong()
}

func (c *cabling) noteWrong() {
	for _, x := range c.all {
		for _, end := range [2][2]sim.Endpoint{
			{{Node: x.node, Port: x.num}, {Node: x.peer, Port: x.pnum}}, {{Node: x.peer, Port: x.pnum}, {Node: x.node, Port: x.num}},
		} {
			if at, ok := c.fab.Cable(end[0].Node, end[0].Port); ok && at != end[1] || c.lies[end[1].Node] {
				c.wrongAt[end[0]] = c.now
			}
		}
	}
}

// check judges the devices: no port is switched off that was as declared all the
// time, and none stays in use that leads elsewhere.
func (c *cabling) check() {
	c.noteWrong()
	for _, x := range c.all {
		for _, end := range [2][2]sim.Endpoint{
			{{Node: x.node, Port: x.num}, {Node: x.peer, Port: x.pnum}}, {{Node: x.peer, Port: x.pnum}, {Node: x.node, Port: x.num}},
		} {
			name := end[0]
			if c.list.Find(end[0].Node).Type != ib.NodeSwitch {
				continue
			}
			pi := c.fab.PortInfo(end[0].Node, end[0].Port)
			off := pi.PortPhysicalState == ib.PhysDisabled
			if wrong, ever := c.wrongAt[name]; off && !c.off[name] && (!ever || c.now.Sub(wrong) > 5*time.Second) {
				c.t.Fatalf("%v was switched off at %v, which was last wrong at %v; %q", name, c.now.Sub(epoch), wrong.Sub(epoch), c.verdicts())
			}
			c.off[name] = off
			at, ok := c.fab.Cable(end[0].Node, end[0].Port)
			if !ok || at == end[1] || pi.PortState != ib.PortActive {
				delete(c.misused, name)
				continue
			}
			if _, before := c.misused[name]; !before {
				c.misused[name] = c.now
			}
			if took := c.now.Sub(c.misused[name]); took > raceTime {
				c.t.Fatalf("%v is Active for %v and leads to %v, where %v belongs", name, took, at, end[1])
			}
		}
	}
}

func (c *cabling) release() {
	if c.view == nil || c.view.Topology == nil {
		return
	}
	for _, p := range c.view.Topology.Ports {
		if p.State == verify.StateDisabled || p.State == verify.StateHeld && p.Verdict != verify.Held {
			c.step(&sm.TopologyRelease{Place: p.Place, By: "ada", Why: "it was put right"})
		}
	}
}

// putBack ends the chaos: cables and GUIDs are as declared, and every port is
// released.
func (c *cabling) putBack() {
	c.bad = chaos{}
	for name := range c.lies {
		g := c.list.Find(name).GUID
		c.try(c.fab.SetGUIDs(name, g, g))
	}
	c.lies = map[string]bool{}
	for _, x := range c.all {
		if at, ok := c.fab.Cable(x.node, x.num); !ok || at != (sim.Endpoint{Node: x.peer, Port: x.pnum}) {
			c.try(c.fab.Recable(sim.Endpoint{Node: x.node, Port: x.num}, sim.Endpoint{Node: x.peer, Port: x.pnum}))
		}
	}
	for range 6 {
		c.env.run(time.Minute)
		c.release()
	}
	c.env.run(2 * time.Minute)
}

// checkEnd judges a fabric that is as declared again.
func (c *cabling) checkEnd() {
	c.t.Helper()
	if v := c.view.Topology; v.Verified != v.Expected || len(v.Ports) > 0 || v.Mode != topospec.Enforce {
		c.t.Errorf("%d of %d verified, mode %v, %q", v.Verified, v.Expected, v.Mode, c.verdicts())
	}
	if off := c.disabled(); len(off) > 0 {
		c.t.Errorf("off are %q", off)
	}
	if bad := inactive(c.view); len(bad) > 0 {
		c.t.Errorf("not Active: %v", bad)
	}
	for _, h := range hosts(c.list) {
		for _, g := range c.intent.Grants {
			if g.Place == h.place && (len(tenants(c.fab.PKeys(h.peer, h.pnum))) != 1 || len(tenants(c.fab.PKeys(h.node.Name, h.num))) != 1) {
				c.t.Errorf("%s is not in its partition: %v, %v", h.node.Name, c.fab.PKeys(h.peer, h.pnum), c.fab.PKeys(h.node.Name, h.num))
			}
		}
	}
	if c.keyed {
		c.checkKeys()
	}
	before := c.sets()
	c.start()
	c.want(c.intent)
	c.mustSettle(time.Minute)
	if n := c.sets() - before; n != 0 {
		c.t.Errorf("%d Sets after a restart, want none", n)
	}
}
