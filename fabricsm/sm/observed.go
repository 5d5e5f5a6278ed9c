package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/confirm"
	"portcullis/fabricsm/sm/discovery"
	"portcullis/fabricsm/sm/failures"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/hostwrites"
	"portcullis/fabricsm/sm/notkept"
	"portcullis/fabricsm/sm/pacing"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/quarantine"
	"portcullis/fabricsm/sm/switchinfo"
	"portcullis/fabricsm/sm/traps"
	"portcullis/fabricsm/sm/tree"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// node is what the core keeps of a node besides topo.Node. It is reset, all but
// the epoch, when the node goes.
type node struct {
	epoch uint32 // counts lives of the slot
	alive bool
	due   bool // noted in Core.devices

	turns     work.Turns
	silent    bool
	described bool
	returned  time.Time // when it came back, if its LID was known; else zero
	device    notkept.Device
	notKept   PortFields
	sw        switchinfo.State // of a switch
	look      traps.Look       // because of its traps
	doubt     confirm.Switch   // of a switch
	failures  failures.Node
}

// port is what the core keeps of a port besides topo.Port. There are many: fields
// are in the order of their size.
type port struct {
	info mad.PortInfo

	place ib.Place      // where it was last reported as placed
	pause time.Duration // before the device behind it is looked at again
	host  confirm.Host  // behind it

	node  topo.NodeID
	set   portset.State
	turns pacing.Allowance

	doubts     uint32 // times that its device may have been restarted
	lid        ib.LID
	wrote      hostwrites.State
	num        ib.PortNum
	quarantine quarantine.State // of a switch port

	known  bool // info was read in this life of the link
	unread bool // info is a guess: the answer to the first Set shows the real one, see package unread
	fresh  bool // the link came up without configuration, so tables are written without reading them
	placed bool // PortPlaced was reported

	checked bool // it checked P_Keys, in one direction or both, when it was read first in this life of the link

	background bool // the next read of PortInfo is part of the audit
	obeyed     bool // it answered under its M_Key since its link is there

	// of a port we probe
	verify bool // probe although the peer is known
	mute   bool // of an adapter that does not speak of this port through its others
	told   bool // NodeUnreachable was reported

	due bool // noted in Core.devices
}

// treeFabric is the core as package tree uses it.
type treeFabric struct{ desk }

var _ tree.Fabric = treeFabric{}

func (f treeFabric) Root() (topo.NodeID, topo.PortID) { return f.root, f.rootPort }
func (f treeFabric) IsAlive(id topo.NodeID) bool      { return f.nodes[id].alive }

// Rerouted has a silent node asked at once over a route that is new.
func (f treeFabric) Rerouted(id topo.NodeID, up topo.PortID) {
	if f.nodes[id].silent && up != topo.None {
		f.q.MarkPort(work.Probe, up)
	}
}

// Add makes room for a node that answered for the first time.
func (f finderActions) Add(ni mad.NodeInfo, up topo.PortID) topo.NodeID {
	c := f.Core
	id := c.topo.AddNode(discovery.NodeOf(&ni))
	c.nodes = topo.ExtendNodes(c.nodes, c.topo.NumNodes())
	first := c.topo.Node(id).FirstPort
	c.ports = topo.ExtendPorts(c.ports, c.topo.NumPorts())
	c.q.Extend(c.topo.NumNodes(), c.topo.NumPorts())
	c.lanes.Extend(c.topo.NumPorts())
	c.links.Extend(c.topo.NumPorts())
	c.changes.Extend(c.topo.NumNodes(), c.topo.NumPorts())
	c.pkeys.Extend(c.topo.NumPorts())
	c.lfts.Extend(c.topo.NumNodes())
	c.tree.Extend(c.topo.NumNodes())
	c.mkeys.Grow()
	d := notkept.DeviceAt(&c.topo, &ni, up)
	c.q.ForgetNode(id)
	c.groups.RemoveSwitch(id)
	c.changes.ForgetNode(id)
	c.nodes[id] = node{epoch: c.nodes[id].epoch + 1, alive: true, device: d, notKept: c.notKept.Of(d), due: c.nodes[id].due}
	c.tree.Add(id, up)
	for i := range int(ni.NumPorts) + 1 {
		c.clearPort(first+topo.PortID(i), id, ib.PortNum(i))
	}
	found := f.foundAt(up, &ni)
	c.subtrees.Add(id, &found)
	c.quarantine.Restore(id)
	c.pkeys.Moved()
	if c.lids.Of(ni.PortGUID) != 0 && c.routing.Tables() != nil {
		c.routing.CameBack(ni.NodeType == ib.NodeSwitch)
		c.nodes[id].returned = c.now
	}
	return id
}

// clearPort forgets all that is known of a port.
func (c *Core) clearPort(p topo.PortID, id topo.NodeID, num ib.PortNum) {
	c.q.ForgetPort(p)
	c.ports[p] = port{node: id, num: num, due: c.ports[p].due}
	c.lanes.Forget(p)
	c.links.Forget(p)
	c.changes.ForgetPort(p)
	c.devices.NotePort(p)
	c.law.Acquit(p)
	c.contests.Forget(p)
	c.election.ForgetPort(p)
	c.pkeys.Reset(p)
	c.mkeys.Clear(p)
}

// Drop forgets a node that cannot be reached.
func (f treeFabric) Drop(id topo.NodeID) {
	c := f.Core
	tn := c.topo.Node(id)
	c.subtrees.Remove(id)
	for i := range int(tn.NumPorts) + 1 {
		p := tn.FirstPort + topo.PortID(i)
		if peer := c.topo.Peer(p); peer != topo.None {
			c.cut(p)
		}
		if g := c.topo.GUIDOf(p); g != 0 && c.byPort[g] == p {
			c.mkeys.Rotation().Gone(g)
			delete(c.byPort, g)
			c.lids.Gone(g)
			c.groups.Reseat(g)
		}
		c.ports[p].lid = 0
		c.mkeys.Remove(p)
		c.reports.Forget(p)
		c.guessing.Forget(p)
		c.clearPort(p, id, ib.PortNum(i))
	}
	c.topo.RemoveNode(id)
	c.lfts.Remove(id)
	c.devices.NoteSwitch(id)
	c.faults.Clear(fault.Key{Kind: fault.NodeSilent, GUID: tn.GUID})
	c.faults.Clear(fault.Key{Kind: fault.NoEnforcement, GUID: tn.GUID})
	c.q.ForgetNode(id)
	c.groups.RemoveSwitch(id)
	c.changes.ForgetNode(id)
	c.nodes[id] = node{epoch: c.nodes[id].epoch + 1, due: c.nodes[id].due}
	c.tree.Remove(id)
	if tn.Type == ib.NodeSwitch {
		c.law.Forget(tn.GUID)
		c.routing.Want()
	}
	c.routing.Gone(id)
	c.pkeys.Moved()
}
