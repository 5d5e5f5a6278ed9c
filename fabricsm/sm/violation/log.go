// Package violation lists what devices report of wrong keys, and other MADs that answer no request.
//
// A report is a row: a kind, a source, a reporter and the act. Rows are bounded and counted exactly, see package rows. A
// trap is a claim, as any host can send one in the name of another. So the counter of the device that it names is read
// with a Get, and the row gets a verdict. No report has another effect than such Gets.
package violation

import (
	"cmp"
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/violationlog"
	"portcullis/fabricsm/topo"
)

// Event is what a Log reports: a Violation, a TrapReceived or a KeyGuessing.
type Event interface {
	fmt.Stringer
	FabricEvent()
}

// Fabric is what a Log asks of the core, and where it reports.
type Fabric interface {
	Now() time.Time
	// Own returns our end port.
	Own() topo.PortID
	// ByLID returns the end port that has a LID now, or None.
	ByLID(ib.LID) topo.PortID
	// LIDOf returns the base LID of an end port.
	LIDOf(topo.PortID) ib.LID
	// PlaceOf returns the place of an end port, or of a switch port itself.
	PlaceOf(topo.PortID) ib.Place
	// CanAsk reports whether a port is part of the fabric and its PortInfo was read.
	CanAsk(topo.PortID) bool
	// ReadCounters has the PortInfo of a port read; Log.RecordCounters gets it.
	ReadCounters(topo.PortID)
	// ReadNotices has the notices read that a device has queued, which was shown wrong M_Keys.
	ReadNotices(topo.PortID)
	// CheckLater calls Log.CheckDue after a time.
	CheckLater(topo.PortID, time.Duration)
	// ReportLater calls Log.ReportDue after a time.
	ReportLater(time.Duration)
	// Report sends an event.
	Report(Event)
}

// Options are the settings of a Log.
type Options struct {
	Config
	PortGUID ib.GUID // of the port that this subnet manager is attached to
	Controls controls.Traps
}

// Log is the list of reports. Use New.
type Log struct {
	table
	fabric  Fabric
	topo    *topo.Builder
	opt     Options
	checks  violationlog.Pace              // of Gets that reports cause
	pending map[topo.PortID]*check         // reports that a Get is to prove, by the port to be asked
	credit  map[topo.PortID]*counterCredit // violations that ports have counted and no trap has reported
	guesses map[guessedKey]*guesses
	classes map[classReporter]rowName      // last row of each device that reports about a class; at most as many as rows
	senders map[ib.LID]*violationlog.Pace  // of traps, by base LID; 0: LIDs that no port has
	loud    map[ib.GUID]*violationlog.Pace // of lines in the log, by the device that reports; 0: those beyond maxLoud, and none
	allLoud violationlog.Pace
	strays  uint64 // answers to nothing that was asked
	ticking bool
	stale   bool // shown is
	shown   *List
}

// List is what views show of reports. It is not written to afterwards.
type List struct {
	Rows   []Violation // by ID; see Violation
	Totals [NumKinds]Total
}

// New returns an empty log. The topology stays the caller's.
func New(f Fabric, t *topo.Builder, o Options) *Log {
	return &Log{
		fabric: f, topo: t, opt: o,
		table: newTable(&o.Config), pending: make(map[topo.PortID]*check), credit: make(map[topo.PortID]*counterCredit),
		guesses: make(map[guessedKey]*guesses), classes: make(map[classReporter]rowName), senders: make(map[ib.LID]*violationlog.Pace),
		loud: make(map[ib.GUID]*violationlog.Pace),
	}
}

// Limits of log lines about reports, for one device and for all. A host chooses what its traps accuse, and has as many rows
// as there are LIDs. Each row is logged repeatedly by the sequence: that must not fill a journal.
const (
	loudRate, loudBurst       = 0.2, 32
	allLoudRate, allLoudBurst = 4, 256
	maxLoud                   = 1 << 16
)

// mayLog reports whether the log may have another line about what a device reports, or is accused of where that is not known.
func (l *Log) mayLog(r *report) bool {
	now, reporter := l.fabric.Now(), cmp.Or(r.reporter, r.guid)
	if l.loud[reporter] == nil && len(l.loud) >= maxLoud {
		reporter = 0
	}
	p := l.loud[reporter]
	if p == nil {
		p = &violationlog.Pace{}
		l.loud[reporter] = p
	}
	return p.Take(now, loudRate, loudBurst) && l.allLoud.Take(now, allLoudRate, allLoudBurst)
}

// note counts a report and reports it by the sequence.
func (l *Log) note(what report, lid ib.LID, tid ib.TID) int32 {
	i := l.count(what, lid, tid, 1, l.fabric.Now())
	l.noted(i)
	return i
}

// noted reports a row whose count has grown, by the sequence.
func (l *Log) noted(i int32) {
	w := l.Row(i)
	l.stale = true
	loud := !l.opt.Controls.Suppresses() && w.Told != w.Count || l.Steps(i) && l.mayLog(&w.Report) && l.Loud(i, l.fabric.Now())
	if loud {
		l.send(i, false)
	} else {
		if w.Told != w.Count {
			l.totals[w.Report.kind].Quiet++
		}
		l.Later(i)
	}
	l.tick()
}

// tick has rows that grew reported a little later.
func (l *Log) tick() {
	if !l.ticking {
		l.ticking = true
		l.fabric.ReportLater(l.opt.TellEvery)
	}
}

// send reports a row as it is now.
func (l *Log) send(i int32, quiet bool) {
	w := l.Row(i)
	w.Told = w.Count
	switch what := &w.Report; {
	case what.kind == BadSMKey || what.kind == StrayMAD: // sm.SMInfoRefused, sm.ForeignSM and sm.StrayAnswer report it
	case what.kind.Violation():
		e := violationOf(w)
		e.Quiet = quiet
		l.fabric.Report(&e)
	default:
		guid := what.guid // of the reporter, unless it reports another
		if what.reporter != 0 {
			guid = what.reporter
		}
		l.fabric.Report(&TrapReceived{LID: w.More.last, GUID: guid, Place: what.at, Trap: what.trap, Count: w.Count, Quiet: quiet})
	}
}

// ReportDue reports rows that grew, and has Snapshot return them.
func (l *Log) ReportDue() {
	l.ticking = false
	if l.Due(func(i int32) { l.send(i, true) }) {
		l.tick()
	}
	l.shown, l.stale = nil, true
}

// Snapshot returns what views show of reports, not older than Config.TellEvery. It returns nil before the first.
func (l *Log) Snapshot() *List {
	if l.stale && l.shown == nil {
		l.stale = false
		l.shown = &List{Rows: l.list(), Totals: l.totals}
	}
	return l.shown
}

// Forget forgets the pending reports of a port that goes.
func (l *Log) Forget(p topo.PortID) {
	delete(l.pending, p)
	delete(l.credit, p)
	l.forgetGuesses(p)
}

// NoteSMKey counts a subnet manager that is not trusted: its command, or its answer to a Get of SMInfo. A more detailed
// event of the core reports it. The port is None if it is not known.
func (l *Log) NoteSMKey(p topo.PortID, lid ib.LID, method mad.Method, control mad.SMInfoControl, by Basis) {
	what := report{kind: BadSMKey, method: method, number: uint32(control)}
	if p != topo.None {
		l.accuse(&what, p, by)
	} else if lid.IsUnicast() {
		what.lid = lid
	}
	l.note(what, lid, 0)
}

// Stray is an answer without a request.
type Stray struct {
	GUID  ib.GUID  // the port that it accuses, 0 if that is not known
	Place ib.Place // of it
	Count uint64   // so far, from everywhere
}

// NoteStray counts an answer without a request. The port is the sender as the way of the answer shows it, or None. loud
// reports whether a more detailed event of the core is due.
func (l *Log) NoteStray(m *mad.MAD, lid ib.LID, from topo.PortID) (s Stray, loud bool) {
	l.strays++
	what := report{kind: StrayMAD, method: m.Method(), attr: m.Attr()}
	if from != topo.None {
		l.accuse(&what, from, ByWay)
	} else {
		l.accuseLID(&what, lid)
	}
	l.note(what, lid, 0)
	return Stray{what.guid, what.place, l.strays}, violationlog.Tells(l.strays)
}

// NotePacketsRefused counts packets that an external port of a switch has refused for their P_Keys. The switch, of which
// sw is port 0, has counted them, so they are proven; the counter has no P_Key, and raw packets are in it. The host is the
// port GUID of the adapter that sent them, or 0.
func (l *Log) NotePacketsRefused(sw topo.PortID, num ib.PortNum, host ib.GUID, n uint64) {
	port := l.topo.PortOf(l.nodeOf(sw), num)
	if n == 0 || !l.isSwitch(sw) || port == topo.None || !l.isExternal(port) {
		return
	}
	what := report{kind: BadPKey}
	l.reported(&what, sw, port)
	lid := ib.LID(0)
	what.place, what.by = l.fabric.PlaceOf(port), ByPort
	if peer := l.peer(port); peer != topo.None && host != 0 && l.guidOf(l.endOf(peer)) == host {
		l.accuse(&what, l.endOf(peer), ByPort)
		lid = l.fabric.LIDOf(l.endOf(peer))
	}
	i := l.count(what, lid, 0, n, l.fabric.Now())
	w := l.Row(i)
	w.Counted += n
	l.totals[BadPKey].Counted += n
	l.totals[BadPKey].Confirmed += n
	if !w.Report.others && w.More.verdict != Confirmed {
		w.More.verdict = Confirmed
		l.Prove(i)
	}
	l.noted(i)
}
