package sm_test

import (
	"maps"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/portpolicy"
)

// TestPolicySet changes policies of a settled fabric, one after the other. The final state of the devices is the one that a
// fresh subnet manager with that policy wants.
func TestPolicySet(t *testing.T) {
	e := newEnv(t, tree(t, 8, 8), sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	h := hosts(e.list)[3]
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(10 * time.Second)
	base := e.cfg.Policy()
	info := func() ib.PortState { return e.fab.PortInfo(h.peer, h.pnum).PortState }
	for _, tt := range []struct {
		name   string
		policy func(*sm.Policy)
		holds  func() bool
	}{
		{"the same", func(*sm.Policy) {}, func() bool { return true }},
		{"another MTU and lifetime", func(p *sm.Policy) { p.Ports.MaxMTU, p.Ports.HOQLife = ib.MTU2048, 15 }, func() bool {
			return e.fab.PortInfo(h.peer, h.pnum).NeighborMTU == ib.MTU2048
		}},
		{"back", func(*sm.Policy) {}, func() bool { return e.fab.PortInfo(h.peer, h.pnum).NeighborMTU == ib.MTU4096 }},
		{"a port held down", func(p *sm.Policy) {
			p.Ports.Rules = []portpolicy.Rule{{GUID: h.place.Switch, Port: h.place.Port, Disabled: true}}
		}, func() bool { return info() == ib.PortDown }},
		{"and no longer", func(*sm.Policy) {}, func() bool { return info() == ib.PortActive }},
		{"quality of service", func(p *sm.Policy) { p.QoS = qosOptions(t, oddQoS...) }, func() bool {
			o := qosOptions(t, oddQoS...)
			judgeQoS(e, &o)
			return true
		}},
		{"none", func(*sm.Policy) {}, func() bool { judgeSwitchLanes(e); return true }},
		{"another engine", func(p *sm.Policy) { p.Engines = []route.Engine{updn.Engine{}} }, func() bool { return e.view.Tables.Engine == "updn" }},
		{"one that makes no sense", func(p *sm.Policy) { p.Ports.Link.MaxWidth = 3 }, func() bool { return e.view.Tables.Engine == "updn" }},
	} {
		p := base
		p.Engines = nil
		tt.policy(&p)
		e.step(&sm.PolicySet{Policy: p})
		e.run(5 * time.Second)
		e.mustSettle(10 * time.Second)
		if e.cfg.QoS = p.QoS; !tt.holds() {
			t.Errorf("%s: not in force; problems %q", tt.name, e.problems())
		}
		switch tt.name {
		case "a port held down": // a fresh one has no routes to the host that is gone
			continue
		case "one that makes no sense":
			return
		}
		// A fresh one with that policy has nothing to write.
		e.cfg.Ports = p.Ports
		if p.Engines != nil {
			e.cfg.Engines = p.Engines
		}
		before, was := e.sets(), maps.Clone(e.smps)
		e.start()
		e.want(e.intent)
		e.mustSettle(10 * time.Second)
		if n := e.sets() - before; n != 0 {
			t.Errorf("%s: a restart wrote %d times: before %v, now %v", tt.name, n, was, e.smps)
		}
	}
}
