package sm

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// report is what makes two reports the same row: who did what to whom. Nothing
// in it is a secret.
type report struct {
	kind     ReportKind
	trap     mad.TrapNum
	others   bool // the row stands for all of its kind and place, or of its kind
	traced   bool
	method   mad.Method
	class    mad.Class
	attr     mad.AttrID
	pkey     ib.PKey
	lid      ib.LID // of the source, where nobody has it; else 0
	number   uint32 // queue pair of the destination, control code
	guid     ib.GUID
	reporter ib.GUID
	place    ib.Place
	at       ib.Place // of the reporter
}

// row counts reports.
type row struct {
	report
	id      uint64
	last    ib.LID // of the source, as the last report has it
	count   uint64
	repeats uint64
	counted uint64
	series  uint64 // since it was quiet
	told    uint64 // count that the last event had
	began   time.Time
	seen    time.Time
	verdict Verdict
	tid     ib.TID // of the last trap

	// Rows of the same pool stand in the order in which they were seen last.
	next, prev int32
	pool       int8 // poolFree: the row is free
	due        bool // stands in rows.due
}

// Pools. Rows are made room for within their pool alone, so that what anybody can
// claim takes no room from what is proven.
const (
	poolFree    int8 = iota - 1
	poolClaimed      // and refuted
	poolConfirmed
	numPools
)

const noRow = int32(-1)

// rows is a bounded list of reports, with counts that are exact: what a row that
// is given up had counted goes to a row that stands for its kind.
type rows struct {
	cfg     *ViolationConfig
	at      map[report]int32
	row     []row
	free    []int32
	pools   [numPools]struct{ oldest, newest, size int32 }
	sources map[ib.Place]int // rows by place
	ids     uint64
	due     []int32 // that grew since they were told
	totals  [NumReportKinds]ReportTotal
}

// ReportTotal counts reports of a kind since the core was made.
type ReportTotal struct {
	Kind      ReportKind
	Reported  uint64 // all that came but for repetitions
	Repeated  uint64 // reports that were sent once more
	Confirmed uint64 // the device named has counted them
	Refuted   uint64 // the device named has counted nothing
	Counted   uint64 // violations that devices have counted, read from their counters
	Quiet     uint64 // that the log was not told of
}

func newRows(cfg *ViolationConfig) rows {
	r := rows{cfg: cfg, at: make(map[report]int32), sources: make(map[ib.Place]int)}
	for i := range r.pools {
		r.pools[i].oldest, r.pools[i].newest = noRow, noRow
	}
	for i := range r.totals {
		r.totals[i].Kind = ReportKind(i)
	}
	return r
}

// count counts a report and gives its row. tid is the transaction of the trap: the
// same one again is the same trap once more; 0 is none.
func (r *rows) count(what report, lid ib.LID, tid ib.TID, now time.Time) int32 {
	i, ok := r.at[what]
	if !ok {
		i = r.open(what, now)
	}
	w := &r.row[i]
	total := &r.totals[what.kind]
	w.last = lid
	r.touch(i)
	if ok && tid != 0 && w.tid == tid && !w.others && now.Sub(w.seen) < r.cfg.Quiet {
		w.repeats++
		total.Repeated++
		w.seen = now
		return i
	}
	if now.Sub(w.seen) >= r.cfg.Quiet {
		w.series = 0
	}
	w.tid, w.seen = tid, now
	w.count++
	w.series++
	total.Reported++
	return i
}

// open gives the row for a report that has none: its own, or if its source or all
// have too many one that stands for others.
func (r *rows) open(what report, now time.Time) int32 {
	if r.sources[what.place] >= r.cfg.RowsPerSource {
		what = report{kind: what.kind, place: what.place, others: true}
		if i, ok := r.at[what]; ok {
			return i
		}
		if r.sources[what.place] >= r.cfg.RowsPerSource+NumReportKinds {
			return r.rest(what.kind, now)
		}
	}
	return r.insert(what, poolClaimed, now)
}

// rest gives the row that stands for a whole kind. There is one for each, which is
// never given up.
func (r *rows) rest(k ReportKind, now time.Time) int32 {
	what := report{kind: k, others: true}
	if i, ok := r.at[what]; ok {
		return i
	}
	return r.insert(what, poolClaimed, now)
}

// insert makes a row, for which another one is given up if the pool is full.
func (r *rows) insert(what report, pool int8, now time.Time) int32 {
	if what.others && what.place.IsZero() {
		return r.place(what, poolFree, now)
	}
	if int(r.pools[pool].size) >= max(1, r.cfg.Rows/2) {
		r.giveUp(r.pools[pool].oldest)
	}
	return r.place(what, pool, now)
}

// place puts a row somewhere.
func (r *rows) place(what report, pool int8, now time.Time) int32 {
	i := int32(len(r.row))
	if n := len(r.free); n > 0 {
		i, r.free = r.free[n-1], r.free[:n-1]
	} else {
		r.row = append(r.row, row{})
	}
	r.ids++
	r.row[i] = row{report: what, id: r.ids, began: now, seen: now, pool: pool, next: noRow, prev: noRow, due: r.row[i].due}
	r.at[what] = i
	if pool != poolFree {
		r.sources[what.place]++
		r.append(i)
	}
	return i
}

// giveUp forgets a row. What it counted is counted by the row of its kind.
func (r *rows) giveUp(i int32) {
	w := &r.row[i]
	r.unlink(i)
	delete(r.at, w.report)
	if r.sources[w.place]--; r.sources[w.place] == 0 {
		delete(r.sources, w.place)
	}
	kind, count, repeats, counted, began, seen := w.kind, w.count, w.repeats, w.counted, w.began, w.seen
	r.row[i] = row{pool: poolFree, due: w.due}
	r.free = append(r.free, i)
	rest := &r.row[r.rest(kind, began)]
	rest.count += count
	rest.repeats += repeats
	rest.counted += counted
	rest.series += count
	if seen.After(rest.seen) {
		rest.seen = seen
	}
	if began.Before(rest.began) {
		rest.began = began
	}
}

// confirm moves a row to those that are proven.
func (r *rows) confirm(i int32) {
	w := &r.row[i]
	w.verdict = Confirmed
	if w.pool != poolClaimed {
		return
	}
	r.unlink(i)
	if int(r.pools[poolConfirmed].size) >= max(1, r.cfg.Rows/2) {
		r.giveUp(r.pools[poolConfirmed].oldest)
	}
	r.row[i].pool = poolConfirmed
	r.append(i)
}

// touch makes a row the newest of its pool.
func (r *rows) touch(i int32) {
	if pool := r.row[i].pool; pool != poolFree && r.pools[pool].newest != i {
		r.unlink(i)
		r.append(i)
	}
}

func (r *rows) append(i int32) {
	p := &r.pools[r.row[i].pool]
	r.row[i].prev, r.row[i].next = p.newest, noRow
	if p.newest != noRow {
		r.row[p.newest].next = i
	} else {
		p.oldest = i
	}
	p.newest = i
	p.size++
}

func (r *rows) unlink(i int32) {
	w := &r.row[i]
	p := &r.pools[w.pool]
	if w.prev != noRow {
		r.row[w.prev].next = w.next
	} else {
		p.oldest = w.next
	}
	if w.next != noRow {
		r.row[w.next].prev = w.prev
	} else {
		p.newest = w.prev
	}
	w.prev, w.next = noRow, noRow
	p.size--
}

// grown has a row told again when it is time.
func (r *rows) grown(i int32) {
	if w := &r.row[i]; !w.due {
		w.due = true
		r.due = append(r.due, i)
	}
}

// inUse reports a row that holds something.
func (w *row) inUse() bool { return w.count > 0 }

// list gives all rows in the order in which they began.
func (r *rows) list() []Violation {
	out := make([]Violation, 0, len(r.at))
	for i := range r.row {
		if w := &r.row[i]; w.inUse() {
			out = append(out, w.event())
		}
	}
	slices.SortFunc(out, func(a, b Violation) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// event gives a row as others see it.
func (w *row) event() Violation {
	return Violation{
		ID: w.id, Kind: w.kind, Trap: w.trap, Place: w.place, GUID: w.guid, LID: w.last, Traced: w.traced,
		Reporter: w.reporter, ReporterPlace: w.at, PKey: w.pkey, Detail: w.detail(), Verdict: w.verdict,
		Count: w.count, Repeats: w.repeats, Counted: w.counted, First: w.began.UTC(), Last: w.seen.UTC(), Others: w.others,
	}
}

// detail says what was tried.
func (w *row) detail() string {
	switch {
	case w.others:
		return ""
	case w.kind == BadMKey || w.kind == StrayMAD:
		return fmt.Sprintf("%v %v", w.method, w.attr)
	case w.kind == BadCCKey || w.kind == BadVSKey || w.kind == BadN2NKey || w.kind == N2NMisconfigured:
		return fmt.Sprintf("%v of attribute 0x%04x", w.method, uint16(w.attr))
	case w.kind == BadSMKey && w.method == mad.MethodSet:
		return mad.SMInfoControl(w.number).String()
	case w.kind == BadSMKey:
		return "answer to Get SMInfo"
	case w.kind == BadQKey && w.number != 0:
		return fmt.Sprintf("queue pair 0x%x", w.number)
	case (w.kind == ForgedTrap || w.kind == OtherTrap) && w.trap != 0:
		return fmt.Sprintf("trap %v", w.trap)
	case w.kind == BadPKey && w.trap == mad.TrapBadPKeySwitch:
		return "stopped by the switch"
	default:
		return ""
	}
}
