package drill

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/judge"
)

// breach is something on a fabric with a declared topology that is not as it was declared.
type breach struct {
	tried   string
	netlist *netlist.Netlist                 // nil: that of all sites
	amend   func(*topospec.Revision)         // changes the declared topology
	before  func(t *Site)                    // earlier events that are no attack
	do      func(t *Site)                    // the attack
	at      func(t *Site) []ib.Place         // where ports are to be switched off, and no others
	verdict judge.Verdict                    // that is reported for each of them
	within  time.Duration                    // time until the report; default 10 s
	after   func(t *Site, places []ib.Place) // more to demand
}

// finding returns a test for the event about a port that is not as declared.
func finding(at ib.Place, v judge.Verdict) func(sm.Event) bool {
	return is(func(e *declared.TopologyChanged) bool { return e.Place == at && e.Verdict == v })
}

// at7 is where h7 belongs.
func at7(t *Site) []ib.Place { return []ib.Place{t.Place("h7", 1)} }

// play demands that a breach is reported, that its ports are switched off and no others, that nothing was granted there,
// and that a victim elsewhere feels nothing.
func (b *breach) play(s *Scene) {
	t := s.Site(SiteOptions{Netlist: b.netlist, Tenants: twoTenants(), Declared: true, Amend: b.amend})
	t.Victim("h1", "h5")
	if b.before != nil {
		b.before(t)
		s.Must(t.Settle(settleTime))
	}
	off := t.switchedOff()
	s.Tried("where the topology is declared, %s", b.tried)
	t.Attack()
	mark := t.mark
	b.do(t)
	t.Collect()
	within := b.within
	if within == 0 {
		within = 10 * time.Second
	}
	places := b.at(t)
	for _, at := range places {
		t.mark = mark
		t.Reported(within, b.verdict.String()+" at "+at.String(), finding(at, b.verdict))
		if t.Isolated(time.Minute, "port "+at.String()+" is switched off", func() bool { return t.isOff(at) }) {
			s.Stopped("port %v is switched off, and no other: %v", at, b.verdict)
		}
	}
	t.Run(2 * time.Minute)
	now := t.switchedOff()
	for _, at := range now {
		s.Check(slices.Contains(places, at) || slices.Contains(off, at), "port %v is switched off, too", at)
	}
	for _, at := range places {
		s.Check(slices.Contains(now, at), "port %v is on again", at)
		n, _ := t.switchAt(at)
		s.Check(len(t.TenantKeys(sim.Endpoint{Node: n, Port: at.Port})) == 0, "port %v holds P_Keys of tenants", at)
	}
	if b.after != nil {
		b.after(t, places)
	}
}

// switchAt names the switch of a place.
func (t *Site) switchAt(at ib.Place) (string, bool) {
	for i := range t.List.Nodes {
		if n := &t.List.Nodes[i]; n.GUID == at.Switch && n.Type == ib.NodeSwitch {
			return n.Name, true
		}
	}
	return "", false
}

func (t *Site) isOff(at ib.Place) bool {
	name, ok := t.switchAt(at)
	return ok && t.Fabric.PortInfo(name, at.Port).PortPhysicalState == ib.PhysDisabled
}

// switchedOff lists the switch ports that are disabled.
func (t *Site) switchedOff() (out []ib.Place) {
	for i := range t.List.Nodes {
		n := &t.List.Nodes[i]
		for p := 1; n.Type == ib.NodeSwitch && p < len(n.Ports); p++ {
			if at := (ib.Place{Switch: n.GUID, Port: ib.PortNum(p)}); t.isOff(at) {
				out = append(out, at)
			}
		}
	}
	return out
}

// gotNothing demands that devices that do not belong to the fabric got neither LID nor M_Key.
func gotNothing(ends ...sim.Endpoint) func(*Site, []ib.Place) {
	return func(t *Site, _ []ib.Place) {
		for _, e := range ends {
			pi := t.Fabric.PortInfo(e.Node, e.Port)
			t.scene.Check(pi.LID == 0, "%s has LID %v", e.Node, pi.LID)
			t.scene.Check(pi.MKey.IsZero(), "%s has an M_Key", e.Node)
		}
	}
}
