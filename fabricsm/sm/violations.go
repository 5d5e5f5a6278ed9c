package sm

import (
	"cmp"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/rows"
	"portcullis/fabricsm/topo"
)

// violations holds the reports of wrong keys and other traps.
type violations struct {
	reportRows
	checks  rows.Pace                      // of Gets that reports cause
	pending map[topo.PortID]*reportCheck   // reports that a Get is to prove, by the port to be asked
	credit  map[topo.PortID]*counterCredit // violations that ports have counted and no trap has reported
	guesses map[guessedKey]*guesses
	classes map[classReporter]rowName // last row of each device that reports about a class; at most as many as rows
	senders map[ib.LID]*rows.Pace     // of traps, by base LID; 0: LIDs that no port has
	loud    map[ib.GUID]*rows.Pace    // of lines in the log, by the device that reports; 0: those beyond maxLoud, and none
	allLoud rows.Pace
	ticking bool
	stale   bool // shown is
	shown   *Violations
}

// Violations is what views show of reports. It is not written to afterwards.
type Violations struct {
	Rows   []Violation // by ID; see Violation
	Totals [NumReportKinds]ReportTotal
}

func newViolations(cfg *ViolationConfig) violations {
	return violations{
		reportRows: newReportRows(cfg), pending: make(map[topo.PortID]*reportCheck), credit: make(map[topo.PortID]*counterCredit),
		guesses: make(map[guessedKey]*guesses), classes: make(map[classReporter]rowName), senders: make(map[ib.LID]*rows.Pace),
		loud: make(map[ib.GUID]*rows.Pace),
	}
}

// stormRate and stormBurst are how many traps a device sends by itself at most: a
// switch with all its ports going up and down.
const stormRate, stormBurst = 100, 500

// Limits of log lines about reports, for one device and for all. A host chooses what its traps accuse, and has as many rows
// as there are LIDs. Each row is logged repeatedly by the sequence: that must not fill a journal.
const (
	loudRate, loudBurst       = 0.2, 32
	allLoudRate, allLoudBurst = 4, 256
	maxLoud                   = 1 << 16
)

// mayTell reports whether the log may have another line about what a device reports, or is accused of where that is not known.
func (v *violations) mayTell(r *report, now time.Time) bool {
	reporter := cmp.Or(r.reporter, r.guid)
	if v.loud[reporter] == nil && len(v.loud) >= maxLoud {
		reporter = 0
	}
	p := v.loud[reporter]
	if p == nil {
		p = &rows.Pace{}
		v.loud[reporter] = p
	}
	return p.Take(now, loudRate, loudBurst) && v.allLoud.Take(now, allLoudRate, allLoudBurst)
}

// note counts a report and reports it by the sequence.
func (c *Core) note(what report, lid ib.LID, tid ib.TID) int32 {
	i := c.reports.count(what, lid, tid, 1, c.now)
	c.noted(i)
	return i
}

// noted reports a row whose count has grown, by the sequence.
func (c *Core) noted(i int32) {
	v := &c.reports
	w := v.Row(i)
	v.stale = true
	loud := c.cfg.Weakness.TellsAll && w.Told != w.Count || v.Steps(i) && v.mayTell(&w.Report, c.now) && v.Loud(i, c.now)
	if loud {
		c.tellReport(i, false)
	} else {
		if w.Told != w.Count {
			v.totals[w.Report.kind].Quiet++
		}
		v.Later(i)
	}
	c.tickReports()
}

func (c *Core) tickReports() {
	if v := &c.reports; !v.ticking {
		v.ticking = true
		c.after(c.cfg.Violations.TellEvery, timerViolations, ref{})
	}
}

// tellReport reports a row as it is now.
func (c *Core) tellReport(i int32, quiet bool) {
	w := c.reports.Row(i)
	w.Told = w.Count
	switch what := &w.Report; {
	case what.kind == BadSMKey || what.kind == StrayMAD: // SMInfoRefused, ForeignSM and StrayAnswer report it
	case what.kind.Violation():
		e := violationOf(w)
		e.Quiet = quiet
		c.event(&e)
	default:
		guid := what.guid // of the reporter, unless it reports another
		if what.reporter != 0 {
			guid = what.reporter
		}
		c.event(&TrapReceived{LID: w.More.last, GUID: guid, Place: what.at, Trap: what.trap, Count: w.Count, Quiet: quiet})
	}
}

// reportsDue reports rows that grew, and has the next view show them.
func (c *Core) reportsDue() {
	v := &c.reports
	v.ticking = false
	if v.Due(func(i int32) { c.tellReport(i, true) }) {
		c.tickReports()
	}
	v.shown, v.stale = nil, true
	c.viewDue = true
}

// showViolations returns what views show of reports, nil before the first.
func (c *Core) showViolations() *Violations {
	v := &c.reports
	if v.stale && v.shown == nil {
		v.stale = false
		v.shown = &Violations{Rows: v.list(), Totals: v.totals}
	}
	return v.shown
}

// reported names the device that sent a trap, or says that it is about port q of it.
func (c *Core) reported(r *report, p, q topo.PortID) {
	r.reporter = c.guidOf(p)
	switch {
	case c.topo.Node(c.ports[p].node).Type != ib.NodeSwitch:
		r.at = c.placeOf(p)
	case q != topo.None && q != p:
		r.at = c.placeOf(q)
	}
}

// noteSMKey counts a subnet manager that is not trusted. A more detailed event reports it.
func (c *Core) noteSMKey(p topo.PortID, lid ib.LID, method mad.Method, control mad.SMInfoControl, by Basis) {
	what := report{kind: BadSMKey, method: method, number: uint32(control)}
	if p != topo.None {
		c.accuse(&what, p, by)
	} else if lid.IsUnicast() {
		what.lid = lid
	}
	c.note(what, lid, 0)
}
