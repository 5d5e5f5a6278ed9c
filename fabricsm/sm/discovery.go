package sm

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
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
func (f finderActions) Describe(id topo.NodeID)   { f.inBackground(work.OnNode(work.Desc, id)) }

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

// workProbe asks what is at the other end of the cable of a port, unless that is
// known, or for the node that we are attached to.
func (c *Core) workProbe(x work.Ref) {
	if x == rootRef {
		c.send(x, topo.None, 0, mad.MethodGet, mad.AttrNodeInfo, 0, &mad.Route{})
		return
	}
	p := x.Port()
	pt := &c.ports[p]
	n := &c.nodes[pt.node]
	if !n.alive || n.silent || !c.tree.Probes(p) || c.dark(p) || !linkUp(&pt.info) || c.law.Holds(p) {
		return
	}
	if peer := c.topo.Peer(p); peer != topo.None && !pt.verify && !pt.host.IsAsked() && !c.nodes[c.ports[peer].node].silent {
		return
	}
	if c.subtrees.IsTooFar(p) {
		if pt.told || !c.subtrees.HoldChain(p) { // a chain that hangs by one cable is held there
			failureActions{desk{c}}.ReportDead(p)
		}
		return
	}
	route, ok := c.tree.RouteTo(pt.node).Append(pt.num)
	if !ok {
		failureActions{desk{c}}.ReportDead(p)
		return
	}
	// A link known to be dead is asked now and then like an audit would.
	c.auditing = pt.told || c.topo.Peer(p) != topo.None && !pt.verify
	c.send(x, topo.None, n.epoch, mad.MethodGet, mad.AttrNodeInfo, 0, &route)
	c.auditing = false
}

// linkUp reports whether a port has a link. A port that was disabled has none, even if it reports another state.
func linkUp(pi *mad.PortInfo) bool {
	return pi.PortState >= ib.PortInit && pi.PortPhysicalState != ib.PhysDisabled
}

// gotNodeInfo handles the answer to a probe.
func (c *Core) gotNodeInfo(r *work.Request, m *mad.MAD, status mad.Status) {
	var ni mad.NodeInfo
	if status != mad.StatusOK || mad.Decode(m.Data(), &ni) != nil {
		c.refused(r, status.String())
		return
	}
	if r.Ref.Class == work.Probe && (c.dark(r.Ref.Port()) || !c.law.Allows(r.Ref.Port(), r.Sent, &ni)) {
		return
	}
	if reason := discovery.Check(&ni); reason != "" {
		c.refused(r, reason)
		return
	}
	if r.Ref.Class == work.Root {
		c.finder.FoundRoot(&ni)
		return
	}
	p := r.Ref.Port()
	if c.dark(p) {
		return
	}
	if ni.NodeType == ib.NodeSwitch && c.quarantine.IsShunned(p, ni.NodeGUID) {
		return
	}
	pt, place := &c.ports[p], c.topo.PlaceOf(p)
	pt.verify, pt.told = false, false
	c.faults.Clear(fault.Key{Kind: fault.LinkDead, Place: place})
	posed := fault.Key{Kind: fault.SwitchForHost, Place: place}
	if c.finder.IsPoser(p, &ni) {
		identityActions{desk{c}}.Close(p)
		c.problem(posed, &BadAnswer{
			GUID: ni.NodeGUID, Request: "Get NodeInfo",
			Reason: fmt.Sprintf("a switch answers behind %v, where a host belongs; its port stays closed", place),
		})
		c.pauseWork(r.Ref)
		return
	}
	c.faults.Clear(posed)
	pt.pause = 0
	c.mkeys.Answered(p, &ni)
	if c.finder.Found(p, &ni) {
		c.hosts.Answered(p, r.Sent.Sub(c.born))
	}
}
