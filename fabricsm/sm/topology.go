package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
)

// TopologyConfig is the declared topology that a Subnet Manager starts with.
type TopologyConfig struct {
	// Spec is what the fabric is compared with. Without one nothing is.
	Spec *topospec.Spec
	// Mode is what follows from a difference. Enforcement that was not in force
	// before with this very Spec begins when discovery is complete and before
	// anything is written, and only if its guards allow it.
	Mode topospec.Mode
	// Back: see TopologySet.
	Back bool
}

// TopologySet is the input by which an operator puts another declared topology into force, or another mode; one without
// Spec switches the comparison off. Guards can refuse it: then TopologyRefused says so, and the previous one stays in
// force.
type TopologySet struct {
	Spec *topospec.Spec
	Mode topospec.Mode
	By   string // name of the operator; required
	// Back marks a return to what was enforced before. How many of its links are verified does not count then: lost links
	// are the reason to go back. Two checks still apply: that the Subnet Manager is where it is declared, and how many
	// ports would be switched off.
	Back bool
}

// TopologyRelease is the input by which an operator releases a port that was switched off or is held. The device that is
// seen there next is judged from the beginning.
type TopologyRelease struct {
	Place   ib.Place
	By, Why string // required
}

func (*TopologySet) input()     {}
func (*TopologyRelease) input() {}

const (
	// FactTopologyMode: the subnet manager at the port GUID put a mode of the declared topology into force, Since when;
	// Mark names the mode and the content. None takes it back.
	FactTopologyMode FactKind = "topology-mode"
	// FactTopology: Port of the switch GUID was switched off by the declared topology because of the device Seen there;
	// Mark is the verdict, or releasedMark when it is to be switched on again and was not yet. None takes it back.
	FactTopology FactKind = "topology"
)

// lawFabric is the core as package declared knows it, and lawActions what that has it do.
type (
	lawFabric  struct{ desk }
	lawActions struct{ desk }
)

var (
	_ declared.Fabric  = lawFabric{}
	_ declared.Actions = lawActions{}
)

func (f lawFabric) Own() topo.PortID                 { return f.own() }
func (f lawFabric) Root() (topo.NodeID, topo.PortID) { return f.root, f.rootPort }
func (f lawFabric) IsAlive(id topo.NodeID) bool      { return f.nodes[id].alive }
func (f lawFabric) Up(id topo.NodeID) topo.PortID    { return f.tree.Up(id) }
func (f lawFabric) IsProtected(p topo.PortID) bool   { return f.quarantine.IsProtected(p) }
func (f lawFabric) IsDark(p topo.PortID) bool        { return f.dark(p) }

func (f lawActions) Impose(p topo.PortID) { f.quarantine.PutLaw(p, f.law.ActionOn(p)) }
func (f lawActions) Disturb()             { f.disturb() }
func (f lawActions) Pause(p topo.PortID)  { f.pauseWork(work.OnPort(work.Probe, p)) }
func (f lawActions) Retired()             { f.pkeys.Judge.Retired() }

func (f lawActions) Activated(was, now *topospec.Spec, m topospec.Mode) { f.mkeys.Follow(was, now, m) }

func (f lawActions) Save(s declared.Saved) {
	if s.IsMode {
		f.save(Fact{Kind: FactTopologyMode, GUID: f.cfg.PortGUID, Mark: s.Mark, Since: s.Since})
		return
	}
	f.save(Fact{Kind: FactTopology, GUID: s.Place.Switch, Port: s.Place.Port, Mark: s.Mark, Seen: s.Seen, Since: s.Since})
}

func (f lawActions) Trusted(id topo.NodeID, waited bool) {
	if waited {
		f.topo.EachExternal(id, func(p topo.PortID) {
			if f.ports[p].known && linkUp(&f.ports[p].info) {
				f.q.MarkPort(work.Probe, p)
			}
		})
	}
	if f.mkeys.IsOn() {
		f.q.MarkPort(work.Set, f.topo.Node(id).FirstPort)
	}
}

func (f lawActions) Changed(p topo.PortID) {
	for _, x := range [2]topo.PortID{p, f.topo.Peer(p)} {
		if x != topo.None {
			f.touch(x)
		}
	}
	f.pkeys.Judge.Port(p)
}

func (f lawActions) Doubt(p topo.PortID, tries int) {
	f.ports[p].verify = true
	if tries == 0 {
		f.q.MarkPort(work.Probe, p)
		return
	}
	f.after(nearRetry<<min(tries, 6), work.Near, work.OnPort(work.Probe, p))
}

// start takes the configured topology and the saved state.
func (f lawActions) start(facts []Fact) {
	var saved []declared.Saved
	for i := range facts {
		x := &facts[i]
		if x.Kind == FactTopology || x.Kind == FactTopologyMode {
			saved = append(saved, declared.Saved{
				IsMode: x.Kind == FactTopologyMode, Place: ib.Place{Switch: x.GUID, Port: x.Port}, Mark: x.Mark, Seen: x.Seen, Since: x.Since,
			})
		}
	}
	cfg := &f.cfg.Topology
	f.law.Start(&declared.Order{Spec: cfg.Spec, Mode: cfg.Mode, Back: cfg.Back}, saved)
}

// first takes that a port of a switch was read for the first time.
func (f lawActions) first(p topo.PortID) {
	if !f.topo.IsExternal(p) {
		return
	}
	if f.law.IsLetGo(f.topo.PlaceOf(p)) {
		f.ports[p].quarantine.Reopen()
		f.q.MarkPort(work.Set, p)
	}
	f.Impose(p)
}

// ImposeEverywhere looks again at what the declared topology does to each port.
func (f lawActions) ImposeEverywhere() {
	for p := range f.ports {
		id := topo.PortID(p)
		if f.nodes[f.ports[p].node].alive && f.topo.IsExternal(id) && f.ports[p].known {
			f.Impose(id)
			if f.topo.Peer(id) == topo.None && linkUp(&f.ports[p].info) {
				f.q.MarkPort(work.Probe, id)
			}
		}
	}
	f.touchAll()
	f.disturb()
}
