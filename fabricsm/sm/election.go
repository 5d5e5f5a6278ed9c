package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/election"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// ElectionConfig decides which subnet manager is master where there are several.
type ElectionConfig = election.Config

// OtherSM is another subnet manager as it described itself.
type OtherSM = election.Manager

// election checks the priorities and times of an election.
func (k *configChecker) election(e *ElectionConfig) {
	k.atMost("priority of the master", int(e.MasterPriority), 15)
	k.notNegative("time between polls", int64(e.PollEvery))
	k.notNegative("misses", int64(e.Misses))
	k.notNegative("patience", int64(e.Patience))
}

// Resign says that the owner is about to end. A master hands the fabric over to the highest of the SMs that are trusted and
// stand by, so that none of them has to detect that it is gone. Output.Resigned says when that is done, at once if there is
// no such SM. From then on this SM reports itself as not active, so that no SM hands the fabric back.
type Resign struct{}

func (*Resign) input() {}

// Mandate says whether the owner may change the fabric now. Several instances of a service share a fabric, and a lease
// outside of it decides which of them may. A core that never receives a Mandate has it permanently.
//
// Without it the core sends no Set. It reads on, answers, and keeps its picture of the fabric. It reports to other subnet
// managers that it is not active, and none of them can hand the fabric over to it. With it again, it reads all that may
// have been changed before it writes.
type Mandate struct {
	Held bool
}

func (*Mandate) input() {}

// newElection returns where this subnet manager stands among the others.
func newElection(c *Core) election.Election {
	return election.New(electionFabric{desk{c}}, electionRequests{c}, electionEffects{desk{c}}, election.Parts{
		Topo: &c.topo, Queue: &c.q, Wire: &c.wire, Timers: &c.timers, Trust: &c.trust,
	}, election.Options{
		Config: c.cfg.Election, GUID: c.cfg.PortGUID, Priority: c.cfg.Priority, Key: c.cfg.SMKey,
		RetryMin: c.cfg.RetryMin, RetryMax: c.cfg.RetryMax,
	})
}

// electionFabric is what package election knows of the fabric.
type electionFabric struct{ desk }

var _ election.Fabric = electionFabric{}

func (f electionFabric) Own() topo.PortID                 { return f.own() }
func (f electionFabric) PortByLID(l ib.LID) topo.PortID   { return f.byLID(l) }
func (f electionFabric) Info(p topo.PortID) *mad.PortInfo { return &f.ports[p].info }

func (f electionFabric) IsCut() bool {
	p := f.own()
	return p != topo.None && f.ports[p].num != 0 && f.ports[p].known && !linkUp(&f.ports[p].info)
}

func (f electionFabric) IsGone(p topo.PortID) bool {
	n := &f.nodes[f.ports[p].node]
	return !n.alive || n.silent
}

// electionRequests is where package election sends to.
type electionRequests struct{ *Core }

var _ election.Requests = electionRequests{}

func (r electionRequests) After(d time.Duration, a work.Alarm, x work.Ref) { r.after(d, a, x) }
func (r electionRequests) ReadLater(p topo.PortID)                         { r.background(p) }

func (r electionRequests) ReadOwn() {
	if r.rootPort != topo.None && r.nodes[r.root].alive {
		r.background(r.rootPort)
	}
}

func (r electionRequests) Get(p topo.PortID, quiet bool) {
	r.auditing = quiet
	r.ask(work.OnPort(work.SMInfo, p), r.ports[p].node, mad.MethodGet, mad.AttrSMInfo, 0)
	r.auditing = false
}

func (r electionRequests) Set(p topo.PortID, control mad.SMInfoControl, si mad.SMInfo) uint32 {
	r.auditing = true
	m := r.ask(work.OnPort(work.SMInfo, p), r.ports[p].node, mad.MethodSet, mad.AttrSMInfo, uint32(control))
	r.auditing = false
	r.encode(mad.Encode(m.Data(), &si))
	return uint32(r.out.Send[len(r.out.Send)-1].ID)
}

func (r electionRequests) Answer(to election.Asked, status mad.Status, si mad.SMInfo, manager bool) {
	r.out.Answer = append(r.out.Answer, Response{LID: to.LID, QP: to.QP, MAD: *to.MAD, Manager: manager})
	m := &r.out.Answer[len(r.out.Answer)-1].MAD
	m.SetMKey(ib.MKey{})
	m.Respond(status)
	clear(m.Data())
	r.encode(mad.Encode(m.Data(), &si))
}

func (r electionRequests) Trap(to ib.LID, tid ib.TID, t mad.Trap144) {
	r.out.Answer = append(r.out.Answer, Response{LID: to})
	m := &r.out.Answer[len(r.out.Answer)-1].MAD
	mad.NewSMP(m, mad.Header{Method: mad.MethodTrap, TID: tid, Attr: mad.AttrNotice}, nil, ib.MKey{})
	r.encode(mad.Encode(m.Data(), &t))
}

// electionEffects is what package election has the core do.
type electionEffects struct{ desk }

var _ election.Effects = electionEffects{}

func (e electionEffects) Changed(s ib.SMState, reason string) {
	e.event(&StateChanged{State: s, Reason: reason})
}

func (e electionEffects) Problem(k fault.Key, s ib.SMState, reason string) {
	e.problem(k, &StateChanged{State: s, Reason: reason})
	e.viewDue = true
}

func (e electionEffects) Rule(foreign bool) { e.configure(foreign) }
func (e electionEffects) Unprove()          { e.members.Unprove() }
func (e electionEffects) Renew()            { settingFabric(e).renewAll() }
func (e electionEffects) Disturb()          { e.disturb() }

func (e electionEffects) Doubt() {
	e.routing.OtherRuled()
	e.doubtAll()
}

func (e electionEffects) Described(d election.Description) {
	lid := e.ports[d.Port].info.LID
	if !d.Trusted {
		e.reports.NoteSMKey(d.Port, lid, mad.MethodGet, 0, violation.ByPort)
	}
	rogue := fault.Key{Kind: fault.RogueMaster, GUID: d.GUID}
	if !d.IsRogue() {
		e.faults.Clear(rogue)
		if !d.Reported {
			return
		}
	}
	report := &ForeignSM{
		GUID: d.GUID, LID: lid, Place: e.topo.PlaceOf(d.Port), State: d.State, Priority: d.Priority, Trusted: d.Trusted,
		Path: *e.tree.RouteTo(e.ports[d.Port].node), Count: d.Count,
	}
	if d.Reported {
		e.event(report)
	}
	if d.IsRogue() {
		e.faults.Set(rogue, report.String())
	}
}
