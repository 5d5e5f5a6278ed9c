package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/attributes"
	"portcullis/fabricsm/sm/discovery"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/subtree"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// finderFabric is the core as package discovery knows it, and finderActions what that has it do.
type (
	finderFabric  struct{ desk }
	finderActions struct{ desk }
)

var (
	_ discovery.Fabric  = finderFabric{}
	_ discovery.Actions = finderActions{}
)

func (f finderFabric) Root() (topo.NodeID, topo.PortID) { return f.root, f.rootPort }
func (f finderFabric) IsAlive(id topo.NodeID) bool      { return f.nodes[id].alive }
func (f finderFabric) Life(id topo.NodeID) uint32       { return f.nodes[id].epoch }
func (f finderFabric) IsDark(p topo.PortID) bool        { return f.dark(p) }
func (f finderFabric) IsForHost(at ib.Place) bool       { return f.members.IsForHost(at) }

func (f finderFabric) IsAlias(g ib.GUID, p topo.PortID) bool { return f.aliases.IsClaimed(g, p) }

func (f finderFabric) Admit(p topo.PortID, ni mad.NodeInfo) discovery.Admission {
	found := f.foundAt(p, &ni)
	switch {
	case !f.subtrees.MayHang(&found):
		return discovery.PutOff
	case !f.subtrees.MayGrow(&found):
		return discovery.TurnedAway
	default:
		return discovery.Admitted
	}
}

// foundAt describes a node that answers behind a port.
func (d desk) foundAt(p topo.PortID, ni *mad.NodeInfo) subtree.Found {
	l := d.lids.Of(ni.PortGUID)
	return subtree.Found{
		Port: p, Ports: ni.NumPorts, Switch: ni.NodeType == ib.NodeSwitch,
		Known: l != 0 && !d.lids.IsNew(l), New: l == 0 && d.writing(),
	}
}

func (f finderActions) Link(p, q topo.PortID)     { f.link(p, q) }
func (f finderActions) Unlink(p topo.PortID)      { f.unlink(p) }
func (f finderActions) Heard(id topo.NodeID)      { f.failures.Heard(id) }
func (f finderActions) LeaveUnread(p topo.PortID) { f.unread.Leave(p) }
func (f finderActions) Describe(id topo.NodeID)   { f.idleWork.Add(work.OnNode(work.Desc, id)) }

func (f finderActions) AddRoot(ni mad.NodeInfo) (topo.NodeID, topo.PortID) {
	f.law.FoundOwn(&ni)
	f.root = f.Add(ni, topo.None)
	f.rootPort = f.topo.PortOf(f.root, ni.LocalPortNum)
	f.tree.Changed()
	return f.root, f.rootPort
}

func (f finderActions) EnterSwitch(id topo.NodeID, up topo.PortID) {
	f.nodes[id].doubt.Doubt(false)
	if up != topo.None {
		f.mkeys.Linked(up)
	}
	f.unread.Enter(id)
}

func (f finderActions) Name(p topo.PortID, guid ib.GUID) {
	tp := f.topo.Port(p)
	tp.GUID = guid
	f.topo.SetPort(p, tp)
	f.byPort[guid] = p
	f.lids.Back(guid)
	f.groups.Reseat(guid)
	f.pkeys.Moved()
}

func (f finderActions) TurnAway(p topo.PortID) {
	pt := &f.ports[p]
	if !f.nodes[pt.node].alive || f.dark(p) {
		return
	}
	pt.told = true // it is asked as an audit would: nothing waits for it
	f.after(f.cfg.RetryMax, work.Retry, work.OnPort(work.Probe, p))
}

func (f finderActions) Resized(id topo.NodeID) {
	f.pkeys.Moved()
	f.disturb()
	tn := f.topo.Node(id)
	for i := range int(tn.NumPorts) + 1 {
		if p := tn.FirstPort + topo.PortID(i); f.ports[p].known {
			f.touch(p)
		}
	}
}

// rootRef is the work of looking at the node we are attached to.
var rootRef = work.OnNode(work.Root, 0)

// linkUp reports whether a port has a link. A port that was disabled has none, even if it reports another state.
func linkUp(pi *mad.PortInfo) bool {
	return pi.PortState >= ib.PortInit && pi.PortPhysicalState != ib.PhysDisabled
}

// probes is the core as the handler of NodeInfo uses it.
type probes struct{ desk }

var _ attributes.Probes = probes{}

func (f probes) IsDark(p topo.PortID) bool     { return f.dark(p) }
func (f probes) TellUnreachable(p topo.PortID) { failureActions(f).ReportDead(p) }
func (f probes) Confirm(r *work.Request)       { f.hosts.Answered(r.Ref.Port(), r.Sent.Sub(f.born)) }

func (f probes) Probe(p topo.PortID) attributes.Probe {
	pt := &f.ports[p]
	n := &f.nodes[pt.node]
	peer := f.topo.Peer(p)
	return attributes.Probe{
		Node: pt.node, Num: pt.num, Epoch: n.epoch, Answers: n.alive && !n.silent, IsUp: linkUp(&pt.info), IsTold: pt.told,
		Verifies: pt.verify, AsksHost: pt.host.IsAsked(), PeerAnswers: peer != topo.None && !f.nodes[f.ports[peer].node].silent,
	}
}

func (f probes) Send(x work.Ref, epoch uint32, route mad.Route, aside bool) {
	f.auditing = aside
	f.send(x, topo.None, epoch, mad.MethodGet, mad.AttrNodeInfo, 0, &route)
	f.auditing = false
}

func (f probes) Answered(p topo.PortID) {
	f.ports[p].verify, f.ports[p].told = false, false
	f.faults.Clear(fault.Key{Kind: fault.LinkDead, Place: f.topo.PlaceOf(p)})
}

func (f probes) Close(r *work.Request, guid ib.GUID, reason string) {
	posed := f.posed(r.Ref.Port()) // the port may go with its link
	identityActions(f).Close(r.Ref.Port())
	f.problem(posed, &BadAnswer{GUID: guid, Request: "Get NodeInfo", Reason: reason})
	f.pauseWork(r.Ref)
}

func (f probes) Admit(p topo.PortID) {
	f.faults.Clear(f.posed(p))
	f.ports[p].pause = 0
}

// posed names the problem of a port behind which a switch answers where a host belongs.
func (f probes) posed(p topo.PortID) fault.Key {
	return fault.Key{Kind: fault.SwitchForHost, Place: f.topo.PlaceOf(p)}
}
