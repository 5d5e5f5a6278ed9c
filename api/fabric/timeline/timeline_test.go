package timeline

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// recorded is a segment, and beside it a full copy of the table at each of its events, and where that event ends.
type recorded struct {
	segment []byte
	events  []Event
	tables  []*State
	ends    []int
}

// random records n events of tables of about rows rows.
func random(t testing.TB, rng *rand.Rand, n, rows int) *recorded {
	t.Helper()
	var out recorded
	var table State
	var e Encoder
	known := true
	some := func(k Kind) []Row {
		all := make([]Row, 0, rows)
		for range rng.IntN(rows) {
			r := Row{Key: Key{Kind: k, ID: fmt.Sprint("id", rng.IntN(rows))}}
			for f := range Fields {
				if rng.IntN(3) > 0 {
					r.Value[f] = fmt.Sprint("text", rng.IntN(20))
				}
			}
			all = append(all, r)
		}
		return all
	}
	add := func(at time.Time, sort Sort, why string, changes []Change) {
		data, err := e.Event(at, sort, why, changes)
		if sort.whole() {
			data, err = e.Begin(at, sort, why, &table)
		}
		if err != nil {
			t.Fatal(err)
		}
		out.segment = append(out.segment, data...)
		out.events = append(out.events, Event{Time: at, Sort: sort, Why: why, Changes: changes})
		out.tables, out.ends = append(out.tables, table.Clone()), append(out.ends, len(out.segment))
	}
	at := noon
	table.Replace([]Kind{1}, some(1))
	add(at, Begin, "the first one", nil)
	for range n {
		at = at.Add(time.Duration(1+rng.IntN(5000)) * time.Millisecond)
		kind := Kind(1 + rng.IntN(3))
		switch what := rng.IntN(10); {
		case !known:
			known = true
			add(at, Resumed, "", table.Replace([]Kind{kind}, some(kind)))
		case what == 0:
			known = false
			add(at, End, "out of sight", nil)
		case what == 1:
			add(at, Alive, "", nil)
		default:
			add(at, Changed, "", table.Replace([]Kind{kind}, some(kind)))
		}
	}
	return &out
}

// TestEveryTime: the table that is restored at each time is the copy that was kept beside it, at events and between them.
func TestEveryTime(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := random(t, rand.New(rand.NewPCG(seed, 1)), 60, 30)
		if At(r.segment, noon.Add(-time.Millisecond)) != nil {
			t.Fatal("a table before the first event")
		}
		for i := range r.events {
			times := []time.Time{r.events[i].Time, r.events[i].Time.Add(time.Millisecond - 1)}
			for _, at := range times {
				got := At(r.segment, at)
				if got == nil || !got.State().Equal(r.tables[i]) {
					t.Fatalf("seed %d: the table at event %d is another one", seed, i)
				}
				if got.Known() != (r.events[i].Sort != End) {
					t.Fatalf("seed %d: event %d: known is %v after %v", seed, i, got.Known(), r.events[i].Sort)
				}
			}
		}
	}
}

// TestReplay: a reader returns the events as they were recorded, with what rows were and are.
func TestReplay(t *testing.T) {
	t.Parallel()
	r := random(t, rand.New(rand.NewPCG(7, 7)), 200, 40)
	in := NewReader(r.segment)
	for i := range r.events {
		got, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		want := &r.events[i]
		if !got.Time.Equal(want.Time) || got.Sort != want.Sort || got.Why != want.Why {
			t.Fatalf("event %d is %v, want %v", i, got, want)
		}
		same := func(a, b *Value) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
		if i > 0 && !slices.EqualFunc(got.Changes, want.Changes, func(a, b Change) bool { return a.Key == b.Key && same(a.Was, b.Was) && same(a.Now, b.Now) }) {
			t.Fatalf("event %d has other changes", i)
		}
		if in.Size() != r.ends[i] || !in.Time().Equal(want.Time) {
			t.Fatalf("event %d ends at %d, want %d", i, in.Size(), r.ends[i])
		}
	}
	if _, err := in.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last event: %v", err)
	}
}

// TestCutAnywhere: a segment that is cut off at any byte has all events that were whole, and no other.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	r := random(t, rand.New(rand.NewPCG(3, 4)), 25, 12)
	for size := range r.segment {
		whole := 0
		for whole < len(r.ends) && r.ends[whole] <= size {
			whole++
		}
		in := NewReader(r.segment[:size])
		var err error
		n := -1
		for ; err == nil; n++ {
			_, err = in.Next()
		}
		if n != whole {
			t.Fatalf("cut at byte %d: %d events, want %d", size, n, whole)
		}
		if at := whole > 0 && r.ends[whole-1] == size; errors.Is(err, io.EOF) != at {
			t.Fatalf("cut at byte %d: %v", size, err)
		}
		got := At(r.segment[:size], noon.Add(time.Hour))
		if (got == nil) != (whole == 0) || got != nil && !got.State().Equal(r.tables[whole-1]) {
			t.Fatalf("cut at byte %d: another table than that of event %d", size, whole-1)
		}
	}
}

// TestChangedAnywhere: a segment of which one byte is another has all events before it, and none that is not one of them.
func TestChangedAnywhere(t *testing.T) {
	t.Parallel()
	r := random(t, rand.New(rand.NewPCG(5, 6)), 12, 10)
	for i := range r.segment {
		bad := slices.Clone(r.segment)
		bad[i] ^= 0x41
		in := NewReader(bad)
		n := 0
		for ; ; n++ {
			if _, err := in.Next(); err != nil {
				break
			}
		}
		whole := 0
		for whole < len(r.ends) && r.ends[whole] <= i {
			whole++
		}
		if n != whole {
			t.Fatalf("byte %d changed: %d events, want %d", i, n, whole)
		}
	}
}

// TestReplaceBounds: what a host says of itself is cut, and no text that is not UTF-8 is kept.
func TestReplaceBounds(t *testing.T) {
	t.Parallel()
	var s State
	long := strings.Repeat("é", 300)
	changes := s.Replace([]Kind{1}, []Row{{Key{1, long}, Value{"\xff" + long}}, {Key{1, "twice"}, Value{"first"}}, {Key{1, "twice"}, Value{"second"}}})
	if len(changes) != 2 || s.Len() != 2 {
		t.Fatalf("%d changes, %d rows, want 2 and 2", len(changes), s.Len())
	}
	for _, r := range s.Rows() {
		for _, text := range append(r.Value[:], r.ID) {
			if len(text) > MaxText || !utf8.ValidString(text) {
				t.Errorf("%d bytes: %q", len(text), text)
			}
		}
	}
	if v, ok := s.Get(Key{1, "twice"}); !ok || v[0] != "first" {
		t.Errorf("of two rows with a key the one that counts is %q", v[0])
	}
	if gone := s.Replace([]Kind{2}, nil); len(gone) != 0 {
		t.Errorf("rows of another kind went: %v", gone)
	}
	if gone := s.Replace([]Kind{1}, nil); len(gone) != 2 || gone[0].Now != nil || s.Len() != 0 {
		t.Errorf("all rows were to go: %v", gone)
	}
}

// TestOrder: an encoder refuses what no reader takes.
func TestOrder(t *testing.T) {
	t.Parallel()
	var table State
	var e Encoder
	if _, err := e.Event(noon, Changed, "", nil); err == nil {
		t.Error("changes before the whole table")
	}
	if _, err := e.Begin(noon, Changed, "", &table); err == nil {
		t.Error("a segment that begins with changes")
	}
	if _, err := e.Begin(noon, Begin, "", &table); err != nil {
		t.Error(err)
	}
	if _, err := e.Event(noon, Continues, "", nil); err == nil {
		t.Error("a second whole table")
	}
	rows := make([]Row, MaxRows+1)
	for i := range rows {
		rows[i].Key = Key{1, fmt.Sprint(i)}
	}
	table.Replace([]Kind{1}, rows)
	if _, err := e.Begin(noon, Begin, "", &table); !errors.Is(err, ErrTooMany) {
		t.Errorf("too many rows: %v", err)
	}
}

// TestTimesGoOn: a reader refuses a segment whose times go back, and changes of a table that is not known.
func TestTimesGoOn(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(*Encoder) ([]byte, error){
		"back": func(e *Encoder) ([]byte, error) { return e.Event(noon.Add(-time.Millisecond), Alive, "", nil) },
		"unknown": func(e *Encoder) ([]byte, error) {
			a, err := e.Event(noon, End, "", nil)
			b, other := e.Event(noon, Changed, "", nil)
			return append(a, b...), errors.Join(err, other)
		},
	} {
		var e Encoder
		data, err := e.Begin(noon, Begin, "", &State{})
		if err != nil {
			t.Fatal(err)
		}
		more, err := next(&e)
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(append(data, more...))
		for err == nil {
			_, err = r.Next()
		}
		if errors.Is(err, io.EOF) {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzReader(f *testing.F) {
	r := random(f, rand.New(rand.NewPCG(1, 2)), 10, 8)
	f.Add(r.segment)
	f.Add(r.segment[:len(r.segment)/2])
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, segment []byte) {
		in := NewReader(segment)
		last := time.Time{}
		for {
			e, err := in.Next()
			if err != nil {
				break
			}
			if e.Time.Before(last) || in.State().Len() > MaxRows || in.Size() > len(segment) {
				t.Fatalf("%v after %v, %d rows", e.Time, last, in.State().Len())
			}
			last = e.Time
		}
		if got := At(segment, last); (got == nil) != (in.Size() == 0) {
			t.Fatalf("a table at %v: %v", last, got != nil)
		}
	})
}

// BenchmarkChange says what a change costs at 10,368 hosts: 20 of them change in each event, as in 2 s at 10 a second.
func BenchmarkChange(b *testing.B) {
	const hosts, each = 10368, 20
	rows := make([]Row, 0, hosts)
	phases := []string{"quarantined", "awaiting", "verified", "granting", "admitted", "releasing"}
	for i := range hosts {
		rows = append(rows, Row{Key{4, fmt.Sprintf("host-%05d", i)}, Value{phases[0], fmt.Sprint("tenant", i%50), fmt.Sprint("cluster", i%200)}})
	}
	var table State
	table.Replace([]Kind{4}, slices.Clone(rows))
	var e Encoder
	whole, err := e.Begin(noon, Begin, "", &table)
	if err != nil {
		b.Fatal(err)
	}
	bytes, at := 0, noon
	rng := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		for range each {
			rows[rng.IntN(hosts)].Value[0] = phases[rng.IntN(len(phases))]
		}
		at = at.Add(2 * time.Second)
		data, err := e.Event(at, Changed, "", table.Replace([]Kind{4}, slices.Clone(rows)))
		if err != nil {
			b.Fatal(err)
		}
		bytes += len(data)
	}
	b.ReportMetric(float64(bytes)/float64(b.N)/each, "bytes/change")
	b.ReportMetric(float64(len(whole)), "bytes/table")
}
