// Package traps judges the traps that devices send: it answers them, has them listed, and says when the device is looked at.
//
// Any host can send a trap in the name of another one. So its text is listed as a claim (package violation), and only its
// number has a further effect: the device in whose name it came is read again, at once, but not too often. What that read
// finds proves the trap (see [Look]). Traps that are counted against their sender cause at most a report.
//
// The package has no clock and sends nothing. It marks which work is to be done.
package traps

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/settling"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/topo"
)

// Fabric is what a Judge asks of the core.
type Fabric interface {
	// Now returns the time of the step.
	Now() time.Time
	// Root returns the node that this subnet manager is attached to, and our port on it.
	Root() (topo.NodeID, topo.PortID)
	// OwnLID returns our own LID, 0 before it is assigned.
	OwnLID() ib.LID
	// ByLID returns the end port that has a LID now, or None.
	ByLID(ib.LID) topo.PortID
	// IsAlive reports whether a node is part of the fabric.
	IsAlive(topo.NodeID) bool
	// Look returns when a node is looked at.
	Look(topo.NodeID) *Look
	// SuspectPlace returns the place that answers for the behaviour of a node, or zero.
	SuspectPlace(topo.NodeID) ib.Place
	// KeyForAnswer returns the M_Key of an answer to an end port. sure is false if the device may have one that is not shown.
	KeyForAnswer(topo.PortID) (key ib.MKey, sure bool)
}

// Actions is what a Judge has done.
type Actions interface {
	// Answer sends an answer to a LID and queue pair. It returns the answer, which is a copy of a MAD, to be completed.
	Answer(to ib.LID, qp uint32, m *mad.MAD) *mad.MAD
	// LookLater calls Judge.LookDue after a time.
	LookLater(topo.NodeID, time.Duration)
	// ReadSwitch has the state of a switch and of the ports that changed read.
	ReadSwitch(topo.NodeID)
	// Describe has the description of a node read.
	Describe(topo.NodeID)
	// ReadPort has the PortInfo of a port read in the background.
	ReadPort(topo.PortID)
	// Identify has the device behind a switch port asked for its identity, where that is declared.
	Identify(topo.PortID)
	// AskManager asks a port for its SMInfo if another subnet manager is there.
	AskManager(topo.PortID)
}

// Options are the settings of a Judge.
type Options struct {
	Hold         time.Duration // between two looks at a node, at least
	ManagesClass bool          // keys of classes are managed, so their traps are answered by those who do
	Controls     controls.Traps
}

// Judge takes traps. Use New.
type Judge struct {
	fabric  Fabric
	actions Actions
	topo    *topo.Builder
	reports *violation.Log
	health  *health.Records
	tally   *settling.Tally
	opt     Options
}

// Parts are what a Judge works with.
type Parts struct {
	Fabric  Fabric
	Actions Actions
	Topo    *topo.Builder
	Reports *violation.Log
	Health  *health.Records
	Tally   *settling.Tally
}

// New returns a judge. What it works with stays the caller's.
func New(p *Parts, o Options) Judge {
	return Judge{fabric: p.Fabric, actions: p.Actions, topo: p.Topo, reports: p.Reports, health: p.Health, tally: p.Tally, opt: o}
}

// Packet is a MAD that answers no request of ours.
type Packet struct {
	MAD *mad.MAD
	LID ib.LID // source
	QP  uint32 // source queue pair
}

// Take takes a trap of class SubnLID: it represses it, has it listed, and has the device looked at. It returns false if the
// MAD is none.
func (j *Judge) Take(in Packet) bool {
	var n mad.NoticeHeader
	if !in.LID.IsUnicast() || mad.Decode(in.MAD.Data(), &n) != nil {
		return false
	}
	p := j.fabric.ByLID(in.LID)
	t := violation.Trap{MAD: in.MAD, Head: &n, LID: in.LID, From: p, ByAnswer: j.isCausedByAnswer(in.MAD, &n)}
	if !t.ByAnswer {
		j.repress(in, p)
	}
	j.tally.NoteTrap(j.fabric.Now(), in.LID, n.TrapNumber)
	claim := j.reports.NoteTrap(&t)
	j.reports.NoteStorm(in.LID, p)
	if p == topo.None {
		return true
	}
	j.count(p)
	id := j.topo.Port(p).Node
	if !j.fabric.IsAlive(id) || !n.IsGeneric {
		return true
	}
	j.reports.Check(claim)
	switch n.TrapNumber {
	case mad.TrapLinkStateChange, mad.TrapLinkIntegrity, mad.TrapBufferOverrun, mad.TrapFlowControl:
		if j.isSwitch(id) {
			j.lookSoon(id)
		}
	case mad.TrapLocalChange, mad.TrapSystemImageGUID:
		j.actions.AskManager(p) // its priority may have changed
		j.lookSoon(id)
	}
	return true
}

// count counts the traps that come in the name of a host, and those of a switch that prove not to be true. Their sender is
// not proven, so they cause at most a report, whatever the rule says.
func (j *Judge) count(p topo.PortID) {
	id := j.topo.Port(p).Node
	root, _ := j.fabric.Root()
	isSwitch := j.isSwitch(id)
	strike := j.health.StrikeUnproven
	if j.opt.Controls.ProvesSender() {
		strike = j.health.Strike
	}
	switch {
	case id == root || isSwitch && j.fabric.Look(id).IsCredible(j.opt.Hold):
	case isSwitch:
		strike(j.fabric.SuspectPlace(id), j.topo.NodeGUID(id), health.Noisy)
	default:
		strike(j.topo.PlaceOf(p), j.topo.NodeGUID(id), health.Noisy)
	}
}

// repress answers a trap: same transaction, same data. Where the device may have a key that cannot be shown it is not
// answered: under another key the answer would be one more violation, and raise one more trap.
func (j *Judge) repress(in Packet, p topo.PortID) {
	key, sure := j.fabric.KeyForAnswer(p)
	if !sure {
		return
	}
	m := j.actions.Answer(in.LID, in.QP, in.MAD)
	m.SetMKey(key)
	m.Respond(mad.StatusOK)
}

// isCausedByAnswer reports whether a trap is about a TrapRepress of ours that a device with another M_Key, set by its host,
// refused. To answer it would cause one more violation, and one more trap.
func (j *Judge) isCausedByAnswer(m *mad.MAD, head *mad.NoticeHeader) bool {
	if !head.IsGeneric || head.TrapNumber != mad.TrapBadMKey {
		return false
	}
	var n mad.Trap256
	if mad.Decode(m.Data(), &n) != nil {
		return false
	}
	return n.Method == mad.MethodTrapRepress && !n.DRNotice && n.LID != 0 && n.LID == j.fabric.OwnLID()
}

// TakeOfClass takes a trap of a class with keys: a GMP by which a device reports that it was shown a wrong key. It returns
// false if the MAD is none. Where keys of classes are managed, package keymgr answers it and finds out whether it is true.
// Otherwise the device is answered without a key, as it has none of ours, unless the trap shows one.
func (j *Judge) TakeOfClass(in Packet) bool {
	class, ok := mad.LookupKeyClass(in.MAD.Class())
	if !ok {
		return false
	}
	j.tally.Traps++
	j.tally.ClassTraps++
	t := violation.ClassTrap{MAD: in.MAD, Class: class, LID: in.LID, From: j.fabric.ByLID(in.LID), Managed: j.opt.ManagesClass}
	forged, ok := j.reports.NoteClassTrap(&t)
	if ok && t.From != topo.None && !t.Managed && !forged {
		j.actions.Answer(in.LID, in.QP, in.MAD).Respond(mad.StatusOK)
	}
	return ok
}

func (j *Judge) isSwitch(id topo.NodeID) bool { return j.topo.Node(id).Type == ib.NodeSwitch }
