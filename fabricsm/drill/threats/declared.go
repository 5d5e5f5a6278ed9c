package threats

import (
	"slices"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// breach is something on a fabric with a declared topology that is not as it was declared.
type breach struct {
	tried   string
	netlist *netlist.Netlist                       // nil: that of all sites
	amend   func(*topospec.Revision)               // changes the declared topology
	before  func(t *drill.Site)                    // earlier events that are no attack
	do      func(t *drill.Site)                    // the attack
	at      func(t *drill.Site) []ib.Place         // where ports are to be switched off, and no others
	verdict verify.Verdict                         // that is reported for each of them
	within  time.Duration                          // time until the report; default 10 s
	after   func(t *drill.Site, places []ib.Place) // more to demand
}

// finding returns a test for the event about a port that is not as declared.
func finding(at ib.Place, v verify.Verdict) func(sm.Event) bool {
	return drill.Is(func(e *declared.TopologyChanged) bool { return e.Place == at && e.Verdict == v })
}

// at7 is where h7 belongs.
func at7(t *drill.Site) []ib.Place { return []ib.Place{t.Place("h7", 1)} }

// play demands that a breach is reported, that its ports are switched off and no others, that nothing was granted there,
// and that a victim elsewhere feels nothing.
func (b *breach) play(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Netlist: b.netlist, Tenants: drill.TwoTenants(), Declared: true, Amend: b.amend})
	t.Victim("h1", "h5")
	if b.before != nil {
		b.before(t)
		s.Must(t.Settle(drill.SettleTime))
	}
	off := switchedOff(t)
	s.Tried("where the topology is declared, %s", b.tried)
	t.Attack()
	mark := t.Begun
	b.do(t)
	t.Collect()
	within := b.within
	if within == 0 {
		within = 10 * time.Second
	}
	places := b.at(t)
	for _, at := range places {
		t.Begun = mark
		t.Reported(within, b.verdict.String()+" at "+at.String(), finding(at, b.verdict))
		if t.Isolated(time.Minute, "port "+at.String()+" is switched off", func() bool { return isOff(t, at) }) {
			s.Stopped("port %v is switched off, and no other: %v", at, b.verdict)
		}
	}
	t.Run(2 * time.Minute)
	now := switchedOff(t)
	for _, at := range now {
		s.Check(slices.Contains(places, at) || slices.Contains(off, at), "port %v is switched off, too", at)
	}
	for _, at := range places {
		s.Check(slices.Contains(now, at), "port %v is on again", at)
		n, _ := switchAt(t, at)
		s.Check(len(t.TenantKeys(sim.Endpoint{Node: n, Port: at.Port})) == 0, "port %v holds P_Keys of tenants", at)
	}
	if b.after != nil {
		b.after(t, places)
	}
}

// switchAt names the switch of a place.
func switchAt(t *drill.Site, at ib.Place) (string, bool) {
	for i := range t.List.Nodes {
		if n := &t.List.Nodes[i]; n.GUID == at.Switch && n.Type == ib.NodeSwitch {
			return n.Name, true
		}
	}
	return "", false
}

func isOff(t *drill.Site, at ib.Place) bool {
	name, ok := switchAt(t, at)
	return ok && t.Fabric.PortInfo(name, at.Port).PortPhysicalState == ib.PhysDisabled
}

// switchedOff lists the switch ports that are disabled.
func switchedOff(t *drill.Site) (out []ib.Place) {
	for i := range t.List.Nodes {
		n := &t.List.Nodes[i]
		for p := 1; n.Type == ib.NodeSwitch && p < len(n.Ports); p++ {
			if at := (ib.Place{Switch: n.GUID, Port: ib.PortNum(p)}); isOff(t, at) {
				out = append(out, at)
			}
		}
	}
	return out
}

// gotNothing demands that devices that do not belong to the fabric got neither LID nor M_Key.
func gotNothing(ends ...sim.Endpoint) func(*drill.Site, []ib.Place) {
	return func(t *drill.Site, _ []ib.Place) {
		for _, e := range ends {
			pi := t.Fabric.PortInfo(e.Node, e.Port)
			t.Scene.Check(pi.LID == 0, "%s has LID %v", e.Node, pi.LID)
			t.Scene.Check(pi.MKey.IsZero(), "%s has an M_Key", e.Node)
		}
	}
}
