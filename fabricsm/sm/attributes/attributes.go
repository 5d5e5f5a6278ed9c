// Package attributes reads and writes attributes of SMPs, one handler for each.
//
// A handler asks the package that decides about its attribute for the next step, makes the request, decodes the answer and
// hands it in. It decides nothing itself. What it needs of the core is behind [Requests], [Ports], [Nodes] and [Probes].
package attributes

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/aliases"
	"portcullis/fabricsm/sm/confirm"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/sm/discovery"
	"portcullis/fabricsm/sm/forwarding"
	"portcullis/fabricsm/sm/hostwrites"
	"portcullis/fabricsm/sm/identity"
	"portcullis/fabricsm/sm/lanes"
	"portcullis/fabricsm/sm/linkspeed"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/sm/pkeys"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/quarantine"
	"portcullis/fabricsm/sm/statechange"
	"portcullis/fabricsm/sm/subtree"
	"portcullis/fabricsm/sm/switchinfo"
	"portcullis/fabricsm/sm/tree"
	"portcullis/fabricsm/sm/unread"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Handler is what becomes of one class of work.
type Handler interface {
	// Work looks at a piece of work and sends the next request for it, if any.
	Work(work.Ref)
	// Got takes an answer, or with an error status what stands for one. The request and the MAD are valid until it returns.
	Got(r *work.Request, m *mad.MAD, status mad.Status)
}

// Requests is how handlers send requests, and say how they ended.
type Requests interface {
	// IsWriting reports whether devices may be changed.
	IsWriting() bool
	// Ask makes a request to a node that is known. It returns its MAD, for the attribute of a Set to be written.
	Ask(x work.Ref, id topo.NodeID, method mad.Method, attr mad.AttrID, mod uint32) *mad.MAD
	// AskAside makes a request as part of the background audit: a Get unsettles nothing.
	AskAside(x work.Ref, id topo.NodeID, method mad.Method, attr mad.AttrID, mod uint32) *mad.MAD
	// Refused takes an answer that is an error, or not what was asked for: the work is tried again after a pause.
	Refused(r *work.Request, reason string)
	// RefusedAfter is Refused for work that has already made a number of pauses.
	RefusedAfter(r *work.Request, rounds int, reason string)
	// Disturb takes that the fabric is not settled any longer.
	Disturb()
	// ShowSoon has a view made soon.
	ShowSoon()
}

// Ports is what handlers ask of the core about ports, and where they hand in PortInfo.
type Ports interface {
	// Port describes a port.
	Port(topo.PortID) portset.Port
	// IsPlaced reports whether an end port was read and its place reported.
	IsPlaced(topo.PortID) bool
	// IsTakenDown reports whether a port is kept without a link. If it has one, that is taken down.
	IsTakenDown(topo.PortID) bool
	// TellEnforcement reports once why the hosts of a switch get no partition.
	TellEnforcement(topo.PortID)
	// Retrain takes a link down, once, that comes up again as it is enabled.
	Retrain(topo.PortID)
	// TakeAside reports whether the next read of PortInfo is part of the audit, and takes it as made.
	TakeAside(topo.PortID) bool
	// Observe takes PortInfo from the answer to a Get, or to a Set.
	Observe(p topo.PortID, pi *mad.PortInfo, byGet bool)
	// SetMute takes that an adapter does not speak of a port through its others.
	SetMute(topo.PortID)
}

// Nodes is what handlers ask of the core about nodes.
type Nodes interface {
	// Switch returns what is kept of SwitchInfo of a switch.
	Switch(topo.NodeID) *switchinfo.State
	// Tables returns what SwitchInfo is to say of forwarding tables.
	Tables(topo.NodeID) switchinfo.Tables
	// IsUnsure reports whether a switch may have lost what was written to it, so that nothing else is.
	IsUnsure(topo.NodeID) bool
	// IsRerouting reports whether new tables are to come.
	IsRerouting() bool
	// KeepsMulticast reports whether a switch has MulticastFDBTop, and whether it keeps the default multicast ports.
	KeepsMulticast(topo.NodeID) (top, ports bool)
	// Rebooted takes that a switch has lost its tables. It reports whether the node is still looked at.
	Rebooted(topo.NodeID) bool
	// Filled takes that SwitchInfo was answered, for views and routes.
	Filled(topo.NodeID)
	// Touch looks again at what is programmed on all ports of a node.
	Touch(topo.NodeID)
	// NotKept returns the fields that a node is known to forget, and Learn takes which it missed of those tried.
	NotKept(topo.NodeID) portset.Fields
	Learn(id topo.NodeID, tried, missed portset.Fields)
	// IsDescribed reports whether NodeDescription was read, and Described takes that it was, and what it is, nil for none.
	IsDescribed(topo.NodeID) bool
	Described(id topo.NodeID, text []byte)
}

// Parts are what handlers work with. They are set before the first use.
type Parts struct {
	Requests Requests
	Ports    Ports
	Nodes    Nodes
	Probes   Probes
	Gate     portset.Gate

	Topo       *topo.Builder
	Queue      *work.Queue
	Tables     *forwarding.Tables
	Groups     *multicast.Groups
	PKeys      *pkeys.Keeper
	Aliases    *aliases.Table
	Adapters   *hostwrites.Watcher
	Lanes      *lanes.Lanes
	Links      *linkspeed.Links
	Settings   *portset.Settings
	MKeys      *mkeys.Keeper
	Unread     *unread.Reader
	Changes    *statechange.Search
	Contests   *identity.Contests
	Switches   *confirm.Switches
	Tree       *tree.Tree
	Law        *declared.Law
	Subtrees   *subtree.Tracker
	Finder     *discovery.Finder
	Quarantine *quarantine.Keeper

	info mad.PortInfo // of the answer that is looked at
}

// Handlers returns the handlers of the classes that this package knows; nil for others.
func (p *Parts) Handlers() [work.NumClasses]Handler {
	return [work.NumClasses]Handler{
		work.Root: nodeInfo{p}, work.Probe: nodeInfo{p}, work.Switch: switchInfo{p}, work.Info: portInfo{p}, work.PKey: pkeyTable{p}, work.LFT: linearTable{p},
		work.SLtoVL: Lanes{p}, work.VLArb: Lanes{p}, work.Set: portSet{p}, work.Desc: description{p},
		work.MFT: multicastTable{p}, work.GUID: guidInfo{p}, work.Vendor: extendedInfo{p},
	}
}

// nodeOf returns the node of a port.
func (p *Parts) nodeOf(q topo.PortID) topo.NodeID { return p.Topo.Port(q).Node }
