package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// GroupsSet replaces all multicast groups: those of MLIDs, with the members that Joins names and no others. A LID that is
// not multicast is ignored. It comes with the first groups after a start: before it nothing is known, and no table is
// touched.
type GroupsSet struct {
	MLIDs []ib.LID
	Joins []multicast.Join
}

// GroupsChanged changes multicast groups: first Gone, then Made, then Joins.
type GroupsChanged struct {
	Made  []ib.LID
	Gone  []ib.LID
	Joins []multicast.Join // of groups that there are
}

func (*GroupsSet) input()     {}
func (*GroupsChanged) input() {}

// groupFabric is the core as package multicast uses it.
type groupFabric struct{ desk }

var _ multicast.Fabric = groupFabric{}

func (f groupFabric) SeatOf(guid ib.GUID) (multicast.Seat, bool) {
	p, ok := f.byPort[guid]
	if !ok {
		return multicast.Seat{}, false
	}
	pt := &f.ports[p]
	if pt.num == 0 {
		return multicast.Seat{Switch: pt.node}, true
	}
	at := f.topo.Peer(p)
	if !pt.placed || at == topo.None || !f.topo.IsExternal(at) {
		return multicast.Seat{}, false
	}
	return multicast.Seat{Switch: f.ports[at].node, Port: f.ports[at].num}, true
}

func (f groupFabric) SwitchOf(id topo.NodeID) multicast.Switch {
	n := &f.nodes[id]
	if !n.alive || !n.sw.IsKnown() {
		return multicast.Switch{}
	}
	return multicast.Switch{Cap: int(n.sw.Info().MulticastFDBCap), IsReset: n.sw.IsReset()}
}

// plant plans what changed of the trees, and what follows for virtual lanes.
func (c *Core) plant() {
	if !c.groups.HasRoutes() {
		return
	}
	if c.lanes.Follow(c.routing.tables, c.groups.Ground()) {
		settingFabric{desk{c}}.renewSMSL()
	}
	if c.groups.Plan() {
		c.viewDue = true
	}
}

// workMFT reads and writes blocks, several at a time.
func (c *Core) workMFT(id topo.NodeID) {
	x := work.OnNode(work.MFT, id)
	s := c.groups.Next(id, c.writing())
	switch {
	case s.Method == 0:
		return
	case s.Audit:
		c.auditing = true
		c.ask(x, id, s.Method, mad.AttrMulticastForwardingTable, s.Mod)
		c.auditing = false
		return
	case s.Method == mad.MethodSet:
		m := c.ask(x, id, s.Method, mad.AttrMulticastForwardingTable, s.Mod)
		c.encode(mad.Encode(m.Data(), &mad.MulticastForwardingTable{PortMask: s.Masks}))
	default:
		c.ask(x, id, s.Method, mad.AttrMulticastForwardingTable, s.Mod)
	}
	c.q.Mark(x)
}

// gotMFT takes one block.
func (c *Core) gotMFT(id topo.NodeID, r *work.Request, m *mad.MAD, status mad.Status) {
	got := &mad.MulticastForwardingTable{}
	if status != mad.StatusOK || mad.Decode(m.Data(), got) != nil {
		got = nil
	}
	reason, refused := c.groups.Answer(id, r, got, status.String())
	if !refused {
		return
	}
	if first, rounds := c.groups.Refuse(id, r); first {
		c.failures.SetRounds(r.Ref, rounds)
		c.refused(r, reason)
	}
}

// wantMulticast fills in the fields of SwitchInfo that are about multicast.
func (c *Core) wantMulticast(id topo.NodeID, want *mad.SwitchInfo) {
	n := &c.nodes[id]
	p0 := &c.ports[c.topo.Node(id).FirstPort]
	hasTop := p0.known && p0.info.CapabilityMask.Has(mad.IsMulticastFDBTopSupported) && n.notKept&portset.MulticastFDBTop == 0
	c.groups.Want(want, hasTop, n.notKept&portset.DefaultMulticastPorts == 0)
}

// learnMulticast remembers which of those fields a switch did not keep in a Set.
func (c *Core) learnMulticast(id topo.NodeID) {
	var missed PortFields
	top, ports := c.nodes[id].sw.MissedMulticast()
	if top {
		missed |= portset.MulticastFDBTop
	}
	if ports {
		missed |= portset.DefaultMulticastPorts
	}
	c.learn(id, 0, missed)
}
