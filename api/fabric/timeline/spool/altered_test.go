package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"portcullis/api/fabric/timeline"
)

// hours records one change a minute for some hours, so that each hour has a segment.
func hours(t *testing.T, s *Spool, n int) *timeline.State {
	t.Helper()
	table := &timeline.State{}
	if err := s.Begin(noon, "first", table); err != nil {
		t.Fatal(err)
	}
	for m := 1; m < 60*n; m++ {
		set(t, s, noon.Add(time.Duration(m)*time.Minute), table, open, fmt.Sprint(m), "a")
	}
	if len(s.parts) != n {
		t.Fatalf("%d segments, want %d", len(s.parts), n)
	}
	return table
}

// TestLostSegment: where a segment that another one goes on with is gone or cut off, its time is a gap.
func TestLostSegment(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(path string) error{
		"gone":    os.Remove,
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"cut off": func(path string) error { return os.Truncate(path, 400) },
	} {
		dir := t.TempDir()
		s := opened(t, dir, noon, nil)
		hours(t, s, 3)
		if err := errors.Join(s.Close(), harm(s.parts[1].path)); err != nil {
			t.Fatal(err)
		}
		s = opened(t, dir, noon.Add(3*time.Hour), nil)
		when := noon.Add(119 * time.Minute)
		if m := at(t, s, when, All); m.Table != nil || m.Why != "what was recorded then is lost, or was altered" {
			t.Errorf("%s: known %v, %q", name, m.Table != nil, m.Why)
		}
		gaps := s.Known(noon.Add(3*time.Hour), All).Gaps
		if len(gaps) != 1 || gaps[0].From.After(when) || gaps[0].Until.Before(when) || gaps[0].Why == "" {
			t.Errorf("%s: gaps %+v", name, gaps)
		}
		if m := at(t, s, noon.Add(150*time.Minute), All); m.Table == nil {
			t.Errorf("%s: the segment behind it is not known: %s", name, m.Why)
		}
	}
}

// TestAlteredSegment: whichever byte of a file is altered while it is in use, no time is shown as it was not.
func TestAlteredSegment(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), noon, nil)
	table := &timeline.State{}
	if err := s.Begin(noon, "first", table); err != nil {
		t.Fatal(err)
	}
	const last = 4
	for m := 1; m <= last; m++ {
		set(t, s, noon.Add(time.Duration(m)*time.Minute), table, open, fmt.Sprint(m), "a")
	}
	path := s.parts[0].path
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		bad := append([]byte(nil), whole...)
		bad[i] ^= 0x10
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		for m := 1; m <= last; m++ {
			got := at(t, s, noon.Add(time.Duration(m)*time.Minute), All)
			if got.Table == nil {
				if got.Why == "" {
					t.Fatalf("byte %d, minute %d: not known, nothing says why", i, m)
				}
				continue
			}
			if v, _ := got.Table.Get(timeline.Key{Kind: open, ID: "a"}); v[0] != fmt.Sprint(m) {
				t.Fatalf("byte %d altered: minute %d is shown as %q", i, m, v[0])
			}
		}
		if all, _, err := s.Changes(t.Context(), Position{}, noon.Add(time.Hour), All, 100); err == nil {
			t.Fatalf("byte %d altered: %d changes are listed as all", i, len(all))
		}
	}
}

// TestUnreadFile: a file that cannot be read now, such as one of another owner, is not removed, and nothing fails because of it.
func TestUnreadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, make := range []func(path string) error{
		func(path string) error { return os.MkdirAll(filepath.Join(path, "in"), 0o700) },
		func(path string) error { return os.Symlink("/nowhere", path) },
		func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, most+1))
		},
	} {
		path := filepath.Join(dir, fmt.Sprintf("%016x%s", i+1, suffix))
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		s := opened(t, dir, noon, nil)
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("it was removed: %v", err)
		}
		if len(s.parts) != 0 || s.number != uint64(i+1) {
			t.Errorf("%d segments, number %d", len(s.parts), s.number)
		}
	}
}

// TestTooManyRows: what no reader takes is not written.
func TestTooManyRows(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), noon, func(o *Options) { o.Size = 1 << 30 })
	table := &timeline.State{}
	if err := s.Begin(noon, "first", table); err != nil {
		t.Fatal(err)
	}
	all := make([]timeline.Row, timeline.MaxRows+1)
	for i := range all {
		all[i].Key = timeline.Key{Kind: open, ID: fmt.Sprint(i)}
	}
	if err := s.Change(noon.Add(time.Minute), table.Replace([]timeline.Kind{open}, all), table); !errors.Is(err, timeline.ErrTooMany) {
		t.Errorf("a row too many: %v", err)
	}
	if k := s.Known(noon, All); !k.Changed.IsZero() {
		t.Errorf("it counts as recorded at %v", k.Changed)
	}
}
