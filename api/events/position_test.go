package events

import (
	"slices"
	"testing"
	"time"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

func FuzzPosition(f *testing.F) {
	f.Add("0123456789abcdef-12-ffffffffffffffff")
	f.Add("0123456789abcdef-9223372036854775808-0000000000000000")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := ParsePosition(text); ok && p.String() != text {
			t.Errorf("%q is read as %v", text, p)
		}
	})
}

// Events of one revision have an order, and each of their positions resumes behind itself: in single changes and in what is left of
// them.
func TestEachPositionResumes(t *testing.T) {
	t.Parallel()
	s := newStore()
	if _, err := s.Update(t.Context(), func(tx *store.Tx) error {
		for _, host := range []string{"h1", "h2", "h3", "h4", "h5"} {
			if err := Record(t.Context(), tx, start, changed(host)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	series, err := SeriesOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	all, now, err := series.Since(t.Context(), s, Position{Series: series.ID})
	if err != nil || len(all) != 5 {
		t.Fatalf("%d events, %v", len(all), err)
	}
	for i := range all {
		left, _, err := series.Since(t.Context(), s, all[i].Position)
		if err != nil || !slices.EqualFunc(left, all[i+1:], same) {
			t.Errorf("after event %d: %v, %v", i, left, err)
		}
		if i == len(all)-1 {
			continue
		}
		b := <-series.Watch(t.Context(), s, all[i].Position)
		if b.Err != nil || !slices.EqualFunc(b.Changes, all[i+1:], same) {
			t.Errorf("watched after event %d: %+v", i, b)
		}
	}
	listed := list(t, s, v1.EventQuery{})
	if p, ok := ParsePosition(listed.Position); !ok || p.Compare(now) != 0 {
		t.Errorf("position of the list %q, want %v", listed.Position, now)
	}
	for _, e := range listed.Items {
		if !slices.ContainsFunc(all, func(c Change) bool { return c.Event.ID == e.ID && c.Event.Host == e.Host }) {
			t.Errorf("the list has %s with id %s", e.Host, e.ID)
		}
	}
}

func same(a, b Change) bool { return a.Position == b.Position && a.Event == b.Event }

// The series survives a restart, and knows the last revision whose row was removed.
func TestSeriesKnowsWhatWasRemoved(t *testing.T) {
	t.Parallel()
	s := newStore()
	first, err := SeriesOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := tell(t, s, start, changed("h1")); err != nil {
		t.Fatal(err)
	}
	id, _ := ParsePosition(list(t, s, v1.EventQuery{}).Items[0].ID)
	if err := prune(t.Context(), s, start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	later, err := SeriesOf(t.Context(), s.Twin())
	if err != nil || later.ID != first.ID || later.Removed != id.Revision {
		t.Errorf("series %+v, %v; want %s and revision %d", later, err, first.ID, id.Revision)
	}
}
