package violation

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/violationlog"
)

// report holds the fields that two reports of the same row share: source, act and victim. Nothing in it is a secret.
type report struct {
	kind     Kind
	trap     mad.TrapNum
	others   bool // the row stands for all of its kind and place, or of its kind
	by       Basis
	method   mad.Method
	class    mad.Class
	attr     mad.AttrID
	pkey     ib.PKey
	lid      ib.LID // of the source, if no port has it; else 0
	named    ib.LID // see Violation.Named; rows do not differ by it
	number   uint32 // queue pair of the destination, control code
	guid     ib.GUID
	reporter ib.GUID
	victim   ib.GUID
	place    ib.Place
	at       ib.Place // of the reporter
}

// Source implements violationlog.Report: the place it came from.
func (r report) Source() ib.Place { return r.place }

// OfSource implements violationlog.Report.
func (r report) OfSource() report { return report{kind: r.kind, place: r.place, others: true} }

// OfKind implements violationlog.Report.
func (r report) OfKind() report { return report{kind: r.kind, others: true} }

// noted is what a row of reports holds beside its counts.
type noted struct {
	last    ib.LID // of the source, as the last report has it
	named   ib.LID // by the SMP of the last report, see Violation.Named
	verdict Verdict
	tid     ib.TID // of the last trap
}

type row = violationlog.Row[report, noted]

// table are the rows of reports, and the totals of each kind.
type table struct {
	violationlog.Table[report, ib.Place, noted]
	bounds *violationlog.Bounds
	totals [NumKinds]Total
}

// Total counts reports of a kind since the core was made.
type Total struct {
	Kind      Kind
	Reported  uint64 // all that came but for repetitions
	Repeated  uint64 // reports that were sent once more
	Confirmed uint64 // the device named has counted them
	Refuted   uint64 // the device named has counted nothing
	Counted   uint64 // violations that devices have counted, read from their counters
	Quiet     uint64 // reports that were not logged
}

func newTable(cfg *Config) table {
	b := &violationlog.Bounds{Rows: cfg.Rows, PerSource: cfg.RowsPerSource, Kinds: NumKinds, Quiet: cfg.Quiet}
	r := table{Table: violationlog.New[report, ib.Place, noted](b), bounds: b}
	for i := range r.totals {
		r.totals[i].Kind = Kind(i)
	}
	return r
}

// count counts n reports and returns the index of their row. tid is the transaction of the trap: the
// same one again is the same trap once more; 0 is none.
func (r *table) count(what report, lid ib.LID, tid ib.TID, n uint64, now time.Time) int32 {
	named := what.named
	what.named = 0 // a sender chooses it: else it had as many rows as there are LIDs
	i, known := r.Find(what, now)
	w, total := r.Row(i), &r.totals[what.kind]
	w.More.last, w.More.named = lid, named
	if known && tid != 0 && w.More.tid == tid && !w.Report.others && now.Sub(w.Seen) < r.bounds.Quiet {
		w.Repeats++
		total.Repeated++
		w.Seen = now
		return i
	}
	w.More.tid = tid
	r.Add(i, n, now)
	total.Reported += n
	return i
}

// list returns all rows in the order in which they began.
func (r *table) list() []Violation {
	out := make([]Violation, 0, r.Len())
	for w := range r.All() {
		out = append(out, violationOf(w))
	}
	return out
}

// violationOf returns a row as an event.
func violationOf(w *row) Violation {
	what := &w.Report
	return Violation{
		ID: w.ID, Kind: what.kind, Trap: what.trap, Place: what.place, GUID: what.guid, LID: w.More.last, By: what.by, Named: w.More.named, Victim: what.victim,
		Reporter: what.reporter, ReporterPlace: what.at, PKey: what.pkey, Detail: what.detail(), Verdict: w.More.verdict,
		Count: w.Count, Repeats: w.Repeats, Counted: w.Counted, First: w.Began.UTC(), Last: w.Seen.UTC(), Others: what.others,
	}
}

// detail names the attempt.
func (r *report) detail() string {
	switch {
	case r.others:
		return ""
	case r.kind == HostWrote && int(r.number) < len(hostFieldNames):
		return hostFieldNames[r.number]
	case r.kind == BadMKey || r.kind == StrayMAD:
		return fmt.Sprintf("%v %v", r.method, r.attr)
	case r.kind == BadCCKey || r.kind == BadVSKey || r.kind == BadN2NKey || r.kind == N2NMisconfigured:
		return fmt.Sprintf("%v of attribute 0x%04x", r.method, uint16(r.attr))
	case r.kind == BadSMKey && r.method == mad.MethodSet:
		return mad.SMInfoControl(r.number).String()
	case r.kind == BadSMKey:
		return "answer to Get SMInfo"
	case r.kind == BadQKey && r.number != 0:
		return fmt.Sprintf("queue pair 0x%x", r.number)
	case (r.kind == ForgedTrap || r.kind == OtherTrap) && r.trap != 0:
		return fmt.Sprintf("trap %v", r.trap)
	case r.kind == BadPKey && r.trap == mad.TrapBadPKeySwitch:
		return "stopped by the switch"
	case r.kind == BadPKey && r.trap == 0:
		return "counted by the switch port, with raw packets"
	default:
		return ""
	}
}
