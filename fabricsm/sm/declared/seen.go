package declared

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// FoundOwn takes the NodeInfo of the node that we are attached to.
func (l *Law) FoundOwn(ni *mad.NodeInfo) {
	if !l.IsOn() {
		return
	}
	if ni.NodeType == ib.NodeSwitch {
		l.own = verify.Seen{}
		l.judgedOwn(l.judge.AttachSwitch(ni.NodeGUID), ni.NodeGUID)
		return
	}
	l.own = seenBy(ib.Place{}, ni)
}

// seenBy is what a device says of itself behind a switch port.
func seenBy(at ib.Place, ni *mad.NodeInfo) verify.Seen {
	return verify.Seen{
		At: at, GUID: ni.NodeGUID, Port: ni.LocalPortNum, Type: ni.NodeType, NumPorts: ni.NumPorts,
		PortGUID: ni.PortGUID, SystemImage: ni.SystemImageGUID,
	}
}

// judgedOwn takes the ruling on our own place.
func (l *Law) judgedOwn(r verify.Ruling, sw ib.GUID) {
	k := fault.Key{Kind: fault.TopologyProtected, GUID: l.port}
	switch {
	case l.judge.Rooted():
		l.faults.Clear(k)
		l.trusted(sw)
	case l.judge.Mode() > topospec.Observe:
		l.problem(k, &TopologyRefused{Reason: fmt.Sprintf("the subnet manager is not where the declared topology has it: it is behind %v, %s; nothing can be verified: correct the topology or the cable",
			ib.Place{Switch: sw, Port: l.own.At.Port}, l.words(r.Expected))})
	}
	l.follow()
}

// Allows judges what answered behind port p, first thing: it reports whether it
// may become, or remain, part of the fabric.
func (l *Law) Allows(p topo.PortID, sent time.Time, ni *mad.NodeInfo) bool {
	if !l.IsOn() {
		return true
	}
	if !l.topo.IsExternal(p) {
		return l.allowsOwn(p, sent, ni)
	}
	s := seenBy(l.topo.PlaceOf(p), ni)
	try := l.judge.Try(s)
	switch {
	case l.seriously(&try, &s):
		if !l.convicted(p, sent, s) {
			return false
		}
	case l.wavers(p):
		lie := l.asking[p].lie
		if !l.convicted(p, sent, lie) {
			return false
		}
		s = lie
	}
	ruling := l.judge.Link(s)
	l.follow()
	l.noteProven(p, sent, ruling.Verdict)
	if !l.fabric.IsAlive(l.topo.Port(p).Node) || l.fabric.IsDark(p) {
		return false
	}
	switch ruling.Action {
	case verify.Admit:
		return true
	case verify.Keep:
		peer := l.topo.Peer(p)
		return l.fabric.IsProtected(p) || peer != topo.None && l.topo.NodeGUID(l.topo.Port(peer).Node) == ni.NodeGUID && l.topo.Port(peer).Num == ni.LocalPortNum
	default:
		return ruling.Verdict == verify.Held && l.judge.IsSteady(s.At)
	}
}

// seriously reports whether a ruling must be seen twice before it is acted on.
func (l *Law) seriously(r *verify.Ruling, s *verify.Seen) bool {
	if !l.Enforces() || r.Verdict == verify.Verified || r.Verdict == verify.Held || r.Verdict == verify.NotDiscovered {
		return false
	}
	_, was, before := l.judge.At(s.At)
	return was != r.Verdict || before != *s
}

// allowsOwn judges what answered at the other end of our own cable.
func (l *Law) allowsOwn(p topo.PortID, sent time.Time, ni *mad.NodeInfo) bool {
	if ni.NodeType != ib.NodeSwitch {
		return true // two adapters and no switch: there is no place
	}
	l.own.At = ib.Place{Switch: ni.NodeGUID, Port: ni.LocalPortNum}
	ruling := l.judge.Attach(l.own)
	l.noteProven(p, sent, ruling.Verdict)
	l.judgedOwn(ruling, ni.NodeGUID)
	return true
}

// SawBoth reports a verified cable between switches to the judge from its other end, too: each end vouches for the other.
func (l *Law) SawBoth(p, q topo.PortID) {
	if !l.IsOn() || !l.topo.IsExternal(p) || !l.topo.IsExternal(q) || !l.judge.IsVerified(l.topo.PlaceOf(p)) {
		return
	}
	l.judge.Link(l.factBehind(q, p))
	l.follow()
}

// factBehind is what port p shows to the switch port at it is cabled to.
func (l *Law) factBehind(at, p topo.PortID) verify.Seen {
	tn := l.topo.Node(l.topo.Port(p).Node)
	s := verify.Seen{
		At: l.topo.PlaceOf(at), GUID: tn.GUID, Port: l.topo.Port(p).Num, Type: tn.Type, NumPorts: tn.NumPorts,
		PortGUID: l.topo.GUIDOf(l.topo.EntryPort(p)), SystemImage: tn.SystemImageGUID,
	}
	return s
}

// Down records that a switch port has no link, or that the device linked to it is forgotten. A held port stays held
// while its link is up.
func (l *Law) Down(p topo.PortID, physically bool) {
	if !l.IsOn() || !l.topo.IsExternal(p) {
		return
	}
	if physically {
		l.Wavered(p)
		l.Acquit(p)
	}
	at := l.topo.PlaceOf(p)
	if st, v, _ := l.judge.At(at); !physically && (st == verify.StateHeld && v != verify.Held) {
		return
	}
	l.judge.Down(at)
	l.follow()
}

// Forget takes that a switch is not part of the fabric any more.
func (l *Law) Forget(sw ib.GUID) {
	if !l.IsOn() {
		return
	}
	was := l.silent
	l.silent = true
	l.judge.Forget(sw)
	delete(l.waiting, sw)
	l.follow()
	l.silent = was
}

// Holds reports whether nothing is sent through a port, since its switch is not verified.
func (l *Law) Holds(p topo.PortID) bool {
	if !l.Enforces() || !l.topo.IsExternal(p) {
		return false
	}
	sw := l.topo.NodeGUID(l.topo.Port(p).Node)
	if l.judge.Trusts(sw) {
		return false
	}
	if peer := l.topo.Peer(p); peer != topo.None && l.judge.IsSteady(l.topo.PlaceOf(p)) {
		return false
	}
	l.waiting[sw] = true
	return true
}

// trusted records that a switch is verified: work that waited for that goes on.
func (l *Law) trusted(sw ib.GUID) {
	id := l.topo.NodeByGUID(sw)
	if id == topo.None {
		return
	}
	waited := l.waiting[sw]
	delete(l.waiting, sw)
	l.act.Trusted(id, waited)
}

// IsLawful reports whether a place may get grants: the device there is verified, or was, and only its switch is no longer
// verified.
func (l *Law) IsLawful(at ib.Place) bool {
	return l.IsOn() && (l.judge.IsVerified(at) || l.judge.IsSteady(at))
}

// MayBelong reports whether the device behind a switch port may be member of a partition, as far as the declared topology
// says.
func (l *Law) MayBelong(sp topo.PortID) bool {
	return !l.Enforces() || l.IsLawful(l.topo.PlaceOf(sp))
}

// IsDeclared reports whether the declared topology has an end port where it is.
func (l *Law) IsDeclared(p topo.PortID) bool {
	if !l.IsOn() {
		return false
	}
	if l.topo.Node(l.topo.Port(p).Node).Type != ib.NodeSwitch {
		return l.IsLawful(l.topo.PlaceOf(p))
	}
	if l.judge.Trusts(l.topo.NodeGUID(l.topo.Port(p).Node)) {
		return true
	}
	up := l.fabric.Up(l.topo.Port(p).Node)
	return up != topo.None && l.IsLawful(l.topo.PlaceOf(up))
}

// Expects reports whether the declared topology has a device behind a port, so that keys of devices that were verified
// there may be tried. Behind our own port that is the switch that was there last.
func (l *Law) Expects(p topo.PortID) bool {
	if !l.IsOn() {
		return false
	}
	if !l.topo.IsExternal(p) {
		return true
	}
	at := l.topo.PlaceOf(p)
	spec := l.judge.Spec()
	link, peer := spec.LinkAt(spec.SlotOf(topospec.EndAt(at)))
	return link != nil && !peer.IsZero() && (link.State == topospec.Active || link.State == topospec.Maintenance) && l.judge.Trusts(at.Switch)
}
