package election

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/smrank"
	"portcullis/fabricsm/sm/smtrust"
	"portcullis/fabricsm/sm/violationlog"
	"portcullis/fabricsm/topo"
)

// Asked is a request for SMInfo of ours: a Get, or a Set that is a command.
type Asked struct {
	MAD *mad.MAD
	LID ib.LID // source
	QP  uint32 // source queue pair
}

// control returns the command of a Set.
func (a Asked) control() mad.SMInfoControl { return mad.SMInfoControl(a.MAD.Mod()) }

// Refusal is a command that was not obeyed.
type Refusal struct {
	Asked
	Port     topo.PortID // it came from, None if that is not known
	Sender   mad.SMInfo  // as the command describes it
	Why      smtrust.Objection
	State    ib.SMState // ours: without an Objection, the command is not legal in these states
	Count    uint64     // of what was refused from there, or if that is not known from everywhere
	Reported bool       // it is to be reported: each further report is rarer
}

// Control returns the command.
func (r Refusal) Control() mad.SMInfoControl { return r.control() }

// Receive answers another Subnet Manager, or a diagnostic, and obeys commands. It reports false for a command without right,
// which gets no answer.
func (e *Election) Receive(in Asked) bool {
	from := e.trust.Sender(in.MAD, in.LID)
	status := mad.StatusOK
	obey := false
	if in.MAD.Method() == mad.MethodSet {
		var answer bool
		if status, answer = e.judge(in, from); !answer {
			return false
		}
		if e.own.Leaving || e.own.Barred {
			status = mad.StatusInvalidField
		}
		obey = status == mad.StatusOK
	}
	e.actCount++
	si := mad.SMInfo{GUID: e.o.GUID, ActCount: e.actCount, Priority: e.Priority(), SMState: e.own.Shown()}
	if e.trust.ShowsKey(from) {
		si.SMKey = e.o.Key
	}
	e.requests.Answer(in, status, si, e.IsPeer(from))
	if obey {
		e.obey(from, in.control())
	}
	return true
}

// judge judges a command. One without right is dropped and reported, and answer is false. One that is not legal now is
// answered with a status.
func (e *Election) judge(in Asked, from topo.PortID) (status mad.Status, answer bool) {
	var si mad.SMInfo
	if mad.Decode(in.MAD.Data(), &si) != nil {
		return mad.StatusOK, false
	}
	if why := e.trust.Judge(from, si.GUID, si.SMKey); why != smtrust.NoObjection {
		e.refuse(in, from, &si, why)
		return mad.StatusOK, false
	}
	if !smrank.IsLegal(in.control(), si.SMState, e.own.State) {
		e.refuse(in, from, &si, smtrust.NoObjection)
		return mad.StatusInvalidField, true
	}
	return mad.StatusOK, true
}

// refuse reports a command that is not obeyed, ever more rarely for each source.
func (e *Election) refuse(in Asked, from topo.PortID, si *mad.SMInfo, why smtrust.Objection) {
	if !in.MAD.IsDR() {
		from = e.fabric.PortByLID(in.LID)
	}
	r := Refusal{Asked: in, Port: from, Sender: *si, Why: why, State: e.own.State}
	if from != topo.None {
		r.Count = e.count(from, func(t *counts) *uint64 { return &t.refused })
	} else {
		e.strays++
		r.Count = e.strays
	}
	r.Reported = violationlog.Tells(r.Count)
	e.effects.Refused(r)
}

// obey does what a command asks that is rightful and legal.
func (e *Election) obey(from topo.PortID, control mad.SMInfoControl) {
	switch control {
	case mad.SMInfoHandover:
		standby := e.own.State == ib.SMStandby
		e.foreign = true
		e.takeOver(true, e.name(from)+" handed over")
		e.mandate = from
		if o := e.at(from); o != nil {
			o.State, o.stale, o.Ignored = ib.SMStandby, false, false
			e.effects.Solved(fault.Key{Kind: fault.RivalMaster, GUID: o.GUID})
		}
		if standby {
			e.send(from, command{mad.SMInfoAcknowledge, ib.SMStandby})
		}
	case mad.SMInfoDiscover:
		e.takeOver(false, e.name(from)+" asked for a new discovery")
	case mad.SMInfoDisable:
		e.disable(from)
	case mad.SMInfoStandby:
		e.effects.Solved(fault.Key{Kind: fault.Disabled})
		e.standByFor(from, e.name(from)+" is master and asked for a standby")
	case mad.SMInfoAcknowledge:
	default:
	}
}
