package election

import (
	"cmp"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/smrank"
	"portcullis/fabricsm/sm/violationlog"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// other is another Subnet Manager as it last described itself.
type other struct {
	smrank.Other
	actCount   uint32
	port       topo.PortID
	stale      bool // said before we began to discover again
	declined   int  // handovers in a row that it did not take, the last at declinedAt
	declinedAt time.Time
}

// counts is how often something was reported of a port.
type counts struct {
	described uint64 // times that a Subnet Manager there said something new of itself
	refused   uint64 // commands from there that were not obeyed
}

// Description is how another Subnet Manager described itself when it was asked.
type Description struct {
	Port topo.PortID
	smrank.Rank
	State    ib.SMState
	Trusted  bool
	Count    uint64 // times that one at this port said something new of itself; 0: nothing new
	Reported bool   // it is to be reported: each further report is rarer
}

// IsRogue reports whether it is master, although it is not trusted.
func (d Description) IsRogue() bool { return !d.Trusted && d.State == ib.SMMaster }

// Look asks an end port that was read whether a Subnet Manager is there. isManager: its PortInfo says so.
func (e *Election) Look(p topo.PortID, isManager bool) {
	switch {
	case p == e.fabric.Own():
	case isManager:
		e.ask(p)
	default:
		delete(e.asking, p)
		if e.at(p) != nil && p != e.master {
			e.Forget(e.topo.GUIDOf(p))
		}
	}
}

// AskAgain asks a Subnet Manager that is known at a port: its priority may have changed.
func (e *Election) AskAgain(p topo.PortID) {
	if e.at(p) != nil {
		e.ask(p)
	}
}

// ask asks a port for its SMInfo. Discovery waits for those that may be trusted.
func (e *Election) ask(p topo.PortID) {
	if e.own.State == ib.SMDiscovering {
		if p == e.mandate {
			return
		}
		if e.trust.MayTrust(p) {
			e.asking[p] = struct{}{}
		}
	}
	e.queue.MarkPort(work.SMInfo, p)
}

// Work sends what is to be sent to the Subnet Manager at a port: a command, or a Get.
func (e *Election) Work(p topo.PortID) {
	if _, due := e.commands[p]; due {
		e.command(p)
		return
	}
	e.requests.Get(p, e.own.State != ib.SMDiscovering) // reports of others about themselves do not unsettle the fabric
}

// Tries returns how many tries a request to a Subnet Manager gets. An ACKNOWLEDGE has one: nothing depends on it.
func (e *Election) Tries(r *work.Request) int {
	if r.Method == mad.MethodSet && mad.SMInfoControl(r.Mod) == mad.SMInfoAcknowledge {
		return 1
	}
	return e.o.Misses
}

// Answered takes how another Subnet Manager describes itself, or that it obeyed.
func (e *Election) Answered(r *work.Request, m *mad.MAD) {
	p, status := r.Ref.Port(), m.Status()
	if r.Method == mad.MethodSet {
		reason := ""
		if status != mad.StatusOK {
			reason = status.String()
		}
		e.commanded(p, mad.SMInfoControl(r.Mod), reason)
		return
	}
	var si mad.SMInfo
	guid := e.topo.GUIDOf(p)
	if status != mad.StatusOK || mad.Decode(m.Data(), &si) != nil || si.GUID != guid || si.SMState > ib.SMMaster {
		e.Unanswered(r)
		return
	}
	delete(e.asking, p)
	o, known := e.others[guid]
	if !known {
		o = &other{}
		e.others[guid] = o
	}
	was := o.Other
	o.Rank, o.State, o.actCount = smrank.Rank{Priority: si.Priority, GUID: guid}, si.SMState, si.ActCount
	o.port, o.stale, o.Trusted = p, false, e.trust.Trusts(p, si.SMKey)
	e.describe(o, !known || was.State != o.State || was.Priority != o.Priority || was.Trusted != o.Trusted)
	e.weigh(p, o)
}

// Unanswered takes that a port which claims to have a Subnet Manager does not answer as one.
func (e *Election) Unanswered(r *work.Request) {
	p := r.Ref.Port()
	if r.Method == mad.MethodSet {
		e.commanded(p, mad.SMInfoControl(r.Mod), "no answer")
		return
	}
	delete(e.asking, p)
	e.Forget(e.topo.GUIDOf(p))
	switch {
	case e.own.State == ib.SMStandby && p == e.master:
		e.takeOver(false, "the master does not answer")
	case p == e.waitFor:
		e.takeOver(true, "the master of lower rank does not answer")
	}
}

// describe reports how another Subnet Manager describes itself. What is new is reported ever more rarely: a host may change
// its answer each time it is asked.
func (e *Election) describe(o *other, isNew bool) {
	d := Description{Port: o.port, Rank: o.Rank, State: o.State, Trusted: o.Trusted}
	if isNew {
		d.Count = e.count(o.port, func(t *counts) *uint64 { return &t.described })
		d.Reported = violationlog.Tells(d.Count)
	}
	e.effects.Described(d)
}

// count raises one of the counters of a port, and returns it.
func (e *Election) count(p topo.PortID, which func(*counts) *uint64) uint64 {
	t := e.counts[p]
	n := which(&t)
	*n++
	count := *n
	if e.counts == nil {
		e.counts = make(map[topo.PortID]counts)
	}
	e.counts[p] = t
	return count
}

// Forget forgets what the Subnet Manager at the port with a GUID said of itself.
func (e *Election) Forget(guid ib.GUID) {
	delete(e.others, guid)
	e.effects.Solved(fault.Key{Kind: fault.RogueMaster, GUID: guid})
	e.effects.Solved(fault.Key{Kind: fault.RivalMaster, GUID: guid})
}

// ForgetPort forgets what was reported about a port.
func (e *Election) ForgetPort(p topo.PortID) { delete(e.counts, p) }

// IsPeer reports whether another Subnet Manager may be at an end port with which this one works.
func (e *Election) IsPeer(p topo.PortID) bool {
	if p == topo.None || p == e.fabric.Own() {
		return false
	}
	o := e.at(p)
	return e.trust.IsListed(p) || e.trust.IsManager(p) || o != nil && o.Trusted
}

// Peers lists all such ports, by id.
func (e *Election) Peers() (list []topo.PortID) {
	add := func(guid ib.GUID) {
		if p, seen := e.fabric.PortByGUID(guid); seen && e.IsPeer(p) {
			list = append(list, p)
		}
	}
	for _, a := range e.trust.Allowed() {
		add(a.GUID)
	}
	for _, s := range e.trust.Siblings() {
		add(s.GUID)
	}
	for guid, o := range e.others {
		if o.Trusted {
			add(guid)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Manager is another Subnet Manager as it described itself when it was last asked.
type Manager struct {
	GUID     ib.GUID // port GUID
	LID      ib.LID
	Place    ib.Place
	State    ib.SMState
	Priority uint8
	ActCount uint32
	Trusted  bool // it showed our SM_Key, from where it is allowed
}

// maxListed bounds how many others are listed.
const maxListed = 100

// Others lists the other Subnet Managers by rank, at most 100.
func (e *Election) Others() []Manager {
	if len(e.others) == 0 {
		return nil
	}
	list := make([]Manager, 0, len(e.others))
	for guid, o := range e.others {
		if e.at(o.port) != o {
			continue
		}
		list = append(list, Manager{
			GUID: guid, LID: e.fabric.Info(o.port).LID, Place: e.topo.PlaceOf(o.port),
			State: o.State, Priority: o.Priority, ActCount: o.actCount, Trusted: o.Trusted,
		})
	}
	slices.SortFunc(list, func(a, b Manager) int {
		return cmp.Or(-cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.GUID, b.GUID))
	})
	return list[:min(len(list), maxListed)]
}
