package violationlog_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/sm/violationlog"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const kinds = 3

// did is a report: source did something, of some kind.
type did struct {
	source, kind, what int
	others             bool
}

func (d did) Source() int   { return d.source }
func (d did) OfSource() did { return did{source: d.source, kind: d.kind, others: true} }
func (d did) OfKind() did   { return did{kind: d.kind, others: true} }

type table = violationlog.Table[did, int, struct{}]

func newTable(b violationlog.Bounds) *table {
	t := violationlog.New[did, int, struct{}](&b)
	return &t
}

// TestCountsAddUp reports a million acts of ever new sources. There are no more rows than allowed, and their counts, by
// kind, add up to all reports.
func TestCountsAddUp(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		b := violationlog.Bounds{Rows: 16 + rnd.IntN(64), PerSource: 1 + rnd.IntN(6), Kinds: kinds, Quiet: time.Minute}
		tab := newTable(b)
		var want [kinds]uint64
		now := start
		for range 20_000 {
			now = now.Add(time.Duration(rnd.Int64N(int64(time.Second))))
			d := did{source: 1 + rnd.IntN(1+rnd.IntN(100)), kind: rnd.IntN(kinds), what: rnd.IntN(20)}
			i, known := tab.Find(d, now)
			if w := tab.Row(i); known && w.Report != d && !w.Report.others {
				t.Fatalf("seed %d: %+v is counted as %+v", seed, d, w.Report)
			}
			n := 1 + rnd.Uint64N(3)
			tab.Add(i, n, now)
			want[d.kind] += n
			if rnd.IntN(5) == 0 {
				tab.Prove(i)
			}
			if most := b.Rows + kinds; tab.Len() > most {
				t.Fatalf("seed %d: %d rows, at most %d may be", seed, tab.Len(), most)
			}
		}
		var got [kinds]uint64
		last := uint64(0)
		of := make(map[int]int)
		for w := range tab.All() {
			got[w.Report.kind] += w.Count
			if w.ID <= last || w.Seen.Before(w.Began) {
				t.Errorf("seed %d: row %d after %d, seen %v, began %v", seed, w.ID, last, w.Seen, w.Began)
			}
			last = w.ID
			of[w.Report.source]++
		}
		if got != want {
			t.Errorf("seed %d: counts %v, want %v", seed, got, want)
		}
		delete(of, 0)
		for source, n := range of {
			if n > b.PerSource+kinds {
				t.Errorf("seed %d: source %d has %d rows, at most %d and one of each kind", seed, source, n, b.PerSource)
			}
		}
	}
}

func TestProvenIsNotDisplaced(t *testing.T) {
	tab := newTable(violationlog.Bounds{Rows: 8, PerSource: 4, Kinds: kinds, Quiet: time.Minute})
	first, _ := tab.Find(did{source: 1, what: 7}, start)
	tab.Add(first, 1, start)
	tab.Prove(first)
	for source := range 1000 {
		i, _ := tab.Find(did{source: 2 + source}, start)
		tab.Add(i, 1, start)
	}
	if w := tab.Row(first); w.Report != (did{source: 1, what: 7}) || w.Count != 1 {
		t.Errorf("the proven row is %+v", w)
	}
}

func TestTellsBySequence(t *testing.T) {
	tab := newTable(violationlog.Bounds{Rows: 8, PerSource: 4, Kinds: kinds, Quiet: time.Minute})
	var loud []uint64
	report := func(at time.Duration) {
		now := start.Add(at)
		i, _ := tab.Find(did{source: 1}, now)
		tab.Add(i, 1, now)
		if w := tab.Row(i); tab.Loud(i, now) {
			w.Told = w.Count
			loud = append(loud, w.Count)
		} else {
			tab.Later(i)
		}
	}
	for i := range 230 {
		report(time.Duration(i) * time.Millisecond)
	}
	if d := cmp.Diff([]uint64{1, 2, 5, 10, 20, 50, 100, 200}, loud); d != "" {
		t.Errorf("told loudly (-want +got):\n%s", d)
	}
	var due []uint64
	for tab.Due(func(i int32) {
		w := tab.Row(i)
		due = append(due, w.Count)
		w.Told = w.Count
	}) {
		t.Error("there is more to tell than one row")
	}
	if d := cmp.Diff([]uint64{230}, due); d != "" {
		t.Errorf("told later (-want +got):\n%s", d)
	}
	report(time.Hour)
	report(time.Hour)
	if d := cmp.Diff([]uint64{231, 232}, loud[8:]); d != "" {
		t.Errorf("told loudly after a quiet time (-want +got):\n%s", d)
	}
}

// TestTellsWhatIsPassed adds many at once: a number of the sequence that is passed is as
// good as one that is met.
func TestTellsWhatIsPassed(t *testing.T) {
	tab := newTable(violationlog.Bounds{Rows: 8, PerSource: 4, Kinds: kinds, Quiet: time.Minute})
	var loud []uint64
	for _, n := range []uint64{3, 1, 1, 1, 3, 90, 1, 800, 50, 50, 1} {
		i, _ := tab.Find(did{source: 1}, start)
		tab.Add(i, n, start)
		if tab.Loud(i, start) {
			w := tab.Row(i)
			w.Told = w.Count
			loud = append(loud, w.Count)
		}
	}
	if d := cmp.Diff([]uint64{3, 5, 99, 100, 900, 1000}, loud); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}

// TestNewRowsAreToldAtAPace: a source of ever new rows does not fill the log, and all rows are reported later.
func TestNewRowsAreToldAtAPace(t *testing.T) {
	tab := newTable(violationlog.Bounds{Rows: 4000, PerSource: 4, Kinds: kinds, Quiet: time.Minute})
	loud := 0
	for source := range 1000 {
		i, _ := tab.Find(did{source: source + 1}, start)
		tab.Add(i, 1, start)
		if tab.Loud(i, start) {
			tab.Row(i).Told = 1
			loud++
		} else {
			tab.Later(i)
		}
	}
	if loud > 50 {
		t.Errorf("%d rows were told at once", loud)
	}
	later := []int32{}
	for tab.Due(func(i int32) { later = append(later, i) }) {
	}
	slices.Sort(later)
	if got := len(slices.Compact(later)); got != 1000-loud {
		t.Errorf("%d rows were told later, want %d", got, 1000-loud)
	}
}

func TestTells(t *testing.T) {
	var got []uint64
	for n := range uint64(1001) {
		if violationlog.Tells(n) {
			got = append(got, n)
		}
	}
	if d := cmp.Diff([]uint64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}, got); d != "" {
		t.Errorf("sequence (-want +got):\n%s", d)
	}
}

func TestPace(t *testing.T) {
	var p violationlog.Pace
	taken := 0
	for i := range 1000 {
		if p.Take(start.Add(time.Duration(i)*time.Millisecond), 10, 5) {
			taken++
		}
	}
	if taken != 14 {
		t.Errorf("%d taken in a second, want 14: a burst of 5, and 10 a second", taken)
	}
	if p.Take(start.Add(-time.Hour), 10, 5) {
		t.Error("a clock that goes backwards gives more")
	}
}
