package declared

import (
	"cmp"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// rows is where the fabric is not as declared.
type rows struct {
	at    map[ib.Place]TopologyPort
	stale bool
	shown *TopologyView
	mode  string // as saved
	tried int    // verified links when enforcement was last refused
	told  [verify.NumVerdicts]uint64
}

func (r *rows) put(row TopologyPort) { r.at[row.Place], r.stale = row, true }

// list returns the rows by place.
func (r *rows) list() []TopologyPort {
	out := make([]TopologyPort, 0, len(r.at))
	for _, row := range r.at {
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b TopologyPort) int {
		return cmp.Or(cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
	})
	return out
}

// wrong counts the ports that enforcement would switch off, and had not before.
func (r *rows) wrong() (n int) {
	for _, row := range r.at {
		if row.Would == verify.Disable && !row.saved {
			n++
		}
	}
	return n
}

// record reports a transition, keeps a fault in the views, and counts it.
func (l *Law) record(ch *verify.Change) {
	at := ch.At
	_, known := l.rows.at[at]
	l.rows.stale = true
	normal := ch.To == verify.StateVerified && ch.Ruling.Fields == 0 || ch.To == verify.StateReleased || ch.Ruling.Verdict == verify.NotDiscovered ||
		ch.To == verify.StateDark && ch.Ruling.Verdict != verify.Missing
	if normal && !known && ch.To != verify.StateReleased || ch.To == verify.StateDark && l.silent {
		if known {
			l.solved(at)
			delete(l.rows.at, at)
		}
		return
	}
	row := l.row(ch)
	row.Since = l.fabric.Now().UTC().Truncate(time.Millisecond)
	if normal {
		delete(l.rows.at, at)
		l.solved(at)
		if !l.silent && !l.trial {
			l.act.Report(l.changed(row, ch))
		}
		return
	}
	l.rows.put(row)
	l.reportRow(row, ch)
}

func (l *Law) changed(row TopologyPort, ch *verify.Change) *TopologyChanged {
	return &TopologyChanged{TopologyPort: row, From: ch.From, Revision: l.judge.Spec().Revision().Number, By: ch.By, Why: ch.Why}
}

// reportRow reports once that a port is not as declared.
func (l *Law) reportRow(row TopologyPort, ch *verify.Change) {
	if l.silent || l.trial || row.Verdict == verify.Held {
		return
	}
	k := fault.Key{Kind: fault.TopologyBroken, Place: row.Place}
	switch {
	case row.Page:
		k.Kind = fault.TopologyProtected
	case row.Verdict == verify.Missing:
		k.Kind = fault.TopologyMissing
		if link, _ := l.judge.Spec().LinkAt(l.judge.Spec().SlotOf(topospec.EndAt(row.Place))); link != nil && link.A.GUID != row.Place.Switch && l.faults.Has(fault.Key{Kind: fault.TopologyMissing, Place: link.A.Place()}) {
			return // the same cable, from its other end
		}
	}
	if l.faults.Text(k) == row.Text {
		return
	}
	l.solved(row.Place)
	l.rows.told[row.Verdict]++
	if l.judge.Mode() == topospec.Observe {
		l.act.Report(l.changed(row, ch))
		return
	}
	l.problem(k, l.changed(row, ch))
}

// retell reports all ports that are not as declared and were not reported yet.
func (l *Law) retell() {
	for _, row := range l.rows.list() {
		l.reportRow(row, &verify.Change{At: row.Place, From: row.State, To: row.State})
	}
}

// solved removes the reported faults of a port from the views.
func (l *Law) solved(at ib.Place) {
	for _, kind := range [...]fault.Kind{fault.TopologyProtected, fault.TopologyBroken, fault.TopologyMissing} {
		l.faults.Clear(fault.Key{Kind: kind, Place: at})
	}
}
