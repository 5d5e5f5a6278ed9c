// Package bruteforce detects hosts that try keys until one is accepted.
//
// A place is acted upon only if two things are proven: that a wrong key was shown, and the path by which it came. No trap
// proves either, and a LID proves no path. These do:
//
//   - a notice that a switch of the declared topology has queued, read with a Get
//     under its key. It shows the path of a directed route, which the switches wrote;
//   - a command with a wrong SM_Key that came to ourselves by a directed route.
//
// This proof is not beyond doubt: an SMP whose hop pointer is already past its hop count is taken by the first node that
// gets it (IBTA volume 1, C14-9), with a return path that its sender made up, and neither shows afterwards. So by default a
// place is only reported. An operator whose devices discard such SMPs may have the place switched off.
//
// Adapters are not believed, since their hosts may have changed them. Paths over a switch that the declared topology does
// not vouch for are not believed either. Most devices of today queue no notices: a host that tries M_Keys of those is only
// reported, see violation.KeyGuessing, and an operator has to decide. A host counts as guessing when it shows one device another
// key than before; a tool with no key, or with an old one for each device, does not.
package bruteforce

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Fabric is what a Detector asks of the core, and where it reports a host.
type Fabric interface {
	Now() time.Time
	// Window is the time within which a second wrong key counts.
	Window() time.Duration
	// Root returns the node that this subnet manager is attached to.
	Root() topo.NodeID
	// Own returns our end port.
	Own() topo.PortID
	// PlaceOf returns the place of an end port.
	PlaceOf(end topo.PortID) ib.Place
	// LeadsOn reports whether another node may be behind a port: it is our own, or an external port of a switch.
	LeadsOn(p topo.PortID) bool
	// VouchesFor reports whether the declared topology has a switch where it is.
	VouchesFor(sw topo.NodeID) bool
	// IsDeclared reports whether it has a device at a place that is there.
	IsDeclared(at ib.Place) bool
	// IsManager reports whether another subnet manager is allowed at an end port.
	IsManager(end topo.PortID) bool
	// Accuse reports that the host at a place showed another wrong key.
	Accuse(at ib.Place, node ib.GUID)
}

// trial is the pair of a place and a device to which it showed a wrong key.
type trial struct {
	place  ib.Place
	victim topo.PortID
}

// tried is the wrong key that was shown last.
type tried struct {
	key uint64
	at  time.Time
}

// maxTrials bounds the trials that are remembered.
const maxTrials = 4096

// Detector is the known state of hosts that try keys. Use New.
type Detector struct {
	fabric Fabric
	topo   *topo.Builder
	trials map[trial]tried
	queues map[topo.PortID]*queue
}

// New returns a detector that knows of no trial.
func New(f Fabric, t *topo.Builder) *Detector {
	return &Detector{fabric: f, topo: t, trials: make(map[trial]tried), queues: make(map[topo.PortID]*queue)}
}

// CheckSMKey records a command to us with a wrong SM_Key, by the route on which it came.
func (d *Detector) CheckSMKey(way *mad.Route, key ib.SMKey) {
	back := make([]ib.PortNum, 0, way.Len())
	for i := way.Len() - 1; i >= 0; i-- {
		back = append(back, way.At(i))
	}
	d.countTrial(d.traceSender(d.fabric.Root(), back), d.fabric.Own(), key.Reveal())
}

// checkMKey records a switch's notice of an SMP with a wrong M_Key, and reports whether it proves which host sent the SMP.
func (d *Detector) checkMKey(p topo.PortID, n *mad.Trap256) bool {
	hops := int(n.DRHopCount)
	if !n.DRNotice || n.DRPathTruncated || hops >= len(n.DRReturnPath) || n.DrSLID.IsUnicast() || n.LID.IsUnicast() {
		return false // part of its way is not known, or was routed by LID
	}
	back := slices.Clone(n.DRReturnPath[1 : hops+1])
	slices.Reverse(back)
	return d.countTrial(d.traceSender(d.topo.Port(p).Node, back), p, n.MKey.Reveal())
}

// traceSender walks back along the ports by which a directed route came into each node, the last first, and returns the
// adapter that it began at. It returns None unless the declared topology has that adapter where it is, and all switches on
// the way. Entries beyond the adapter are its own invention. Our own adapter is vouched for by being ours.
func (d *Detector) traceSender(at topo.NodeID, back []ib.PortNum) topo.PortID {
	f := d.fabric
	for i, num := range back {
		p := d.topo.PortOf(at, num)
		if p == topo.None || !f.LeadsOn(p) || !f.VouchesFor(at) && (i > 0 || at != f.Root()) {
			return topo.None
		}
		end := d.topo.Port(p).Peer
		if end == topo.None {
			return topo.None
		}
		if at = d.topo.Port(end).Node; d.topo.Node(at).Type != ib.NodeSwitch {
			if f.IsDeclared(f.PlaceOf(end)) {
				return end
			}
			return topo.None
		}
	}
	return topo.None
}

// countTrial records a wrong key that an adapter showed to a device, and reports whether it is one that may count.
func (d *Detector) countTrial(from, victim topo.PortID, key uint64) bool {
	f := d.fabric
	if key == 0 || from == topo.None || from == f.Own() || f.IsManager(from) {
		return false // one that we work with may have to try two keys on each device
	}
	place, now := f.PlaceOf(from), f.Now()
	name := trial{place, victim}
	was, known := d.trials[name]
	if !known && len(d.trials) >= maxTrials {
		clear(d.trials)
	}
	d.trials[name] = tried{key, now}
	if known && was.key != key && now.Sub(was.at) < f.Window() {
		f.Accuse(place, d.topo.Node(d.topo.Port(from).Node).GUID)
	}
	return true
}
