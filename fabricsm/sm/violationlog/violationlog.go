// Package violationlog counts reports of misbehaviour: a row for each act of each source, with exact counts in bounded memory. It
// also decides when to report a row.
//
// Reports without room for a row of their own are counted by rows that stand for others: of the same kind and source, or of
// the same kind. A row that is removed leaves its counts there, so that the counts of a kind add up to all its reports
// ever.
package violationlog

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Report is the key of a row: the source and its act. Nothing in it is a secret.
type Report[R any, S comparable] interface {
	comparable
	// Source is the source, as far as rows are limited by that.
	Source() S
	// OfSource is the report that stands for all others of its kind and source.
	OfSource() R
	// OfKind is the one that stands for all others of its kind. There is one for each kind, and it is never removed.
	OfKind() R
}

// Bounds bound what rows may cost.
type Bounds struct {
	Rows      int // in all, half of them for those that are proven
	PerSource int // of one source
	Kinds     int // of reports: a source may have one row more for each, which stands for others
	// Quiet is the time after which a row that comes again is reported from the beginning of the sequence.
	Quiet time.Duration
}

// Row counts reports. X is the owner's additional data, also of rows that stand for others.
type Row[R, X any] struct {
	Report  R
	More    X
	ID      uint64 // rises from row to row; 0: the slot holds none
	Count   uint64
	Repeats uint64 // reports that were sent once more; the owner knows, and counts
	Counted uint64 // how often it was counted elsewhere; likewise
	Series  uint64 // since it was quiet
	Told    uint64 // Count at the last report to the owner
	Began   time.Time
	Seen    time.Time

	// Rows of the same pool stand in the order in which they were seen last.
	next, prev int32
	pool       int8
	due        bool // stands in Table.due
	step       bool // the last reports reached or passed a number at which the row is reported
}

// Pools. Room for a row is made only within its pool, so that claimed rows, which any host can cause, take no room from
// proven ones.
const (
	poolKept int8 = iota - 1 // never removed, or free
	poolClaimed
	poolProven
	numPools
)

const none = int32(-1)

// Table is a bounded list of rows.
type Table[R Report[R, S], S comparable, X any] struct {
	bounds  *Bounds
	at      map[R]int32
	row     []Row[R, X]
	free    []int32
	pools   [numPools]struct{ oldest, newest, size int32 }
	sources map[S]int // rows by source
	ids     uint64
	due     []int32 // that grew since they were last reported
	first   Pace    // of rows that are reported as soon as they begin
}

// New returns an empty table. The bounds stay the caller's, which may change them.
func New[R Report[R, S], S comparable, X any](b *Bounds) Table[R, S, X] {
	t := Table[R, S, X]{bounds: b, at: make(map[R]int32), sources: make(map[S]int)}
	for i := range t.pools {
		t.pools[i].oldest, t.pools[i].newest = none, none
	}
	return t
}

// Find returns the row for a report and makes it the one seen last. It is the report's own row, or one that stands for
// others if its source or all have too many. known reports whether it was there. The row is its own while its ID is the
// same.
func (t *Table[R, S, X]) Find(what R, now time.Time) (i int32, known bool) {
	i, known = t.at[what]
	if !known {
		i = t.open(what, now)
	}
	t.touch(i)
	return i, known
}

// Row returns a row. The pointer is valid until the next Find or Prove.
func (t *Table[R, S, X]) Row(i int32) *Row[R, X] { return &t.row[i] }

// Len is how many rows there are.
func (t *Table[R, S, X]) Len() int { return len(t.at) }

// Add counts reports, n of them at once.
func (t *Table[R, S, X]) Add(i int32, n uint64, now time.Time) {
	w := &t.row[i]
	if now.Sub(w.Seen) >= t.bounds.Quiet {
		w.Series = 0
	}
	w.Seen = now
	w.step = crosses(w.Series, w.Series+n)
	w.Count += n
	w.Series += n
}

// open returns a row for a report that has none.
func (t *Table[R, S, X]) open(what R, now time.Time) int32 {
	source := what.Source()
	if t.sources[source] >= t.bounds.PerSource {
		rest := what.OfSource()
		if i, ok := t.at[rest]; ok {
			return i
		}
		if t.sources[source] >= t.bounds.PerSource+t.bounds.Kinds {
			return t.rest(what, now)
		}
		what = rest
	}
	return t.insert(what, poolClaimed, now)
}

// rest returns the row that stands for the kind of a report.
func (t *Table[R, S, X]) rest(what R, now time.Time) int32 {
	what = what.OfKind()
	if i, ok := t.at[what]; ok {
		return i
	}
	return t.place(what, poolKept, now)
}

// insert makes a row, and removes another one if the pool is full.
func (t *Table[R, S, X]) insert(what R, pool int8, now time.Time) int32 {
	if what == what.OfKind() {
		return t.place(what, poolKept, now)
	}
	if int(t.pools[pool].size) >= max(1, t.bounds.Rows/2) {
		t.giveUp(t.pools[pool].oldest)
	}
	return t.place(what, pool, now)
}

// place puts a row somewhere.
func (t *Table[R, S, X]) place(what R, pool int8, now time.Time) int32 {
	i := int32(len(t.row))
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.row = append(t.row, Row[R, X]{})
	}
	t.ids++
	t.row[i] = Row[R, X]{Report: what, ID: t.ids, Began: now, Seen: now, pool: pool, next: none, prev: none, due: t.row[i].due}
	t.at[what] = i
	if pool != poolKept {
		t.sources[what.Source()]++
		t.append(i)
	}
	return i
}

// giveUp removes a row. Its counts are added to the row of its kind.
func (t *Table[R, S, X]) giveUp(i int32) {
	t.unlink(i)
	w := t.row[i]
	delete(t.at, w.Report)
	source := w.Report.Source()
	if t.sources[source]--; t.sources[source] == 0 {
		delete(t.sources, source)
	}
	t.row[i] = Row[R, X]{pool: poolKept, due: w.due}
	t.free = append(t.free, i)
	rest := &t.row[t.rest(w.Report, w.Began)]
	rest.Count += w.Count
	rest.Repeats += w.Repeats
	rest.Counted += w.Counted
	rest.Series += w.Count
	if w.Seen.After(rest.Seen) {
		rest.Seen = w.Seen
	}
	if w.Began.Before(rest.Began) {
		rest.Began = w.Began
	}
}

// Prove moves a row to those that are proven.
func (t *Table[R, S, X]) Prove(i int32) {
	if t.row[i].pool != poolClaimed {
		return
	}
	t.unlink(i)
	if int(t.pools[poolProven].size) >= max(1, t.bounds.Rows/2) {
		t.giveUp(t.pools[poolProven].oldest)
	}
	t.row[i].pool = poolProven
	t.append(i)
}

// touch makes a row the newest of its pool.
func (t *Table[R, S, X]) touch(i int32) {
	if pool := t.row[i].pool; pool != poolKept && t.pools[pool].newest != i {
		t.unlink(i)
		t.append(i)
	}
}

func (t *Table[R, S, X]) append(i int32) {
	p := &t.pools[t.row[i].pool]
	t.row[i].prev, t.row[i].next = p.newest, none
	if p.newest != none {
		t.row[p.newest].next = i
	} else {
		p.oldest = i
	}
	p.newest = i
	p.size++
}

func (t *Table[R, S, X]) unlink(i int32) {
	w := &t.row[i]
	p := &t.pools[w.pool]
	if w.prev != none {
		t.row[w.prev].next = w.next
	} else {
		p.oldest = w.next
	}
	if w.next != none {
		t.row[w.next].prev = w.prev
	} else {
		p.newest = w.prev
	}
	w.prev, w.next = none, none
	p.size--
}

// All returns the rows that have counted something, in the order in which they began.
func (t *Table[R, S, X]) All() iter.Seq[*Row[R, X]] {
	list := make([]*Row[R, X], 0, len(t.at))
	for i := range t.row {
		if w := &t.row[i]; w.Count > 0 {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b *Row[R, X]) int { return cmp.Compare(a.ID, b.ID) })
	return slices.Values(list)
}
