package sm

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/smrank"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// ElectionConfig decides which subnet manager is master where there are several. The zero value of a field means its
// default.
type ElectionConfig struct {
	// MasterPriority is the priority while this SM is master, 0 to 15. Above
	// Config.Priority it keeps a new SM of the same priority from taking over,
	// so that mastership does not go to and fro. Default: Config.Priority.
	MasterPriority uint8

	// Allowed are the other SMs that this one works with. With a list no other SM is believed, and the SM_Key is shown only
	// to those on it. Without one this SM yields to any SM that shows the SM_Key, obeys no commands, and shows its own
	// SM_Key to no SM.
	Allowed []AllowedSM

	// PollEvery is how often a standby asks the master for its SMInfo; default
	// 500 ms. Misses tries in a row without an answer mean that the master is
	// dead; default 4. A dead master is noticed within PollEvery + Misses x the
	// owner's timeout.
	PollEvery time.Duration
	Misses    int

	// Patience is how long another SM may take to become master when it should,
	// or to hand over; default 5 s.
	Patience time.Duration
}

func (e *ElectionConfig) setDefaults(priority uint8) {
	e.MasterPriority = max(e.MasterPriority, priority)
	def(&e.PollEvery, 500*time.Millisecond)
	def(&e.Misses, 4)
	def(&e.Patience, 5*time.Second)
}

func (k *configChecker) election(e *ElectionConfig) {
	k.atMost("priority of the master", int(e.MasterPriority), 15)
	k.notNegative("time between polls", int64(e.PollEvery))
	k.notNegative("misses", int64(e.Misses))
	k.notNegative("patience", int64(e.Patience))
}

// election is where this SM stands among the others.
type election struct {
	master  topo.PortID // standby: the port of the SM that is polled
	since   time.Time   // when that one was last seen to be what is expected, or waiting began
	waitFor topo.PortID // master of lower rank that is to hand over to us, None
	quietAt time.Time   // when discovery first had nothing left but what does not answer
	asked   bool        // the others were asked again after discovery had come to rest
	foreign bool        // another SM ruled since we last did: LIDs may have changed
	ticks   uint
	mandate topo.PortID // the SM that handed over: it need not be asked again before we are master

	asking   map[topo.PortID]struct{} // SMs whose answer discovery waits for
	commands map[topo.PortID]command  // Sets of SMInfo to be sent
	strays   uint64                   // commands from places that are not known
	nudge    nudge
}

// elect ends discovery: this SM becomes master, or leaves the fabric to another.
// It reports whether there is new work.
func (c *Core) elect() bool {
	e := &c.election
	if c.self.Barred || e.waitFor != topo.None || c.ownLinkDown() || c.looksOn() {
		return false
	}
	if !e.asked {
		// An SM that was asked early may not have known yet that it may show us its key, or what its own state would be.
		e.asked = true
		if c.askOthers() {
			return true
		}
	}
	p := c.ruler()
	switch {
	case p == topo.None:
		c.becomeMaster()
	case c.self.Claims && !c.self.IsBelow(&c.otherAt(p).Other):
		c.awaitHandover(p)
	default:
		c.standBy(p)
	}
	return true
}

// ruler returns the port of the SM to which discovery has to yield: a master, else one of higher rank that is about to be.
// It returns None if there is no such SM.
func (c *Core) ruler() topo.PortID {
	var best *otherSM
	for guid, o := range c.others {
		p, seen := c.byPort[guid]
		if !seen || o.port != p || o.stale || !c.self.YieldsTo(&o.Other) {
			continue
		}
		if best == nil || o.IsBefore(&best.Other) {
			best = o
		}
	}
	if best == nil {
		return topo.None
	}
	return best.port
}

// weigh does what follows from how another SM describes itself.
func (c *Core) weigh(p topo.PortID, o *otherSM) {
	e := &c.election
	m := c.otherAt(e.master)
	_, handing := e.commands[p]
	mayRival := o.Trusted && c.self.Shown() == ib.SMMaster
	switch c.self.Weigh(&o.Other, smrank.Moment{
		Polled: p == e.master, Handing: handing, Late: c.now.Sub(e.since) > c.cfg.Election.Patience, Ruled: m != nil && m.State == ib.SMMaster,
		Waits: e.waitFor != topo.None, Awaited: p == e.waitFor,
	}) {
	case smrank.Nothing:
	case smrank.MasterRules:
		e.since, c.self.Stubborn = c.now, false
	case smrank.MasterIsLower:
		e.since, c.self.Stubborn = c.now, false
		c.nudgeMaster(p)
	case smrank.MasterLeft:
		c.takeOver(false, "the master stepped down")
	case smrank.MasterIsLate:
		c.self.Stubborn = true
		c.takeOver(false, fmt.Sprintf("port %v does not become master", c.topo.GUIDOf(p)))
	case smrank.OtherRules:
		c.standBy(p)
	case smrank.HandOver:
		c.handOver(p, o)
	case smrank.AwaitHandover:
		c.awaitHandover(p)
	case smrank.Remind:
		c.nudgeMaster(p)
	case smrank.RivalLeft:
		c.takeOver(true, fmt.Sprintf("port %v is master no longer", c.topo.GUIDOf(p)))
	}
	if mayRival && o.State != ib.SMMaster {
		o.Ignored = false
		c.faults.Clear(fault.Key{Kind: fault.RivalMaster, GUID: o.GUID})
	}
}

// standBy leaves the fabric to another SM.
func (c *Core) standBy(p topo.PortID) {
	reason := "port " + c.topo.GUIDOf(p).String() + " is of higher rank"
	if o := c.otherAt(p); o != nil && o.State == ib.SMMaster {
		reason = "port " + c.topo.GUIDOf(p).String() + " is master"
	}
	c.standByFor(p, reason)
}

func (c *Core) standByFor(p topo.PortID, reason string) {
	e := &c.election
	if c.self.State != ib.SMStandby {
		c.members.Unprove()
	}
	c.self.State, e.master, e.since = ib.SMStandby, p, c.now
	c.self.Claims, e.waitFor, e.foreign, e.nudge = false, topo.None, true, nudge{count: e.nudge.count}
	c.problem(fault.Key{Kind: fault.ForeignMaster}, &StateChanged{State: c.self.State, Reason: reason})
	c.viewDue = true
}

// awaitHandover stops writing until a master of lower rank has handed over its
// part of the fabric (IBTA volume 1, C14-60.2.1).
func (c *Core) awaitHandover(p topo.PortID) {
	e := &c.election
	c.self.State, c.self.Claims, e.waitFor, e.since = ib.SMDiscovering, true, p, c.now
	c.event(&StateChanged{State: c.self.State, Reason: "port " + c.topo.GUIDOf(p).String() + " is a master of lower rank: waiting for its handover"})
	c.nudgeMaster(p)
}

// disable stops this SM until another one says STANDBY.
func (c *Core) disable(by topo.PortID) {
	e := &c.election
	c.self.State, e.master, c.self.Claims, e.waitFor, e.foreign = ib.SMNotActive, topo.None, false, topo.None, true
	c.members.Unprove()
	c.faults.Clear(fault.Key{Kind: fault.ForeignMaster})
	c.problem(fault.Key{Kind: fault.Disabled}, &StateChanged{
		State:  c.self.State,
		Reason: "disabled by the master at port " + c.topo.GUIDOf(by).String() + "; start this subnet manager again to have it take part",
	})
	c.viewDue = true
}

// takeOver begins again, from the present state of the fabric: the old master may have changed what was read before. Nodes,
// cables and routes are kept as far as they turn out to be still true. With a mandate this SM reports itself to others as
// master already.
func (c *Core) takeOver(mandate bool, reason string) {
	settingFabric{desk{c}}.renewAll()
	c.retake(mandate, reason)
}

// retake is takeOver where no other subnet manager was master meanwhile: nothing that was
// registered is lost.
func (c *Core) retake(mandate bool, reason string) {
	e := &c.election
	c.faults.Clear(fault.Key{Kind: fault.ForeignMaster})
	c.faults.Clear(fault.Key{Kind: fault.Disabled})
	c.self.State, e.master, e.waitFor, c.self.Claims, e.asked = ib.SMDiscovering, topo.None, topo.None, mandate, false
	e.mandate = topo.None
	e.quietAt = time.Time{}
	clear(e.commands)
	for _, o := range c.others {
		o.stale = true
	}
	c.members.Unprove()
	c.routing.reign++
	c.event(&StateChanged{State: c.self.State, Reason: reason})
	c.doubtAll()
}

// ownLinkDown reports whether our own port leads nowhere.
func (c *Core) ownLinkDown() bool {
	p := c.own()
	return p != topo.None && c.ports[p].num != 0 && c.ports[p].known && !linkUp(&c.ports[p].info)
}

// poll is the regular look at the other SMs.
func (c *Core) poll() {
	c.after(c.cfg.Election.PollEvery, work.Poll, work.Ref{})
	e := &c.election
	e.ticks++
	if c.self.Barred {
		return // what others are is of no use until this SM may rule
	}
	switch {
	case c.self.State == ib.SMStandby:
		if c.gone(e.master) {
			c.takeOver(false, "the master is gone")
			return
		}
		c.q.MarkPort(work.SMInfo, e.master)
	case e.waitFor != topo.None:
		c.pollRival()
	case c.self.Shown() == ib.SMMaster && e.ticks%rivalTicks == 0:
		c.askOthers()
	}
}

// rivalTicks is how many polls of a standby go for one look of a master at its
// standbys.
const rivalTicks = 4

func (c *Core) gone(p topo.PortID) bool {
	n := &c.nodes[c.ports[p].node]
	return !n.alive || n.silent
}

// pollRival asks the master that is to hand over, for as long as there is
// patience: P_Keys that are to be taken away must not wait for it for ever.
func (c *Core) pollRival() {
	e := &c.election
	p := e.waitFor
	switch o := c.otherAt(p); {
	case c.gone(p) || o == nil:
		c.takeOver(true, "the master of lower rank is gone")
	case c.now.Sub(e.since) > c.cfg.Election.Patience:
		o.Ignored = true
		c.problem(fault.Key{Kind: fault.RivalMaster, GUID: o.GUID}, &StateChanged{
			State: ib.SMDiscovering, Reason: "port " + o.GUID.String() + " is master, too, and does not hand over to us, who are of higher rank: stop it",
		})
		c.takeOver(true, "no longer waiting for a handover")
	default:
		c.q.MarkPort(work.SMInfo, p)
	}
}

// askOthers asks the SMs again that are believed or may come to be, and reports
// whether there are any. At an allowed place where none is known, it looks
// whether there is one.
func (c *Core) askOthers() bool {
	any := false
	for _, guid := range slices.Sorted(maps.Keys(c.others)) {
		o := c.others[guid]
		if p, seen := c.byPort[guid]; seen && p == o.port && !c.gone(p) && (o.Trusted || c.trust.IsListed(p)) {
			c.askSM(p)
			any = true
		}
	}
	for _, a := range c.trust.Allowed() {
		if p, seen := c.byPort[a.GUID]; seen && p != c.own() && c.trust.IsListed(p) && !c.gone(p) && c.otherAt(p) == nil {
			c.background(p)
		}
	}
	return any
}

// lookOn is how long discovery waits for what does not answer, where that may
// hide another SM.
const lookOn = time.Second

// looksOn reports whether another SM may still be found: requests that were lost on the way are sent again first. Where no
// SM would be believed there is nothing to wait for.
func (c *Core) looksOn() bool {
	e := &c.election
	if c.cfg.SMKey.IsZero() {
		return false
	}
	if e.quietAt.IsZero() {
		e.quietAt = c.now
	}
	busy := c.wire.Out() > len(e.commands) || c.timers.HasNear()
	return busy && c.now.Sub(e.quietAt) < lookOn || c.waitsForSMs()
}

// waitsForSMs reports whether SMs which may be believed have not answered yet.
func (c *Core) waitsForSMs() bool {
	for p := range c.election.asking {
		if c.gone(p) {
			delete(c.election.asking, p)
		}
	}
	return len(c.election.asking) > 0
}
