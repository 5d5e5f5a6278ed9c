package attributes

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/discovery"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Probe is what has to be known of a port to ask for the device at the other end of its cable.
type Probe struct {
	Node        topo.NodeID
	Num         ib.PortNum
	Epoch       uint32 // of the node
	Answers     bool   // the node is part of the fabric, and answers
	IsUp        bool   // the port has a link
	IsTold      bool   // it was reported that no device answers
	Verifies    bool   // the device is asked although it is known
	AsksHost    bool   // the same, before the port is made Active
	PeerAnswers bool   // the node at the other end is known, and answers
}

// Probes is what the handler of NodeInfo asks of the core, and what it has done.
type Probes interface {
	Probe(topo.PortID) Probe
	// IsDark reports whether nothing behind a port is read.
	IsDark(topo.PortID) bool
	// Send asks for NodeInfo along a route, aside: as part of the background audit.
	Send(x work.Ref, epoch uint32, route mad.Route, aside bool)
	// TellUnreachable reports, once, that no device answers behind a link.
	TellUnreachable(topo.PortID)
	// Answered takes that a device answers behind a port.
	Answered(topo.PortID)
	// Close closes the port of a host behind which a switch answers, and reports why.
	Close(r *work.Request, guid ib.GUID, reason string)
	// Admit takes that the device behind a port is what it may be there.
	Admit(topo.PortID)
	// Confirm takes that a host was asked again, by a request.
	Confirm(r *work.Request)
}

// nodeInfo asks for NodeInfo behind ports, and of the node that we are attached to.
type nodeInfo struct{ *Parts }

func (a nodeInfo) Work(x work.Ref) {
	if x.Class == work.Root {
		a.Probes.Send(x, 0, mad.Route{}, false)
		return
	}
	p := x.Port()
	pt := a.Probes.Probe(p)
	if !pt.Answers || !a.Tree.Probes(p) || a.Probes.IsDark(p) || !pt.IsUp || a.Law.Holds(p) {
		return
	}
	if pt.PeerAnswers && !pt.Verifies && !pt.AsksHost {
		return
	}
	if a.Subtrees.IsTooFar(p) {
		if pt.IsTold || !a.Subtrees.HoldChain(p) { // a chain that hangs by one cable is held there
			a.Probes.TellUnreachable(p)
		}
		return
	}
	route, ok := a.Tree.RouteTo(pt.Node).Append(pt.Num)
	if !ok {
		a.Probes.TellUnreachable(p)
		return
	}
	// A link known to be dead is asked now and then like an audit would.
	a.Probes.Send(x, pt.Epoch, route, pt.IsTold || a.Topo.Peer(p) != topo.None && !pt.Verifies)
}

func (a nodeInfo) Got(r *work.Request, m *mad.MAD, status mad.Status) {
	var ni mad.NodeInfo
	if status != mad.StatusOK || mad.Decode(m.Data(), &ni) != nil {
		a.Requests.Refused(r, status.String())
		return
	}
	p, probed := r.Ref.Port(), r.Ref.Class == work.Probe
	if probed && (a.Probes.IsDark(p) || !a.Law.Allows(p, r.Sent, &ni)) {
		return
	}
	if reason := discovery.Check(&ni); reason != "" {
		a.Requests.Refused(r, reason)
		return
	}
	if !probed {
		a.Finder.FoundRoot(&ni)
		return
	}
	if a.Probes.IsDark(p) {
		return
	}
	if ni.NodeType == ib.NodeSwitch && a.Quarantine.IsShunned(p, ni.NodeGUID) {
		return
	}
	place := a.Topo.PlaceOf(p)
	a.Probes.Answered(p)
	if a.Finder.IsPoser(p, &ni) {
		a.Probes.Close(r, ni.NodeGUID, fmt.Sprintf("a switch answers behind %v, where a host belongs; its port stays closed", place))
		return
	}
	a.Probes.Admit(p)
	a.MKeys.Answered(p, &ni)
	if a.Finder.Found(p, &ni) {
		a.Probes.Confirm(r)
	}
}
