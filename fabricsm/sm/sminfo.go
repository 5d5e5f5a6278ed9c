package sm

import (
	"cmp"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/smrank"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/violationlog"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// otherSM is another subnet manager as it last described itself.
type otherSM struct {
	smrank.Other
	actCount   uint32
	port       topo.PortID
	stale      bool // said before we began to discover again
	declined   int  // handovers in a row that it did not take, the last at declinedAt
	declinedAt time.Time
}

func (c *Core) otherAt(p topo.PortID) *otherSM {
	if p == topo.None {
		return nil
	}
	if o := c.others[c.topo.GUIDOf(p)]; o != nil && o.port == p {
		return o
	}
	return nil
}

// askedSMInfo answers another SM, or a diagnostic.
func (c *Core) askedSMInfo(in *Received) {
	m := &in.MAD
	from := c.trust.Sender(m, in.LID)
	status := mad.StatusOK
	obey := false
	if m.Method() == mad.MethodSet {
		var answer bool
		if status, answer = c.judgeCommand(in, from); !answer {
			c.dropped++
			return
		}
		if c.self.Leaving || c.self.Barred {
			status = mad.StatusInvalidField
		}
		obey = status == mad.StatusOK
	}
	c.actCount++
	c.out.Answer = append(c.out.Answer, Response{LID: in.LID, QP: in.QP, MAD: *m, Manager: c.peerManager(from)})
	r := &c.out.Answer[len(c.out.Answer)-1].MAD
	r.SetMKey(ib.MKey{})
	r.Respond(status)
	clear(r.Data())
	c.describe(r, c.self.Shown(), c.trust.ShowsKey(from))
	if obey {
		c.obey(from, mad.SMInfoControl(m.Mod()))
	}
}

// describe writes our SMInfo.
func (c *Core) describe(m *mad.MAD, state ib.SMState, showKey bool) {
	si := mad.SMInfo{GUID: c.cfg.PortGUID, ActCount: c.actCount, Priority: c.self.Rank().Priority, SMState: state}
	if showKey {
		si.SMKey = c.cfg.SMKey
	}
	c.encode(mad.Encode(m.Data(), &si))
}

// lookForSM asks an end port that was read whether an SM is there.
func (c *Core) lookForSM(p topo.PortID, pi *mad.PortInfo) {
	switch {
	case p == c.own():
	case pi.CapabilityMask.Has(mad.IsSM):
		c.askSM(p)
	default:
		delete(c.election.asking, p)
		if c.otherAt(p) != nil && p != c.election.master {
			c.forgetSM(c.topo.GUIDOf(p))
		}
	}
}

// askSM asks a port for its SMInfo. Discovery waits for the SMs that may be trusted.
func (c *Core) askSM(p topo.PortID) {
	if c.self.State == ib.SMDiscovering && p == c.election.mandate {
		return
	}
	if c.self.State == ib.SMDiscovering && c.trust.MayTrust(p) {
		c.election.asking[p] = struct{}{}
	}
	c.q.MarkPort(work.SMInfo, p)
}

func (c *Core) workSMInfo(p topo.PortID) {
	if _, due := c.election.commands[p]; due {
		c.workCommand(p)
		return
	}
	c.auditing = c.self.State != ib.SMDiscovering // reports of other SMs about themselves do not unsettle the fabric
	c.ask(work.OnPort(work.SMInfo, p), c.ports[p].node, mad.MethodGet, mad.AttrSMInfo, 0)
	c.auditing = false
}

// gotSMInfo takes how another SM describes itself, or that it obeyed.
func (c *Core) gotSMInfo(p topo.PortID, r *work.Request, m *mad.MAD, status mad.Status) {
	if r.Method == mad.MethodSet {
		reason := ""
		if status != mad.StatusOK {
			reason = status.String()
		}
		c.commanded(p, mad.SMInfoControl(r.Mod), reason)
		return
	}
	var si mad.SMInfo
	guid := c.topo.GUIDOf(p)
	if status != mad.StatusOK || mad.Decode(m.Data(), &si) != nil || si.GUID != guid || si.SMState > ib.SMMaster {
		c.noSMInfo(p, r)
		return
	}
	delete(c.election.asking, p)
	o, known := c.others[guid]
	if !known {
		o = &otherSM{}
		c.others[guid] = o
	}
	was := *o
	o.Rank, o.State, o.actCount = smrank.Rank{Priority: si.Priority, GUID: guid}, si.SMState, si.ActCount
	o.port, o.Trusted, o.stale = p, c.trust.Trusts(p, si.SMKey), false
	c.tellForeign(p, &was, o, known)
	c.weigh(p, o)
}

// noSMInfo takes that a port with IsSM does not answer as an SM.
func (c *Core) noSMInfo(p topo.PortID, r *work.Request) {
	e := &c.election
	if r.Method == mad.MethodSet {
		c.commanded(p, mad.SMInfoControl(r.Mod), "no answer")
		return
	}
	delete(e.asking, p)
	c.forgetSM(c.topo.GUIDOf(p))
	switch {
	case c.self.State == ib.SMStandby && p == e.master:
		c.takeOver(false, "the master does not answer")
	case p == e.waitFor:
		c.takeOver(true, "the master of lower rank does not answer")
	}
}

// tellForeign reports changes of another SM, but ever more rarely: a host may change its answer each time it is asked.
func (c *Core) tellForeign(p topo.PortID, was, now *otherSM, known bool) {
	guid := now.GUID
	e := &ForeignSM{
		GUID: guid, LID: c.ports[p].info.LID, Place: c.topo.PlaceOf(p),
		State: now.State, Priority: now.Priority, Trusted: now.Trusted, Path: *c.tree.RouteTo(c.ports[p].node),
	}
	if !now.Trusted {
		c.reports.NoteSMKey(p, e.LID, mad.MethodGet, 0, violation.ByPort)
	}
	if !known || was.State != e.State || was.Priority != e.Priority || was.Trusted != e.Trusted {
		c.ports[p].foreignSeen++
		if e.Count = c.ports[p].foreignSeen; violationlog.Tells(e.Count) {
			c.event(e)
		}
	}
	rogue := fault.Key{Kind: fault.RogueMaster, GUID: guid}
	if now.Trusted || e.State != ib.SMMaster {
		c.faults.Clear(rogue)
		return
	}
	c.faults.Set(rogue, e.String())
}

// forgetSM forgets what another SM said of itself.
func (c *Core) forgetSM(guid ib.GUID) {
	delete(c.others, guid)
	c.faults.Clear(fault.Key{Kind: fault.RogueMaster, GUID: guid})
	c.faults.Clear(fault.Key{Kind: fault.RivalMaster, GUID: guid})
}

// maxShownSMs bounds how many other SMs a view lists.
const maxShownSMs = 100

// otherSMs lists the other SMs by rank.
func (c *Core) otherSMs() []OtherSM {
	if len(c.others) == 0 {
		return nil
	}
	list := make([]OtherSM, 0, len(c.others))
	for guid, o := range c.others {
		if c.otherAt(o.port) != o {
			continue
		}
		list = append(list, OtherSM{
			GUID: guid, LID: c.ports[o.port].info.LID, Place: c.topo.PlaceOf(o.port),
			State: o.State, Priority: o.Priority, ActCount: o.actCount, Trusted: o.Trusted,
		})
	}
	slices.SortFunc(list, func(a, b OtherSM) int {
		return cmp.Or(-cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.GUID, b.GUID))
	})
	return list[:min(len(list), maxShownSMs)]
}

// OtherSM is another subnet manager as it described itself when it was last
// asked.
type OtherSM struct {
	GUID     ib.GUID
	LID      ib.LID
	Place    ib.Place
	State    ib.SMState
	Priority uint8
	ActCount uint32
	Trusted  bool // it showed our SM_Key, from where it is allowed
}

// watchEvery is how often our own port is read: no device sends a trap about it that could reach us.
const watchEvery = time.Second

func (c *Core) watch() {
	c.after(watchEvery, work.Watch, work.Ref{})
	if c.self.State == ib.SMMaster && c.ownLinkDown() {
		c.takeOver(false, "our own port has no link")
	}
	if c.rootPort != topo.None && c.nodes[c.root].alive {
		c.background(c.rootPort)
	}
}
