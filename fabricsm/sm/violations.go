package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// violations is what was reported of wrong keys and other traps.
type violations struct {
	rows
	first   pace                           // of rows that are told as soon as they begin
	checks  pace                           // of Gets that reports cause
	pending map[topo.PortID]*reportCheck   // reports that a Get is to prove, by the port to be asked
	credit  map[topo.PortID]*counterCredit // what ports have counted and nobody has reported
	guesses map[guessedKey]*guesses
	classes map[classReporter]rowName // what was reported last of a class, by whom; at most as many as rows
	senders map[ib.LID]*pace          // of traps, by base LID; 0: LIDs that nobody has
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
		rows: newRows(cfg), pending: make(map[topo.PortID]*reportCheck), credit: make(map[topo.PortID]*counterCredit),
		guesses: make(map[guessedKey]*guesses), classes: make(map[classReporter]rowName), senders: make(map[ib.LID]*pace),
	}
}

// pace lets so much through in a time: a bucket of tokens.
type pace struct {
	left float64
	at   time.Time // zero: it was never asked, and is full
}

// take takes a token if there is one. rate is tokens a second.
func (p *pace) take(now time.Time, rate, burst float64) bool {
	if p.at.IsZero() {
		p.left = burst
	} else {
		p.left = min(burst, p.left+rate*now.Sub(p.at).Seconds())
	}
	p.at = now
	if p.left < 1 {
		return false
	}
	p.left--
	return true
}

const (
	// firstRate and firstBurst pace rows that are told when they begin. The others
	// are told quietly at the next tick, so that who invents ever new ones does not
	// fill the log.
	firstRate, firstBurst = 4, 32
	// stormRate and stormBurst are how many traps a device sends by itself at most:
	// a switch with all its ports going up and down.
	stormRate, stormBurst = 100, 500
	// tellBatch bounds the rows that are told at a tick.
	tellBatch = 256
)

// note counts a report and tells it by the sequence.
func (c *Core) note(what report, lid ib.LID, tid ib.TID) int32 {
	v := &c.reports
	i := v.count(what, lid, tid, c.now)
	w := &v.row[i]
	v.stale = true
	loud := (tellRepetition(w.series) || c.cfg.Weakness.TellsAll) && w.told != w.count
	if loud && !c.cfg.Weakness.TellsAll && w.told == 0 && !w.others {
		loud = v.first.take(c.now, firstRate, firstBurst)
	}
	if loud {
		c.tellReport(i, false)
	} else {
		if w.told != w.count {
			v.totals[w.kind].Quiet++
		}
		v.grown(i)
	}
	c.tickReports()
	return i
}

func (c *Core) tickReports() {
	if v := &c.reports; !v.ticking {
		v.ticking = true
		c.after(c.cfg.Violations.TellEvery, timerViolations, ref{})
	}
}

// tellReport tells a row as it is now.
func (c *Core) tellReport(i int32, quiet bool) {
	w := &c.reports.row[i]
	w.told = w.count
	switch {
	case w.kind == BadSMKey || w.kind == StrayMAD: // SMInfoRefused, ForeignSM and StrayAnswer tell it
	case w.kind.Violation():
		e := w.event()
		e.Quiet = quiet
		c.event(&e)
	default:
		c.event(&TrapReceived{LID: w.last, GUID: w.guid, Place: w.at, Trap: w.trap, Count: w.count, Quiet: quiet})
	}
}

// reportsDue tells rows that grew, and has the next view show them.
func (c *Core) reportsDue() {
	v := &c.reports
	v.ticking = false
	due := v.due
	if len(due) > tellBatch {
		due = due[:tellBatch]
	}
	for _, i := range due {
		w := &v.row[i]
		w.due = false
		if w.inUse() && w.told != w.count {
			c.tellReport(i, true)
		}
	}
	if v.due = v.due[:copy(v.due, v.due[len(due):])]; len(v.due) > 0 {
		c.tickReports()
	}
	v.shown, v.stale = nil, true
	c.viewDue = true
}

// showViolations gives what views show of reports, nil before the first.
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

// noteSMKey counts a subnet manager that is not believed. Who tells of it says more.
func (c *Core) noteSMKey(p topo.PortID, lid ib.LID, method mad.Method, control mad.SMInfoControl, traced bool) {
	what := report{kind: BadSMKey, method: method, number: uint32(control)}
	if p != topo.None {
		c.accuse(&what, p, traced)
	} else if lid.IsUnicast() {
		what.lid = lid
	}
	c.note(what, lid, 0)
}
