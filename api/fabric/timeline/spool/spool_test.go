package spool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"portcullis/api/fabric/timeline"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// Kinds of the tests: all readers see the first one, some the second one.
const (
	open   timeline.Kind = 1
	secret timeline.Kind = 2
)

func class(k timeline.Kind) Class { return Class(k) }

func opened(t testing.TB, dir string, now time.Time, edit func(*Options)) *Spool {
	t.Helper()
	o := Options{Dir: dir, Keep: 24 * time.Hour, Size: 8 << 20, Class: class}
	if edit != nil {
		edit(&o)
	}
	s, err := Open(o, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a test that closes it before has looked at the error
	return s
}

func rows(k timeline.Kind, value string, ids ...string) []timeline.Row {
	var out []timeline.Row
	for _, id := range ids {
		out = append(out, timeline.Row{Key: timeline.Key{Kind: k, ID: id}, Value: timeline.Value{value}})
	}
	return out
}

// set has the rows of a kind be others, and adds that.
func set(t testing.TB, s *Spool, at time.Time, table *timeline.State, k timeline.Kind, value string, ids ...string) {
	t.Helper()
	if err := s.Change(at, table.Replace([]timeline.Kind{k}, rows(k, value, ids...)), table); err != nil {
		t.Fatal(err)
	}
}

func at(t testing.TB, s *Spool, when time.Time, c Class) *Moment {
	t.Helper()
	m, err := s.At(t.Context(), when, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestDay records a day with times of which nothing is known, and compares each of its times with a full copy kept beside it, before and after
// the directory is opened again.
func TestDay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, dir, noon, nil)
	rng := rand.New(rand.NewPCG(1, 9))
	type look struct {
		time  time.Time
		table *timeline.State // nil: not known
	}
	var looks []look
	var table timeline.State
	now, known := noon, false
	for i := range 800 {
		now = now.Add(time.Duration(1+rng.IntN(200)) * time.Second)
		other := func() []timeline.Change {
			return table.Replace([]timeline.Kind{open}, rows(open, fmt.Sprint(rng.IntN(9)), fmt.Sprint(rng.IntN(30)), fmt.Sprint(rng.IntN(30))))
		}
		var err error
		switch {
		case !s.Open():
			other()
			err, known = s.Begin(now, "begun", &table), true
		case !known:
			err, known = s.Resume(now, other(), &table), true
		case i%61 == 0:
			err, known = s.End(now, "out of sight"), false
		case i%97 == 0:
			if err = s.End(now, "stopped"); err == nil {
				err, known = s.Close(), false
			}
		default:
			err = s.Change(now, other(), &table)
		}
		if err != nil {
			t.Fatal(err)
		}
		l := look{time: now}
		if known {
			l.table = table.Clone()
		}
		looks = append(looks, l)
	}
	if n := len(s.parts); n < 10 {
		t.Fatalf("%d segments: the test needs some", n)
	}
	compare := func(s *Spool) {
		t.Helper()
		for i, l := range looks {
			for _, when := range []time.Time{l.time, l.time.Add(999 * time.Microsecond)} {
				m := at(t, s, when, All)
				if (m.Table == nil) != (l.table == nil) || l.table != nil && !m.Table.Equal(l.table) {
					t.Fatalf("look %d at %v: another table (known %v, want %v): %s", i, when, m.Table != nil, l.table != nil, m.Why)
				}
				if m.Table == nil && m.Why == "" {
					t.Fatalf("look %d: nothing says why it is not known", i)
				}
			}
		}
		if m := at(t, s, noon, All); m.Table != nil || m.Why == "" {
			t.Error("a table before the first one")
		}
		if m := at(t, s, now.Add(time.Hour), All); m.Table != nil || m.Why == "" {
			t.Error("a table after the last one")
		}
	}
	compare(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	compare(opened(t, dir, now, nil))
}

// TestSteps: the changes before and after a time are the nearest ones that the reader may see, also in other segments.
func TestSteps(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), noon, nil)
	var table timeline.State
	if err := s.Begin(noon, "first", &table); err != nil {
		t.Fatal(err)
	}
	when := func(m int) time.Time { return noon.Add(time.Duration(m) * time.Minute) }
	for m := 10; m <= 100; m += 10 { // the segment that begins after an hour has the last ones
		k := open
		if m%20 == 0 {
			k = secret
		}
		set(t, s, when(m), &table, k, fmt.Sprint(m), "a")
	}
	if len(s.parts) != 2 {
		t.Fatalf("%d segments, want 2", len(s.parts))
	}
	for _, c := range []struct {
		at         int
		class      Class
		prev, next int // 0: none
	}{
		{5, All, 0, 10},
		{10, All, 0, 30},
		{25, All, 10, 30},
		{25, Confined, 20, 30},
		{60, Confined, 50, 70},
		{50, All, 30, 70},
		{70, All, 50, 90},
		{95, All, 90, 0},
		{100, Confined, 90, 0},
		{65, All, 50, 70},
	} {
		m := at(t, s, when(c.at), c.class)
		want := func(m int) time.Time {
			if m == 0 {
				return time.Time{}
			}
			return when(m)
		}
		if !m.Previous.Equal(want(c.prev)) || !m.Next.Equal(want(c.next)) {
			t.Errorf("at %d, class %d: %v and %v, want minutes %d and %d", c.at, c.class, m.Previous, m.Next, c.prev, c.next)
		}
	}
	count := func(c Class) (n int) {
		for _, m := range s.Known(when(100), c).Marks {
			n += m.Changes
		}
		return n
	}
	if count(All) != 5 || count(Confined) != 10 {
		t.Errorf("marks of %d and %d changes, want 5 and 10", count(All), count(Confined))
	}
	if k := s.Known(when(100), All); !k.Changed.Equal(when(90)) || !k.From.Equal(noon) || len(k.Gaps) != 0 || k.Short {
		t.Errorf("known: %+v", k)
	}
}

// TestChanges: pages have each change once, in order, and none that the reader may not see.
func TestChanges(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), noon, nil)
	var table timeline.State
	if err := s.Begin(noon, "first", &table); err != nil {
		t.Fatal(err)
	}
	var want []string
	for m := range 130 {
		if m%3 == 0 {
			set(t, s, noon.Add(time.Duration(m+1)*time.Minute), &table, secret, fmt.Sprint(m), "x", "y")
			continue
		}
		set(t, s, noon.Add(time.Duration(m+1)*time.Minute), &table, open, fmt.Sprint(m), "a", "b", "c")
		for _, id := range []string{"a", "b", "c"} {
			want = append(want, fmt.Sprint(id, m))
		}
	}
	for _, limit := range []int{1, 2, 3, 4, 7, 1000} {
		var got []string
		from := &Position{}
		for from != nil {
			all, next, err := s.Changes(t.Context(), *from, noon.Add(48*time.Hour), All, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(all) > limit || next != nil && len(all) == 0 {
				t.Fatalf("%d changes in a page of %d", len(all), limit)
			}
			for _, c := range all {
				got = append(got, c.ID+c.Now[0])
			}
			from = next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("pages of %d: %d changes, want %d", limit, len(got), len(want))
		}
	}
	some, next, err := s.Changes(t.Context(), Position{Time: noon.Add(2 * time.Minute)}, noon.Add(3*time.Minute), All, 100)
	if err != nil || next != nil || len(some) != 6 {
		t.Errorf("from 2 to 3 min: %d changes, %v, %v", len(some), next, err)
	}
}

// TestBounds: files take no more than they may, and are no older; what was removed is said.
func TestBounds(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	dir := t.TempDir()
	s := opened(t, dir, noon, func(o *Options) { o.Size = size })
	var table timeline.State
	rng := rand.New(rand.NewPCG(2, 2))
	now := noon
	if err := s.Begin(now, "first", &table); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		now = now.Add(2 * time.Second)
		all := make([]timeline.Row, 0, 40)
		for i := range 40 {
			all = append(all, timeline.Row{Key: timeline.Key{Kind: open, ID: fmt.Sprint("host", i)}, Value: timeline.Value{fmt.Sprint("a text of its own, ", rng.Uint64(), rng.Uint64())}})
		}
		if err := s.Change(now, table.Replace([]timeline.Kind{open}, all), &table); err != nil {
			t.Fatal(err)
		}
		if got := s.Size(); got > size+rollSize+(64<<10) {
			t.Fatalf("%d bytes, want %d and one segment at most", got, size)
		}
	}
	onDisk := int64(0)
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		onDisk += info.Size()
	}
	if onDisk != s.Size() {
		t.Errorf("%d bytes on the disk, %d counted", onDisk, s.Size())
	}
	if k := s.Known(now, All); !k.Short || !k.From.After(noon) || len(k.Gaps) != 0 {
		t.Errorf("nothing says that the oldest was removed: from %v, short %v", k.From, k.Short)
	}
	if m := at(t, s, noon, All); m.Table != nil {
		t.Error("what was removed is known")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := opened(t, dir, now, func(o *Options) { o.Size = size })
	if !again.Known(now, All).Short {
		t.Error("after a start nothing says that the oldest was removed")
	}
	later := opened(t, dir, now.Add(30*time.Hour), func(o *Options) { o.Size = size })
	if n := len(later.parts); n != 1 {
		t.Errorf("%d segments that are too old, want the newest alone", n)
	}
}

// TestFullDisk: a write that fails, in part or whole, ends what is known until the next beginning, and takes nothing that was known before.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, part := range []int{0, 1, 9, 20} {
		dir := t.TempDir()
		s := opened(t, dir, noon, nil)
		var table timeline.State
		if err := s.Begin(noon, "first", &table); err != nil {
			t.Fatal(err)
		}
		set(t, s, noon.Add(time.Minute), &table, open, "1", "a")
		s.write = func(f *os.File, data []byte) error {
			_, err := f.Write(data[:min(part, len(data))])
			return errors.Join(err, syscall.ENOSPC)
		}
		bad := noon.Add(2 * time.Minute)
		changes := table.Replace([]timeline.Kind{open}, rows(open, "2", "a"))
		if err := s.Change(bad, changes, &table); !errors.Is(err, syscall.ENOSPC) || s.Open() {
			t.Fatalf("a full disk: %v, open %v", err, s.Open())
		}
		if err := s.Begin(bad, "the disk was full", &table); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("a beginning on a full disk: %v", err)
		}
		if files, err := filepath.Glob(filepath.Join(dir, "*"+suffix)); err != nil || len(files) != 1 {
			t.Errorf("a beginning that failed left a file: %v, %v", files, err)
		}
		if k := s.Known(bad, All); k.Failed == "" || k.Until.After(noon.Add(time.Minute)) {
			t.Errorf("nothing says that it failed: %+v", k)
		}
		s.write = writeAll
		again := noon.Add(3 * time.Minute)
		if err := s.Begin(again, "the disk was full", &table); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Spool{s, opened(t, dir, again, nil)} {
			k := s.Known(again, All)
			if len(k.Gaps) != 1 || k.Gaps[0] != (Gap{noon.Add(time.Minute), again, "the disk was full"}) || k.Failed != "" {
				t.Errorf("%d bytes written: gaps %+v, failed %q", part, k.Gaps, k.Failed)
			}
			if m := at(t, s, noon.Add(time.Minute), All); m.Table == nil {
				t.Errorf("what was known before is not: %s", m.Why)
			}
			if m := at(t, s, bad, All); m.Table != nil || m.Why != "the disk was full" {
				t.Errorf("what was not written is known, or %q", m.Why)
			}
			if m := at(t, s, again, All); m.Table == nil || !m.Table.Equal(&table) {
				t.Error("the table after it is another one")
			}
		}
	}
}

// TestCutFile: a file that a crash cut off at any byte has what is whole, the rest is a gap, and the next start goes on in another file.
func TestCutFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, dir, noon, nil)
	var table timeline.State
	if err := s.Begin(noon, "first", &table); err != nil {
		t.Fatal(err)
	}
	first := s.Size()
	for m := 1; m <= 6; m++ {
		set(t, s, noon.Add(time.Duration(m)*time.Minute), &table, open, fmt.Sprint(m), "a")
	}
	whole, err := os.ReadFile(s.parts[0].path)
	if err != nil {
		t.Fatal(err)
	}
	for size := range whole {
		cut := t.TempDir()
		if err := os.WriteFile(filepath.Join(cut, "0000000000000001"+suffix), whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		s := opened(t, cut, noon, nil)
		if err := s.Begin(noon.Add(time.Hour), "a crash", &table); err != nil {
			t.Fatal(err)
		}
		if int64(size) < first {
			if k := s.Known(noon, All); !k.From.Equal(noon.Add(time.Hour)) {
				t.Fatalf("cut at %d: known from %v", size, k.From)
			}
			continue
		}
		last := s.Known(noon, All).Gaps
		if len(last) != 1 || last[0].Why != "a crash" {
			t.Fatalf("cut at %d: gaps %v", size, last)
		}
		n := int(last[0].From.Sub(noon) / time.Minute)
		got, ok := timeline.Value{}, n == 0
		if m := at(t, s, noon.Add(30*time.Minute), All); m.Table != nil {
			t.Fatalf("cut at %d: known in the gap", size)
		}
		if m := at(t, s, last[0].From, All); m.Table != nil && n > 0 {
			got, ok = m.Table.Get(timeline.Key{Kind: open, ID: "a"})
		}
		if !ok || n > 0 && got[0] != fmt.Sprint(n) {
			t.Fatalf("cut at %d: after minute %d the row is %q", size, n, got[0])
		}
	}
}

// TestLooked: what was looked at is known until then, and what was written in a run that did not close is known until its last event.
func TestLooked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, dir, noon, nil)
	var table timeline.State
	if err := s.Begin(noon, "first", &table); err != nil {
		t.Fatal(err)
	}
	s.Looked(noon.Add(20 * time.Second))
	if m := at(t, s, noon.Add(20*time.Second), All); m.Table == nil {
		t.Errorf("not known up to the look: %s", m.Why)
	}
	if m := at(t, s, noon.Add(21*time.Second), All); m.Table != nil {
		t.Error("known after the look")
	}
	killed := opened(t, dir, noon.Add(time.Minute), nil)
	if m := at(t, killed, noon.Add(20*time.Second), All); m.Table != nil {
		t.Error("known although nothing of it was written")
	}
	if err := s.Change(noon.Add(30*time.Second), nil, &table); err != nil {
		t.Fatal(err)
	}
	killed = opened(t, dir, noon.Add(time.Minute), nil)
	if m := at(t, killed, noon.Add(20*time.Second), All); m.Table == nil {
		t.Errorf("not known though it was written that nothing changed: %s", m.Why)
	}
	if err := s.End(noon.Add(40*time.Second), "ended"); err != nil {
		t.Fatal(err)
	}
	s.Looked(noon.Add(time.Hour))
	if k := s.Known(noon, All); !k.Until.Equal(noon.Add(40*time.Second)) || k.Why != "ended" {
		t.Errorf("after the end: until %v, %q", k.Until, k.Why)
	}
}

// TestReaders: a reader waits for its turn no longer than its request, and never for a writer.
func TestReaders(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), noon, nil)
	if err := s.Begin(noon, "first", &timeline.State{}); err != nil {
		t.Fatal(err)
	}
	for range readers {
		s.turns <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.At(ctx, noon, All); !errors.Is(err, context.Canceled) {
		t.Errorf("while all turns are taken: %v", err)
	}
}

// TestForeignFiles: what is no segment stays as it is, and a link in the place of a segment is not followed.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	for name, data := range map[string]string{filepath.Join(dir, "notes.txt"): "mine", secret: timeline.Magic} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(dir, "0000000000000007"+suffix)); err != nil {
		t.Fatal(err)
	}
	s := opened(t, dir, noon, nil)
	if err := s.Begin(noon, "first", &timeline.State{}); err != nil {
		t.Fatal(err)
	}
	if p := s.parts[0]; len(s.parts) != 1 || !strings.HasSuffix(p.path, "8"+suffix) {
		t.Errorf("segments: %d, the first one %s", len(s.parts), p.path)
	}
	for _, name := range []string{filepath.Join(dir, "notes.txt"), secret} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}
