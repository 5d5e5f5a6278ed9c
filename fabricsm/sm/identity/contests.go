// Package identity finds out which of two places is right when both show the same GUID.
//
// No authority vouches for a node GUID, and any device can show the GUID of another. So a place at which a GUID was seen
// first is asked again before a second place is believed. A place that a grant names for a GUID goes before all others.
//
// It has no clock and sends nothing. It marks which ports have to be read, and asks the core to link and to close ports.
package identity

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Fabric is what Contests ask of the core.
type Fabric interface {
	// Root returns the node that this subnet manager is attached to.
	Root() topo.NodeID
	// Own returns our own end port.
	Own() topo.PortID
	// PortByGUID returns the end port that shows a GUID.
	PortByGUID(ib.GUID) (topo.PortID, bool)
	// IsKnown reports whether PortInfo of a port was read in this life of its link.
	IsKnown(topo.PortID) bool
	// IsUp reports whether a port has a link, as it was last read.
	IsUp(topo.PortID) bool
	// IsMute reports whether an adapter does not speak of a port through its other ports.
	IsMute(topo.PortID) bool
	// IsEntitled reports whether a grant names a place for a port GUID.
	IsEntitled(ib.GUID, ib.Place) bool
	// MayJoin reports whether a port GUID belongs at a place: by a grant, by the declared topology or by its key.
	MayJoin(ib.GUID, ib.Place) bool
	// IsForHost reports whether inventory has a host at a place.
	IsForHost(ib.Place) bool
}

// Actions is what Contests have done.
type Actions interface {
	// Verify has a port ask what is behind it although that is known.
	Verify(topo.PortID)
	// Close unlinks a port and takes its link down. It reports whether the node of the port is still part of the fabric.
	Close(topo.PortID) bool
	// LookLater looks again at what is behind a port after a pause.
	LookLater(topo.PortID)
	// Join links a port with an end port, which shows a GUID.
	Join(p, end topo.PortID, guid ib.GUID)
	// Unname removes the GUID from an end port.
	Unname(topo.PortID, ib.GUID)
	// ReportTwin reports that a GUID is at two places.
	ReportTwin(guid ib.GUID, first, second ib.Place)
	// TwinGone withdraws that report.
	TwinGone(second ib.Place)
}

// Contests are the ports whose identity is in question. Use New.
type Contests struct {
	fabric  Fabric
	actions Actions
	topo    *topo.Builder
	queue   *work.Queue
	ports   map[topo.PortID]state // without those in whose state is nothing
}

// state is what is kept of a port.
type state struct {
	claim      ib.GUID     // GUID the challenger says this further port of an adapter has
	challenger topo.PortID // claims to be what this port is linked to; None
	denied     uint8       // times that the port it claims to lead to said that it has no link
	fenced     bool        // the device behind it shows a GUID that is elsewhere
}

var nothing = state{challenger: topo.None}

// New returns the contests of an empty fabric.
func New(f Fabric, a Actions, t *topo.Builder, q *work.Queue) *Contests {
	return &Contests{fabric: f, actions: a, topo: t, queue: q}
}

func (c *Contests) of(p topo.PortID) state {
	if s, ok := c.ports[p]; ok {
		return s
	}
	return nothing
}

func (c *Contests) set(p topo.PortID, s state) {
	switch {
	case s == nothing:
		delete(c.ports, p)
	case c.ports == nil:
		c.ports = map[topo.PortID]state{p: s}
	default:
		c.ports[p] = s
	}
}

// Forget forgets all that is known of a port.
func (c *Contests) Forget(p topo.PortID) { delete(c.ports, p) }

// IsOpen reports whether another port claims to be what a port is linked to.
func (c *Contests) IsOpen(p topo.PortID) bool { return c.of(p).challenger != topo.None }

// IsFenced reports whether a port is closed because of a GUID that is elsewhere.
func (c *Contests) IsFenced(p topo.PortID) bool { return c.of(p).fenced }

// Contest begins to find out which of two places is right: behind port newcomer a port answers that is known to be linked
// to port known. Either the cable was moved, or two nodes have one GUID. The known place is asked again.
func (c *Contests) Contest(known, newcomer topo.PortID) {
	s := c.of(known)
	s.challenger = newcomer
	c.set(known, s)
	c.actions.Verify(known)
	c.queue.MarkPort(work.Info, known)
	c.queue.MarkPort(work.Probe, known)
}

// IsContradicted reports whether the port q, to which p is said to lead, does not agree, or was not asked yet. That is so
// for a port of a switch that reports that its link is down. It is also so for a further port of an adapter that inventory
// does not have there and that did not get its key there. Otherwise any host could show another's node GUID, join its node
// and fall silent in its name.
func (c *Contests) IsContradicted(p, q topo.PortID, ni *mad.NodeInfo) bool {
	if c.fabric.IsKnown(q) {
		return !c.fabric.IsUp(q)
	}
	return ni.NodeType != ib.NodeSwitch && !c.fabric.IsMute(q) && !c.fabric.MayJoin(ni.PortGUID, c.topo.PlaceOf(p))
}

// maxDenied is how often a port may report that it has no link before the node that claims to be at its end is taken for
// another one. The link may have come up just now.
const maxDenied = 2

// Deny looks at port q once more; it links with p when it agrees.
func (c *Contests) Deny(p, q topo.PortID, claim ib.GUID) {
	s := c.of(p)
	if c.fabric.IsKnown(q) {
		s.denied++
	}
	if s.denied > maxDenied {
		s.denied = 0
		c.set(p, s)
		id := c.topo.Port(q).Node
		c.Duplicate(c.topo.NodeGUID(id), c.topo.PlaceOf(c.topo.FirstPeer(id)), p)
		return
	}
	c.set(p, s)
	s = c.of(q)
	s.challenger, s.claim = p, claim
	c.set(q, s)
	c.queue.MarkPort(work.Info, q)
}

// Linked records that a port is linked: what it leads to agrees.
func (c *Contests) Linked(p topo.PortID) {
	s := c.of(p)
	s.denied = 0
	c.set(p, s)
}

// Settle ends the contest of port q, which was read and has a link. A further port of an adapter, which says through
// another one that it has a link, is linked with the port behind which it was seen. It reports whether there was a contest.
func (c *Contests) Settle(q topo.PortID) bool {
	s := c.of(q)
	claimant := s.challenger
	if claimant == topo.None {
		return false
	}
	claim := s.claim
	s.challenger, s.claim = topo.None, 0
	c.set(q, s)
	if c.agrees(q, claimant, claim) {
		c.actions.Join(claimant, q, claim)
	} else {
		c.queue.MarkPort(work.Probe, claimant)
	}
	return true
}

// agrees reports whether port q may be linked with a port behind which it was seen under the GUID claim.
func (c *Contests) agrees(q, claimant topo.PortID, claim ib.GUID) bool {
	taken, ok := c.fabric.PortByGUID(claim)
	if claim == 0 || c.topo.IsExternal(q) || !c.fabric.IsUp(claimant) || c.topo.Peer(claimant) != topo.None || ok && taken != q {
		return false
	}
	g := c.topo.GUIDOf(q)
	return g == 0 || g == claim
}

// Confirm ends a contest in favour of the place known first.
func (c *Contests) Confirm(known topo.PortID) {
	challenger := c.close(known)
	if challenger == topo.None || !c.fabric.IsUp(challenger) {
		return
	}
	peer := c.topo.Port(c.topo.Peer(known))
	c.Duplicate(c.topo.NodeGUID(peer.Node), c.topo.PlaceOf(known), challenger)
}

// Release ends the contest of a port whose link is gone, and has the claimant look again.
func (c *Contests) Release(p topo.PortID) {
	if challenger := c.close(p); challenger != topo.None {
		c.queue.MarkPort(work.Probe, challenger)
	}
}

// close ends the contest of a port, and returns the port that claimed its place.
func (c *Contests) close(p topo.PortID) topo.PortID {
	s := c.of(p)
	challenger := s.challenger
	if challenger != topo.None {
		s.challenger = topo.None
		c.set(p, s)
	}
	return challenger
}

// Duplicate closes port p, behind which a GUID answers that is elsewhere, and
// looks at it again later: the twin may have gone.
func (c *Contests) Duplicate(guid ib.GUID, first ib.Place, p topo.PortID) {
	if !c.actions.Close(p) {
		return
	}
	if s := c.of(p); !s.fenced {
		s.fenced = true
		c.set(p, s)
		c.actions.ReportTwin(guid, first, c.topo.PlaceOf(p))
	}
	c.actions.LookLater(p)
}

// Unfence opens a port that was closed because of a duplicate.
func (c *Contests) Unfence(p topo.PortID) {
	if s := c.of(p); s.fenced {
		s.fenced = false
		c.set(p, s)
		c.actions.TwinGone(c.topo.PlaceOf(p))
	}
}
