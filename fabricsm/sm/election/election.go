// Package election decides whether this Subnet Manager is master, or leaves the fabric to another one.
//
// Subnet Managers describe themselves with the attribute SMInfo, and command each other with Sets of it (IBTA volume 1,
// 14.4.1). In discovery ours yields to a master, and to one of higher rank that may become it. As standby it polls the
// master, and asks one of lower rank for the fabric. As master it hands over to one of higher rank, or to the highest
// standby when its owner is about to end. Package smrank holds the rules, package smtrust says who is believed.
//
// The package has no clock and sends nothing.
package election

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/smrank"
	"portcullis/fabricsm/sm/smtrust"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Fabric is what an Election knows of the fabric.
type Fabric interface {
	// Now returns the time of the step.
	Now() time.Time
	// Own returns our own end port, None before it is known.
	Own() topo.PortID
	// IsCut reports whether our own port leads nowhere.
	IsCut() bool
	// PortByGUID returns the end port that shows a GUID.
	PortByGUID(ib.GUID) (topo.PortID, bool)
	// PortByLID returns the end port that has a LID now, or None.
	PortByLID(ib.LID) topo.PortID
	// IsGone reports whether the node of a port is silent, or no longer part of the fabric.
	IsGone(topo.PortID) bool
	// Info returns PortInfo of a port as it was last read.
	Info(topo.PortID) *mad.PortInfo
}

// Requests is what an Election has sent, and what it has looked at later.
type Requests interface {
	// Get requests SMInfo of a port. A quiet request does not unsettle the fabric.
	Get(p topo.PortID, quiet bool)
	// Set sends a command to a port, which does not unsettle the fabric. It returns the id of the request.
	Set(topo.PortID, mad.SMInfoControl, mad.SMInfo) uint32
	// Answer answers a request with SMInfo. manager: it came from a Subnet Manager with which this one works.
	Answer(to Asked, status mad.Status, si mad.SMInfo, manager bool)
	// Trap sends a trap to a LID, under a transaction id.
	Trap(ib.LID, ib.TID, mad.Trap144)
	// After raises an alarm after a time.
	After(time.Duration, work.Alarm, work.Ref)
	// ReadLater reads a port in the background.
	ReadLater(topo.PortID)
	// ReadOwn reads our own port in the background, where its node is part of the fabric.
	ReadOwn()
}

// Effects is what an Election has the core do.
type Effects interface {
	// Changed reports a state and the reason for it.
	Changed(ib.SMState, string)
	// Problem reports a state that is a fault, once, and keeps it in the views until it is solved.
	Problem(fault.Key, ib.SMState, string)
	// Solved removes a fault from the views.
	Solved(fault.Key)
	// Rule begins to configure the fabric that was discovered. foreign: another Subnet Manager ruled since this one last did.
	Rule(foreign bool)
	// Unprove forgets which memberships were proven.
	Unprove()
	// Renew has all hosts renew what they registered: another Subnet Manager was master.
	Renew()
	// Doubt reads all again that another Subnet Manager may have changed.
	Doubt()
	// Disturb records that the fabric is not settled any longer.
	Disturb()
	// Described reports how another Subnet Manager describes itself.
	Described(Description)
	// Refused reports a command that was not obeyed.
	Refused(Refusal)
}

// Parts are the parts of a core that an Election looks at or marks.
type Parts struct {
	Topo   *topo.Builder
	Queue  *work.Queue
	Wire   *work.Window
	Timers *work.Timers
	Trust  *smtrust.Trust
}

// Options are what an Election is made with.
type Options struct {
	Config
	GUID     ib.GUID  // of the port this Subnet Manager is attached to
	Priority uint8    // while it is not master, 0 to 15
	Key      ib.SMKey // zero: no other Subnet Manager is believed
	// RetryMin and RetryMax bound the doubling pause between attempts.
	RetryMin, RetryMax time.Duration
}

// Election is where this Subnet Manager stands among the others. Use New.
type Election struct {
	fabric   Fabric
	requests Requests
	effects  Effects
	topo     *topo.Builder
	queue    *work.Queue
	wire     *work.Window
	timers   *work.Timers
	trust    *smtrust.Trust
	o        Options

	own      smrank.Own
	actCount uint32

	master   topo.PortID // standby: the port of the Subnet Manager that is polled
	since    time.Time   // when that one was last seen to be what is expected, or waiting began
	waitFor  topo.PortID // master of lower rank that is to hand over to us, None
	quietAt  time.Time   // when discovery first had nothing left but what does not answer
	asked    bool        // the others were asked again after discovery had come to rest
	foreign  bool        // another Subnet Manager ruled since we last did: LIDs may have changed
	ticks    uint
	mandate  topo.PortID // the Subnet Manager that handed over: it need not be asked again before we are master
	others   map[ib.GUID]*other
	asking   map[topo.PortID]struct{} // ports whose answer discovery waits for
	commands map[topo.PortID]command  // Sets of SMInfo to be sent
	nudge    nudge
	counts   map[topo.PortID]counts
	strays   uint64 // commands from places that are not known
}

// New returns the election of a Subnet Manager that begins to discover.
func New(f Fabric, r Requests, e Effects, parts Parts, o Options) Election {
	return Election{
		fabric: f, requests: r, effects: e,
		topo: parts.Topo, queue: parts.Queue, wire: parts.Wire, timers: parts.Timers, trust: parts.Trust, o: o,
		own:    smrank.Own{GUID: o.GUID, Priority: o.Priority, MasterPriority: o.MasterPriority, State: ib.SMDiscovering},
		master: topo.None, waitFor: topo.None, mandate: topo.None,
		others: make(map[ib.GUID]*other), asking: make(map[topo.PortID]struct{}), commands: make(map[topo.PortID]command),
	}
}

// Start begins to look at our own port, and to poll others where one may be believed.
func (e *Election) Start() {
	e.requests.After(watchEvery, work.Watch, work.Ref{})
	if !e.o.Key.IsZero() {
		e.requests.After(e.o.PollEvery, work.Poll, work.Ref{})
	}
}

// State returns the state of this Subnet Manager. Another one may be shown to others.
func (e *Election) State() ib.SMState { return e.own.State }

// Priority returns the priority that is reported to others, 0 to 15.
func (e *Election) Priority() uint8 { return e.own.Rank().Priority }

// ActCount returns how often SMInfo was requested of this Subnet Manager, and it became master.
func (e *Election) ActCount() uint32 { return e.actCount }

// IsWriting reports whether this Subnet Manager may change devices.
func (e *Election) IsWriting() bool { return e.own.State == ib.SMMaster && !e.own.Barred }

// IsBarred reports whether the owner may not change the fabric now.
func (e *Election) IsBarred() bool { return e.own.Barred }

// at returns the Subnet Manager at a port, nil if none is known there.
func (e *Election) at(p topo.PortID) *other {
	if p == topo.None {
		return nil
	}
	if o := e.others[e.topo.GUIDOf(p)]; o != nil && o.port == p {
		return o
	}
	return nil
}

// isSeen reports whether another Subnet Manager is still at the port at which it described itself.
func (e *Election) isSeen(guid ib.GUID, o *other) bool {
	p, seen := e.fabric.PortByGUID(guid)
	return seen && p == o.port
}

// name names a port in reports.
func (e *Election) name(p topo.PortID) string { return "port " + e.topo.GUIDOf(p).String() }
