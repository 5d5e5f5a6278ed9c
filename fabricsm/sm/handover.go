package sm

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/smrank"
	"portcullis/fabricsm/sm/smtrust"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/violationlog"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// command is a Set of SMInfo that is to be sent.
type command struct {
	control mad.SMInfoControl
	state   ib.SMState // that it shows as ours
}

// judgeCommand judges a Set of SMInfo. A command without right is dropped and reported, and answer is false. A command that
// is not legal now is answered with a status.
func (c *Core) judgeCommand(in *Received, from topo.PortID) (status mad.Status, answer bool) {
	var si mad.SMInfo
	control := mad.SMInfoControl(in.MAD.Mod())
	if mad.Decode(in.MAD.Data(), &si) != nil {
		return mad.StatusOK, false
	}
	if why := c.trust.Judge(from, si.GUID, si.SMKey); why != smtrust.NoObjection {
		c.tellRefused(in, from, &si, objections[why])
		return mad.StatusOK, false
	}
	if !smrank.IsLegal(control, si.SMState, c.self.State) {
		c.tellRefused(in, from, &si, fmt.Sprintf("it is %v and we are %v", si.SMState, c.self.State))
		return mad.StatusInvalidField, true
	}
	return mad.StatusOK, true
}

// objections says why commands are not obeyed.
var objections = [...]string{
	smtrust.NoKey:      "no SM_Key is configured, so nobody may command this subnet manager",
	smtrust.WrongKey:   "its SM_Key is not ours",
	smtrust.NoSender:   "where it comes from is not known",
	smtrust.WrongGUID:  "another port has the GUID it gives",
	smtrust.NotAllowed: "no subnet manager is allowed there",
}

// tellRefused reports a command that was not obeyed, ever more rarely for each
// source.
func (c *Core) tellRefused(in *Received, from topo.PortID, si *mad.SMInfo, reason string) {
	e := &SMInfoRefused{LID: in.LID, GUID: si.GUID, Control: mad.SMInfoControl(in.MAD.Mod()), Reason: reason}
	count := &c.election.strays
	by := violation.ByLID
	if in.MAD.IsDR() {
		by = violation.ByWay
		e.Path = in.MAD.ReturnRoute()
	} else {
		from = c.byLID(in.LID)
	}
	if from != topo.None {
		e.Place = c.topo.PlaceOf(from)
		count = &c.ports[from].refusals
	}
	c.reports.NoteSMKey(from, in.LID, mad.MethodSet, e.Control, by)
	if by == violation.ByWay && from != topo.None && !si.SMKey.Equal(c.cfg.SMKey) {
		c.guessing.CheckSMKey(&e.Path, si.SMKey)
	}
	*count++
	if e.Count = *count; violationlog.Tells(e.Count) {
		c.event(e)
	}
}

// obey does what a command asks that is rightful and legal.
func (c *Core) obey(from topo.PortID, control mad.SMInfoControl) {
	guid := c.topo.GUIDOf(from).String()
	switch control {
	case mad.SMInfoHandover:
		standby := c.self.State == ib.SMStandby
		c.election.foreign = true
		c.takeOver(true, "port "+guid+" handed over")
		c.election.mandate = from
		if o := c.otherAt(from); o != nil {
			o.State, o.stale, o.Ignored = ib.SMStandby, false, false
			c.faults.Clear(fault.Key{Kind: fault.RivalMaster, GUID: o.GUID})
		}
		if standby {
			c.sendCommand(from, command{mad.SMInfoAcknowledge, ib.SMStandby})
		}
	case mad.SMInfoDiscover:
		c.takeOver(false, "port "+guid+" asked for a new discovery")
	case mad.SMInfoDisable:
		c.disable(from)
	case mad.SMInfoStandby:
		c.faults.Clear(fault.Key{Kind: fault.Disabled})
		c.standByFor(from, "port "+guid+" is master and asked for a standby")
	case mad.SMInfoAcknowledge:
	default:
	}
}

// handOver hands the fabric over to an SM of higher rank, which has shown the key. This one stops writing at once.
func (c *Core) handOver(p topo.PortID, o *otherSM) {
	if o.declined > 0 && c.now.Before(o.declinedAt.Add(min(c.cfg.RetryMin<<min(o.declined, 16), c.cfg.RetryMax))) {
		return
	}
	c.standByFor(p, "handing over to port "+c.topo.GUIDOf(p).String()+", which is of higher rank")
	c.sendCommand(p, command{mad.SMInfoHandover, ib.SMMaster})
}

func (c *Core) sendCommand(p topo.PortID, cmd command) {
	c.election.commands[p] = cmd
	c.q.MarkPort(work.SMInfo, p)
}

// drainTime is how long a handover waits for requests that are out.
const drainTime = time.Second

// workCommand sends a command. Before a handover comes to rest what this SM has
// on the wire, so that there is one writer at a time.
func (c *Core) workCommand(p topo.PortID) {
	e := &c.election
	cmd := e.commands[p]
	x := work.OnPort(work.SMInfo, p)
	if cmd.control == mad.SMInfoHandover && c.wire.Out() > 0 && c.now.Sub(e.since) < drainTime {
		c.after(nearRetry, work.Near, x)
		return
	}
	c.auditing = true
	m := c.ask(x, c.ports[p].node, mad.MethodSet, mad.AttrSMInfo, uint32(cmd.control))
	c.auditing = false
	si := mad.SMInfo{
		GUID: c.cfg.PortGUID, SMKey: c.cfg.SMKey, ActCount: c.actCount, SMState: cmd.state, Priority: c.self.PriorityIn(cmd.state),
	}
	c.encode(mad.Encode(m.Data(), &si))
	if cmd.control == mad.SMInfoAcknowledge {
		// No work waits for the answer, least of all our own discovery: the old master may have ended.
		c.wire.Ignore(uint32(c.out.Send[len(c.out.Send)-1].ID))
	}
}

// smTries is how many tries a request to an SM gets. An ACKNOWLEDGE has one:
// nothing depends on it.
func (c *Core) smTries(r *work.Request) int {
	if r.Method == mad.MethodSet && mad.SMInfoControl(r.Mod) == mad.SMInfoAcknowledge {
		return 1
	}
	return c.cfg.Election.Misses
}

// commanded handles that a command was obeyed, or the reason why not.
func (c *Core) commanded(p topo.PortID, control mad.SMInfoControl, reason string) {
	e := &c.election
	delete(e.commands, p)
	if control != mad.SMInfoHandover || c.self.State != ib.SMStandby || p != e.master || c.self.Leaving {
		return
	}
	o := c.otherAt(p)
	if reason == "" {
		e.since = c.now
		if o != nil {
			o.declined = 0
		}
		return
	}
	if o != nil {
		o.declined, o.declinedAt = o.declined+1, c.now
	}
	c.takeOver(true, "port "+c.topo.GUIDOf(p).String()+" did not take the handover: "+reason)
}

// nudge is how a master of lower rank is asked to hand over.
type nudge struct {
	after time.Time // not before
	pause time.Duration
	count uint32 // sent so far
}

// nudgeMaster sends trap 144 to a master of lower rank, so that it looks at us
// and hands over. It is repeated after ever longer pauses.
func (c *Core) nudgeMaster(p topo.PortID) {
	e := &c.election.nudge
	own := c.own()
	if c.now.Before(e.after) || own == topo.None {
		return
	}
	from, to := c.ports[own].info.LID, c.ports[p].info.LID
	if !from.IsUnicast() || !to.IsUnicast() {
		return
	}
	e.pause = c.longer(e.pause)
	e.after = c.now.Add(e.pause)
	e.count++
	c.out.Answer = append(c.out.Answer, Response{LID: to})
	m := &c.out.Answer[len(c.out.Answer)-1].MAD
	// The lower half of the transaction is one that no request of ours has.
	tid := ib.TID(work.UnusedID(e.count))
	mad.NewSMP(m, mad.Header{Method: mad.MethodTrap, TID: tid, Attr: mad.AttrNotice}, nil, ib.MKey{})
	tn := c.topo.Node(c.root)
	c.encode(mad.Encode(m.Data(), &mad.Trap144{
		NoticeHeader: mad.NoticeHeader{
			IsGeneric: true, Type: mad.NoticeInformational, ProducerType: uint32(tn.Type),
			TrapNumber: mad.TrapLocalChange, IssuerLID: from,
		},
		LID: from, OtherLocalChanges: true, NewCapabilityMask: c.ports[own].info.CapabilityMask,
		ChangeFlags: mad.SMPriorityChanged,
	}))
}
