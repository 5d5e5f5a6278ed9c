package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// ask makes a request to a known node and returns its MAD, for the attribute of a Set to be written.
func (c *Core) ask(x work.Ref, n topo.NodeID, method mad.Method, attr mad.AttrID, mod uint32) *mad.MAD {
	m := c.send(x, n, c.nodes[n].epoch, method, attr, mod, c.routeFor(x, n))
	c.nodes[n].turns.Begin()
	if method == mad.MethodSet {
		c.nodes[n].doubt.NoteSet()
	}
	return m
}

// routeFor returns the route for a piece of work. Work on a CA port goes in by that very port: for some attributes the port
// asked is the port entered by.
func (c *Core) routeFor(x work.Ref, n topo.NodeID) *mad.Route {
	if peer := c.ownEntry(x); peer != topo.None {
		if r, ok := c.tree.RouteTo(c.ports[peer].node).Append(c.ports[peer].num); ok {
			return &r
		}
	}
	return c.tree.RouteTo(n)
}

// ownEntry returns the switch port in front of the CA port that a piece of work is about, if the request goes through that
// one; None if it goes the way of the node.
func (c *Core) ownEntry(x work.Ref) topo.PortID {
	if x.Class.IsOnNode() || x.Class == work.Probe {
		return topo.None
	}
	p := x.Port()
	peer := c.topo.Peer(p)
	if p == c.rootPort || peer == topo.None || peer == c.tree.Up(c.ports[p].node) || c.topo.IsExternal(p) || !c.topo.IsExternal(peer) {
		return topo.None
	}
	return peer
}

// send puts a request into the output and returns its MAD for the attribute to be filled in.
func (c *Core) send(x work.Ref, n topo.NodeID, epoch uint32, method mad.Method, attr mad.AttrID, mod uint32, route *mad.Route) *mad.MAD {
	r := work.Request{Ref: x, Node: n, Epoch: epoch, Method: method, Attr: attr, Mod: mod, Sent: c.now, Audit: c.auditing}
	if x.Class != work.LFT && x.Class != work.MFT {
		c.q.Begin(x)
	}
	repeats := c.failures.Tries(x) > 0 && x.Class != work.SMInfo
	if repeats {
		c.tally.Repeated++
	}
	if !r.IsAside() {
		c.disturb()
	}
	id := c.wire.Add(&r, repeats)
	c.budget.Spend(x)

	c.out.Send = append(c.out.Send, Request{ID: RequestID(id), LID: ib.PermissiveLID})
	m := &c.out.Send[len(c.out.Send)-1].MAD
	h := mad.Header{Method: method, TID: ib.TID(id), Attr: attr, Mod: mod}
	mad.NewSMP(m, h, route, c.mkeys.Header(x, n))
	return m
}

// stir has the next view show that something may have been written, when a Set ends in any way: it may have taken effect without
// an answer. A view before that shows a Set that is out as something that is still to come.
func (c *Core) stir(r *work.Request) {
	if r.Method != mad.MethodSet {
		return
	}
	switch {
	case r.Attr == mad.AttrPKeyTable:
		c.devices.StirKeys(r.Ref.Port())
	case r.Attr == mad.AttrSLtoVLMappingTable:
		c.devices.StirLanes(r.Ref.Port())
	case r.Attr == mad.AttrPortInfo && !r.Ref.Class.IsOnNode():
		c.devices.StirPort(r.Ref.Port())
	case r.Node != topo.None:
		c.devices.StirSwitch(r.Node, r.Attr)
	}
}

// reply takes the end of a request.
func (c *Core) reply(in *Reply) {
	r := &c.ended
	var ok bool
	if *r, ok = c.wire.End(uint32(in.ID)); !ok {
		c.dropped++
		return
	}
	c.stir(r)
	countReply(&c.tally.Counters, in.Outcome, &in.MAD)
	if r.Node != topo.None && c.nodes[r.Node].epoch == r.Epoch {
		t := &c.nodes[r.Node].turns
		t.End()
		defer t.PassOn(&c.q, c.cfg.PerTarget)
	}
	if !work.IsCurrent(lives{desk{c}}, r) {
		return
	}
	again := c.q.End(r.Ref)
	outcome := in.Outcome
	if outcome == Answered && !r.IsAnsweredBy(&in.MAD) {
		c.dropped++
		outcome = TimedOut
	}
	c.auditing = r.Audit
	if r.Ref.Class == work.LFT || r.Ref.Class == work.Switch {
		c.lids.Spoke()
	}
	switch {
	case outcome != Answered:
		c.failures.Failed(r, outcome != TimedOut)
	case in.MAD.Status().IsBusy():
		c.failures.Failed(r, true)
	default:
		c.answered(r, &in.MAD)
	}
	c.auditing = false
	if again && work.IsCurrent(lives{desk{c}}, r) {
		c.q.Mark(r.Ref)
	}
}

// answered hands an answer to the code that asked.
func (c *Core) answered(r *work.Request, m *mad.MAD) {
	c.failures.Spoke(r, m.Status())
	if r.Node != topo.None {
		c.failures.Heard(r.Node)
	}
	c.handlers[r.Ref.Class].Got(r, m, m.Status())
}
