package sm

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/identity"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// rootRef is the work of looking at the node we are attached to.
var rootRef = work.OnNode(work.Root, 0)

// addRootSlot begins discovery. The marks of work.Root live in node 0, so the
// slot must exist before the node has answered.
func (c *Core) addRootSlot() {
	c.nodes = append(c.nodes, node{})
	c.q.Extend(1, 0)
	c.tree.Extend(1)
	c.q.Mark(rootRef)
}

func (c *Core) workRoot() {
	c.send(rootRef, topo.None, 0, mad.MethodGet, mad.AttrNodeInfo, 0, &mad.Route{})
}

// workProbe asks what is at the other end of the cable of p, unless that is
// known.
func (c *Core) workProbe(p topo.PortID) {
	pt := &c.ports[p]
	n := &c.nodes[pt.node]
	if !n.alive || n.silent || !c.tree.Probes(p) || c.dark(p) || !linkUp(&pt.info) || c.law.Holds(p) {
		return
	}
	if peer := c.topo.Peer(p); peer != topo.None && !pt.verify && !pt.confirming && !c.nodes[c.ports[peer].node].silent {
		return
	}
	if c.isTooFar(p) {
		return
	}
	route, ok := c.tree.RouteTo(pt.node).Append(pt.num)
	if !ok {
		c.tellUnreachable(p)
		return
	}
	// A link known to be dead is asked now and then like an audit would.
	c.auditing = pt.told || c.topo.Peer(p) != topo.None && !pt.verify
	defer func() { c.auditing = false }()
	c.send(work.OnPort(work.Probe, p), topo.None, n.epoch, mad.MethodGet, mad.AttrNodeInfo, 0, &route)
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
	if reason := checkNodeInfo(&ni); reason != "" {
		c.refused(r, reason)
		return
	}
	if r.Ref.Class == work.Root {
		c.foundRoot(&ni)
		return
	}
	p := r.Ref.Port()
	if c.dark(p) {
		return
	}
	if sw := (ib.Place{Switch: ni.NodeGUID}); ni.NodeType == ib.NodeSwitch && c.health.ActionAt(sw) > health.Ignore {
		if c.shun(p, sw); c.dark(p) {
			return
		}
	}
	pt := &c.ports[p]
	pt.verify, pt.told = false, false
	c.faults.Clear(fault.Key{Kind: fault.LinkDead, Place: c.topo.PlaceOf(p)})
	if c.poses(p, r, &ni) {
		return
	}
	pt.pause = 0
	c.mkeys.Answered(p, &ni)
	c.contests.Rename(p, &ni)
	c.found(p, &ni)
	if peer := c.topo.Peer(p); peer != topo.None && c.topo.NodeGUID(c.ports[peer].node) == ni.NodeGUID && c.ports[peer].num == ni.LocalPortNum {
		c.confirm(p, r)
	}
}

// poses reports whether a switch answers where inventory has a host. If so, it shuts the port: a port towards a switch
// checks no P_Keys.
func (c *Core) poses(p topo.PortID, r *work.Request, ni *mad.NodeInfo) bool {
	place := c.topo.PlaceOf(p)
	posed := fault.Key{Kind: fault.SwitchForHost, Place: place}
	if ni.NodeType != ib.NodeSwitch || !c.topo.IsExternal(p) || !c.members.IsForHost(place) {
		c.faults.Clear(posed)
		return false
	}
	if c.topo.Peer(p) != topo.None {
		c.unlink(p)
	}
	c.shut(p)
	c.problem(posed, &BadAnswer{
		GUID: ni.NodeGUID, Request: "Get NodeInfo",
		Reason: fmt.Sprintf("a switch answers behind %v, where a host belongs; its port stays closed", place),
	})
	c.pauseWork(r.Ref)
	return true
}

// checkNodeInfo says what is wrong with a NodeInfo, if anything.
func checkNodeInfo(ni *mad.NodeInfo) string {
	switch {
	case ni.NodeType != ib.NodeCA && ni.NodeType != ib.NodeSwitch && ni.NodeType != ib.NodeRouter:
		return fmt.Sprintf("NodeInfo has node type %d", uint8(ni.NodeType))
	case !ni.NodeGUID.Valid() || !ni.PortGUID.Valid():
		return fmt.Sprintf("NodeInfo has node GUID %v and port GUID %v", ni.NodeGUID, ni.PortGUID)
	case ni.NumPorts == 0 || ni.NumPorts == 0xFF:
		return fmt.Sprintf("NodeInfo has %d ports", ni.NumPorts)
	case uint8(ni.LocalPortNum) > ni.NumPorts || ni.LocalPortNum == 0 && ni.NodeType != ib.NodeSwitch:
		return fmt.Sprintf("NodeInfo came from port %d of %d", ni.LocalPortNum, ni.NumPorts)
	default:
		return ""
	}
}

// foundRoot takes the node we are attached to.
func (c *Core) foundRoot(ni *mad.NodeInfo) {
	if c.root != topo.None && c.nodes[c.root].alive && c.topo.NodeGUID(c.root) == ni.NodeGUID {
		c.heard(c.root)
		return
	}
	c.law.FoundOwn(ni)
	c.root = c.addNode(ni, topo.None)
	c.rootPort = c.topo.PortOf(c.root, ni.LocalPortNum)
	c.tree.Changed()
	c.enter(c.root, c.rootPort, ni)
}

// enter asks a new node all there is to know. p is the port it was entered by.
func (c *Core) enter(id topo.NodeID, p topo.PortID, ni *mad.NodeInfo) {
	c.inBackground(work.OnNode(work.Desc, id))
	if ni.NodeType != ib.NodeSwitch {
		c.enterEnd(p, ni.PortGUID)
		return
	}
	if p != topo.None && c.topo.Peer(p) != topo.None {
		c.leaveUnread(p)
	}
	c.unsure(id, false)
	c.q.MarkNode(work.Switch, id)
	first := c.topo.Node(id).FirstPort
	c.enterPort(first, ni.PortGUID)
	if p != topo.None && c.topo.Peer(p) != topo.None {
		c.mkeys.Linked(c.topo.Peer(p))
	}
	c.level = append(c.level, id)
}

// enterEnd begins with a port of a CA or router.
func (c *Core) enterEnd(p topo.PortID, guid ib.GUID) {
	c.nameEnd(p, guid)
	if p == c.rootPort {
		c.q.MarkPort(work.Info, p)
		return
	}
	c.leaveUnread(p)
}

// enterPort begins with port 0 of a switch.
func (c *Core) enterPort(p topo.PortID, guid ib.GUID) {
	c.nameEnd(p, guid)
	c.q.MarkPort(work.Info, p)
}

// nameEnd records the GUID of an end port.
func (c *Core) nameEnd(p topo.PortID, guid ib.GUID) {
	tp := c.topo.Port(p)
	tp.GUID = guid
	c.topo.SetPort(p, tp)
	c.byPort[guid] = p
	c.lids.Back(guid)
	c.groups.Reseat(guid)
	c.pkeys.Moved()
}

// found takes the node that answered behind port p.
func (c *Core) found(p topo.PortID, ni *mad.NodeInfo) {
	c.contests.MakeRoom(p, ni)
	if c.aliases.IsClaimed(ni.PortGUID, p) {
		return
	}
	if old := c.topo.Peer(p); old != topo.None && (c.topo.NodeGUID(c.ports[old].node) != ni.NodeGUID || c.ports[old].num != ni.LocalPortNum) {
		// Another port is there now, perhaps of the same node. Nodes that were reached over the old cable alone go first.
		epoch := c.nodes[c.ports[p].node].epoch
		if c.unlink(p); c.nodes[c.ports[p].node].epoch != epoch {
			return
		}
	}
	if id := c.topo.NodeByGUID(ni.NodeGUID); id != topo.None {
		c.foundKnown(p, id, ni)
	} else {
		c.foundNew(p, ni)
	}
}

// foundNew takes a node that was not known, behind port p.
func (c *Core) foundNew(p topo.PortID, ni *mad.NodeInfo) {
	if twin, ok := c.byPort[ni.PortGUID]; ok {
		c.contests.Duplicate(ni.PortGUID, c.topo.PlaceOf(twin), p)
		return
	}
	found := c.foundAt(p, ni)
	if !c.subtrees.MayHang(&found) {
		return
	}
	if !c.subtrees.MayGrow(&found) {
		c.turnAway(p)
		return
	}
	c.newPeer(p)
	id := c.addNode(ni, p)
	q := c.topo.PortOf(id, ni.LocalPortNum)
	c.link(p, q)
	c.enter(id, q, ni)
}

// foundKnown takes a node that was known, behind port p: where it was, at a cable
// of its own more, or at a place that contradicts what was known.
func (c *Core) foundKnown(p topo.PortID, id topo.NodeID, ni *mad.NodeInfo) {
	q := c.topo.PortOf(id, ni.LocalPortNum)
	tn := c.topo.Node(id)
	if q == p || c.contests.IsOther(id, ni) ||
		tn.Type == ib.NodeSwitch && c.topo.IsExternal(p) && c.members.IsForHost(c.topo.PlaceOf(q)) {
		c.contests.Duplicate(ni.NodeGUID, c.topo.PlaceOf(c.topo.FirstPeer(id)), p)
		return
	}
	switch peer := c.topo.Peer(q); {
	case c.dark(q): // it looks itself when it is well again
	case peer == p:
		c.heard(id)
		c.seenAgain(p, id, ni)
		c.contests.Confirm(p)
	case peer != topo.None && !c.cfg.Weakness.NewestWins:
		c.contests.Contest(peer, p)
	case c.contests.IsContradicted(p, q, ni):
		c.contests.Deny(p, q, ni.PortGUID)
	default:
		c.newPeer(p)
		c.link(p, q)
		if tn.Type != ib.NodeSwitch && c.topo.GUIDOf(q) == 0 {
			c.enterEnd(q, ni.PortGUID)
		} else {
			c.leaveUnread(q)
		}
	}
}

// seenAgain takes NodeInfo of a node that was known: the sizes of its tables may have been misread before. Where an adapter
// has several cables, a port that reports another size is probed again, as one that may belong to another host. Otherwise
// the tables of all ports would shrink because of one answer.
func (c *Core) seenAgain(p topo.PortID, id topo.NodeID, ni *mad.NodeInfo) {
	tn := c.topo.Node(id)
	if keys := identity.KeyCap(ni); tn.PartitionCap != keys {
		if tn.Type != ib.NodeSwitch && c.topo.HasOtherCable(id, c.topo.Peer(p)) {
			c.unlink(p)
			c.q.MarkPort(work.Probe, p)
			return
		}
		tn.PartitionCap = keys
		c.topo.SetNode(id, tn)
		c.pkeys.Moved()
		c.disturb()
		for i := range int(tn.NumPorts) + 1 {
			if p := tn.FirstPort + topo.PortID(i); c.ports[p].known {
				c.touch(p)
			}
		}
	}
}
