// Package declared compares the fabric with the topology that an operator declared, and says what follows: which ports are
// held or switched off, which devices may be part of the fabric, and which differences are reported.
//
// Package judge finds the verdicts. A Law feeds it what answers, looks twice before a device is cut off, keeps what has to
// survive a restart, and describes differences for people. It sends nothing, and has no clock.
package declared

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// Fabric is what a Law knows of the core.
type Fabric interface {
	// Now returns the time of the step.
	Now() time.Time
	// Own returns our own end port, None before it is known.
	Own() topo.PortID
	// Root returns the node that this subnet manager is attached to, and our port on it.
	Root() (topo.NodeID, topo.PortID)
	// IsAlive reports whether a node is part of the fabric.
	IsAlive(topo.NodeID) bool
	// Up returns the port of the node nearer to us by which a node is asked.
	Up(topo.NodeID) topo.PortID
	// IsProtected reports whether no action may be taken on a port.
	IsProtected(topo.PortID) bool
	// IsDark reports whether nothing behind a port is looked at.
	IsDark(topo.PortID) bool
}

// Actions is what a Law has the core do.
type Actions interface {
	// Report has an event sent.
	Report(fault.Event)
	// Save makes something survive a restart.
	Save(Saved)
	// Impose brings a switch port under ActionOn, and ImposeEverywhere all of them.
	Impose(topo.PortID)
	ImposeEverywhere()
	// Trusted follows that a switch is verified; waited: work was put off for that, see Holds.
	Trusted(sw topo.NodeID, waited bool)
	// Changed looks again at both ends of a link of which the verdict changed.
	Changed(topo.PortID)
	// Disturb records that the fabric is not settled any longer.
	Disturb()
	// Doubt asks again what is behind a port; after some tries, later.
	Doubt(p topo.PortID, tries int)
	// Pause leaves a port alone for a while.
	Pause(topo.PortID)
	// Activated follows that another revision is in force, and Retired that a revision may have retired devices.
	Activated(was, now *topospec.Spec, m topospec.Mode)
	Retired()
}

// Order puts a declared topology, or another mode, into force.
type Order struct {
	Spec *topospec.Spec // nil: nothing is compared any longer
	Mode topospec.Mode
	By   string // name of the operator
	Back bool   // it was enforced before
}

// Saved is what survives a restart: the mode in force, or what was done to a port.
type Saved struct {
	IsMode bool
	Place  ib.Place // of a port
	Mark   string   // mode and content, or the verdict; "": it no longer holds
	Seen   string   // the device that was seen there
	Since  time.Time
}

// New returns a law without a topology.
func New(f Fabric, a Actions, t *topo.Builder, q *work.Queue, faults *fault.List, port ib.GUID) *Law {
	return &Law{
		fabric: f, act: a, topo: t, queue: q, faults: faults, port: port,
		asking: make(map[topo.PortID]*suspicion), proven: make(map[topo.PortID]time.Time), waverings: make(map[topo.PortID]*wavering),
		waiting: make(map[ib.GUID]bool), letGo: make(map[ib.Place]bool), rows: rows{at: make(map[ib.Place]TopologyPort)},
	}
}

// Law is the declared topology in force, and what is known by it. Use New.
type Law struct {
	fabric Fabric
	act    Actions
	topo   *topo.Builder
	queue  *work.Queue
	faults *fault.List
	port   ib.GUID // our own

	judge  *verify.Judge // nil: none
	wanted topospec.Mode
	by     string
	since  time.Time   // when the revision, or its mode, was put into force
	own    verify.Seen // our adapter as it answered; GUID 0: a switch, or not known
	trial  bool        // it enforces, and whether it may is decided before the first write
	back   bool        // it was enforced before
	silent bool        // changes are not reported

	asking    map[topo.PortID]*suspicion
	proven    map[topo.PortID]time.Time // links that were as expected, by when that was asked; only while asking
	waverings map[topo.PortID]*wavering
	waiting   map[ib.GUID]bool // switches that are not verified and behind which something is not asked
	guard     *verify.Guard
	guardOf   *topo.Fabric
	todo      []verify.Change
	busy      bool
	letGo     map[ib.Place]bool // were switched off and are to be no longer; true: were read since
	rows      rows
}

// IsOn reports whether a topology is declared.
func (l *Law) IsOn() bool { return l.judge != nil }

// Enforces reports whether differences have consequences.
func (l *Law) Enforces() bool { return l.judge != nil && l.judge.Mode() == topospec.Enforce }

// Start takes the configured topology and the saved state.
func (l *Law) Start(in *Order, facts []Saved) {
	saved := sorted(facts)
	l.wanted, l.back, l.since = in.Mode, in.Back, l.fabric.Now()
	if in.Spec != nil {
		l.judge = verify.New(in.Spec, in.Mode, l.isGuarded)
		if !saved.since.IsZero() && saved.mode == markOf(in.Spec, in.Mode) {
			l.since = saved.since
		}
		l.trial = in.Mode == topospec.Enforce && saved.mode != markOf(in.Spec, topospec.Enforce)
	}
	for _, f := range saved.ports {
		l.restore(f)
	}
	if l.judge != nil {
		l.judge.Changes() // none is new
	}
}

// problem reports a fault, once, and keeps it in the views until it is solved.
func (l *Law) problem(k fault.Key, e fault.Event) {
	if l.faults.Set(k, e.String()) {
		l.act.Report(e)
	}
}

// WantsEnforcement reports whether enforcement is asked for, in force or not yet.
func (l *Law) WantsEnforcement() bool { return l.IsOn() && l.wanted == topospec.Enforce }

// Spec returns the declared topology, nil without one.
func (l *Law) Spec() *topospec.Spec {
	if !l.IsOn() {
		return nil
	}
	return l.judge.Spec()
}

// Trusts reports whether a switch is verified.
func (l *Law) Trusts(sw ib.GUID) bool { return l.IsOn() && l.judge.Trusts(sw) }

// VerdictAt returns the verdict on a switch port. There has to be a topology.
func (l *Law) VerdictAt(at ib.Place) verify.Verdict {
	_, v, _ := l.judge.At(at)
	return v
}

// IsLetGo reports whether a switch port was switched off, and is to be no longer.
func (l *Law) IsLetGo(at ib.Place) bool {
	_, ok := l.letGo[at]
	return ok
}

// Describe names a switch port, and what belongs there, in words; "" if nothing is declared there.
func (l *Law) Describe(at ib.Place) (where, peer string) {
	if !l.IsOn() || at.IsZero() {
		return "", ""
	}
	spec := l.judge.Spec()
	link, other := spec.LinkAt(spec.SlotOf(topospec.EndAt(at)))
	if link == nil {
		return "", ""
	}
	return spec.Where(topospec.EndAt(at)), l.words(other)
}

// IsRetired reports whether a GUID, of a node or a port, is of a device that the declared topology has retired and
// enforcement keeps out wherever it is shown.
func (l *Law) IsRetired(guid ib.GUID) bool {
	if !l.Enforces() {
		return false
	}
	spec := l.judge.Spec()
	id := spec.Other(topospec.None, guid)
	return id != topospec.None && spec.Device(id).Stock == topospec.Retired
}
