// Package discovery decides what it means when a node answers behind a port: the node is new, known to be there, known to be
// elsewhere, or not to be believed.
//
// It has no clock and sends nothing. It asks the core to add nodes and to link ports, and marks which are to be read.
package discovery

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/identity"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Fabric is what a Finder asks of the core. NodeInfo is passed as a value, so that answers stay off the heap.
type Fabric interface {
	// Root returns the node that this subnet manager is attached to, and our port on it.
	Root() (topo.NodeID, topo.PortID)
	// IsAlive reports whether a node is part of the fabric.
	IsAlive(topo.NodeID) bool
	// Life returns how often the slot of a node was used.
	Life(topo.NodeID) uint32
	// PortByGUID returns the end port that shows a GUID.
	PortByGUID(ib.GUID) (topo.PortID, bool)
	// IsDark reports whether nothing behind a port is read.
	IsDark(topo.PortID) bool
	// IsForHost reports whether inventory has a host at a place.
	IsForHost(ib.Place) bool
	// IsAlias reports whether a GUID that answers behind a port is an alias of another port.
	IsAlias(ib.GUID, topo.PortID) bool
	// Admit decides whether a new node may become part of the fabric.
	Admit(topo.PortID, mad.NodeInfo) Admission
}

// Admission is what is done with a new node.
type Admission uint8

// Admissions.
const (
	Admitted Admission = iota
	PutOff             // it is asked again when the level of discovery ends
	TurnedAway
)

// Actions is what a Finder has done.
type Actions interface {
	// AddRoot adds the node that we are attached to. It returns our port on it, too.
	AddRoot(mad.NodeInfo) (topo.NodeID, topo.PortID)
	// Add adds a node that is asked over a port.
	Add(ni mad.NodeInfo, up topo.PortID) topo.NodeID
	// Link records a cable.
	Link(p, q topo.PortID)
	// Unlink takes a cable away, and what could be reached over it alone.
	Unlink(topo.PortID)
	// Heard takes a sign of life.
	Heard(topo.NodeID)
	// Name records the GUID of an end port.
	Name(topo.PortID, ib.GUID)
	// LeaveUnread leaves the far end of a new link unread, unless it must be read.
	LeaveUnread(topo.PortID)
	// Describe has a node asked what it calls itself.
	Describe(topo.NodeID)
	// EnterSwitch has the ports of a new switch read when nothing nearer to us is left to be found. The switch was found
	// behind a port, None for the root.
	EnterSwitch(topo.NodeID, topo.PortID)
	// TurnAway looks later at a node behind a port that there is no room for.
	TurnAway(topo.PortID)
	// Resized takes that the tables of a node have another size.
	Resized(topo.NodeID)
}

// Finder takes nodes that answer. Use New.
type Finder struct {
	fabric   Fabric
	actions  Actions
	topo     *topo.Builder
	queue    *work.Queue
	contests *identity.Contests
	controls controls.Ports
}

// New returns a finder.
func New(f Fabric, a Actions, t *topo.Builder, q *work.Queue, c *identity.Contests, s controls.Ports) *Finder {
	return &Finder{fabric: f, actions: a, topo: t, queue: q, contests: c, controls: s}
}

// FoundRoot takes the node we are attached to.
func (f *Finder) FoundRoot(ni *mad.NodeInfo) {
	if root, _ := f.fabric.Root(); root != topo.None && f.fabric.IsAlive(root) && f.topo.NodeGUID(root) == ni.NodeGUID {
		f.actions.Heard(root)
		return
	}
	id, p := f.actions.AddRoot(*ni)
	f.enter(id, p, ni)
}

// IsPoser reports whether a switch answers where inventory has a host. A port towards a switch checks no P_Keys.
func (f *Finder) IsPoser(p topo.PortID, ni *mad.NodeInfo) bool {
	return ni.NodeType == ib.NodeSwitch && f.topo.IsExternal(p) && f.fabric.IsForHost(f.topo.PlaceOf(p))
}

// Found takes the node that answered behind port p. It reports whether p is linked with the port that answered.
func (f *Finder) Found(p topo.PortID, ni *mad.NodeInfo) bool {
	f.contests.Rename(p, ni)
	f.found(p, ni)
	peer := f.topo.Peer(p)
	return peer != topo.None && f.isShown(peer, ni)
}

// isShown reports whether NodeInfo is that of a port.
func (f *Finder) isShown(q topo.PortID, ni *mad.NodeInfo) bool {
	tp := f.topo.Port(q)
	return f.topo.NodeGUID(tp.Node) == ni.NodeGUID && tp.Num == ni.LocalPortNum
}

func (f *Finder) found(p topo.PortID, ni *mad.NodeInfo) {
	f.contests.MakeRoom(p, ni)
	if f.fabric.IsAlias(ni.PortGUID, p) {
		return
	}
	if old := f.topo.Peer(p); old != topo.None && !f.isShown(old, ni) {
		// Another port is there now, perhaps of the same node. Nodes that were reached over the old cable alone go first.
		own := f.topo.Port(p).Node
		life := f.fabric.Life(own)
		if f.actions.Unlink(p); f.fabric.Life(own) != life {
			return
		}
	}
	if id := f.topo.NodeByGUID(ni.NodeGUID); id != topo.None {
		f.foundKnown(p, id, ni)
	} else {
		f.foundNew(p, ni)
	}
}

// foundNew takes a node that was not known, behind port p.
func (f *Finder) foundNew(p topo.PortID, ni *mad.NodeInfo) {
	if twin, ok := f.fabric.PortByGUID(ni.PortGUID); ok {
		f.contests.Duplicate(ni.PortGUID, f.topo.PlaceOf(twin), p)
		return
	}
	switch f.fabric.Admit(p, *ni) {
	case PutOff:
		return
	case TurnedAway:
		f.actions.TurnAway(p)
		return
	case Admitted:
	}
	f.clear(p)
	id := f.actions.Add(*ni, p)
	q := f.topo.PortOf(id, ni.LocalPortNum)
	f.actions.Link(p, q)
	f.enter(id, q, ni)
}

// foundKnown takes a node that was known, behind port p: where it was, at a cable
// of its own more, or at a place that contradicts what was known.
func (f *Finder) foundKnown(p topo.PortID, id topo.NodeID, ni *mad.NodeInfo) {
	q := f.topo.PortOf(id, ni.LocalPortNum)
	tn := f.topo.Node(id)
	if q == p || f.contests.IsOther(id, ni) ||
		tn.Type == ib.NodeSwitch && f.topo.IsExternal(p) && f.fabric.IsForHost(f.topo.PlaceOf(q)) {
		f.contests.Duplicate(ni.NodeGUID, f.topo.PlaceOf(f.topo.FirstPeer(id)), p)
		return
	}
	switch peer := f.topo.Peer(q); {
	case f.fabric.IsDark(q): // it looks itself when it is well again
	case peer == p:
		f.actions.Heard(id)
		f.seenAgain(p, id, ni)
		f.contests.Confirm(p)
	case peer != topo.None && f.controls.Contests():
		f.contests.Contest(peer, p)
	case f.contests.IsContradicted(p, q, ni):
		f.contests.Deny(p, q, ni.PortGUID)
	default:
		f.clear(p)
		f.actions.Link(p, q)
		if tn.Type != ib.NodeSwitch && f.topo.GUIDOf(q) == 0 {
			f.enterEnd(q, ni.PortGUID)
		} else {
			f.actions.LeaveUnread(q)
		}
	}
}

// Join links port p with an end port of a known adapter, which shows a GUID.
func (f *Finder) Join(p, end topo.PortID, guid ib.GUID) {
	f.clear(p)
	f.actions.Name(end, guid)
	f.actions.Link(p, end)
}

// clear makes port p ready to be linked to something new.
func (f *Finder) clear(p topo.PortID) {
	if f.topo.Peer(p) != topo.None {
		f.actions.Unlink(p)
	}
	f.contests.Unfence(p)
}

// enter asks a new node all there is to know. p is the port it was entered by.
func (f *Finder) enter(id topo.NodeID, p topo.PortID, ni *mad.NodeInfo) {
	f.actions.Describe(id)
	if ni.NodeType != ib.NodeSwitch {
		f.enterEnd(p, ni.PortGUID)
		return
	}
	up := f.topo.Peer(p)
	if up != topo.None {
		f.actions.LeaveUnread(p)
	}
	f.queue.MarkNode(work.Switch, id)
	first := f.topo.Node(id).FirstPort
	f.actions.Name(first, ni.PortGUID)
	f.queue.MarkPort(work.Info, first)
	f.actions.EnterSwitch(id, up)
}

// enterEnd begins with a port of a CA or router.
func (f *Finder) enterEnd(p topo.PortID, guid ib.GUID) {
	f.actions.Name(p, guid)
	if _, own := f.fabric.Root(); p == own {
		f.queue.MarkPort(work.Info, p)
		return
	}
	f.actions.LeaveUnread(p)
}

// seenAgain takes NodeInfo of a node that was known: the sizes of its tables may have been misread before. Where an adapter
// has several cables, a port that reports another size is probed again, as one that may belong to another host. Otherwise
// the tables of all ports would shrink because of one answer.
func (f *Finder) seenAgain(p topo.PortID, id topo.NodeID, ni *mad.NodeInfo) {
	tn := f.topo.Node(id)
	keys := identity.KeyCap(ni)
	if tn.PartitionCap == keys {
		return
	}
	if tn.Type != ib.NodeSwitch && f.topo.HasOtherCable(id, f.topo.Peer(p)) {
		f.actions.Unlink(p)
		f.queue.MarkPort(work.Probe, p)
		return
	}
	tn.PartitionCap = keys
	f.topo.SetNode(id, tn)
	f.actions.Resized(id)
}
