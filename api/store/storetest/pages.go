package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/store"
)

func pages(t *testing.T, s *store.Store) {
	other := store.NewCollection[note]("notest", 1) // a neighbour in key order
	if _, err := s.Update(t.Context(), func(tx *store.Tx) error { return other.Put(tx, "a", note{}) }); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"a", "b", "b/c", "d", "e"} {
		put(t, s, k, note{Text: k})
	}
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "c", note{}) // after the snapshot
	var got [][]string
	for after := ""; ; {
		page, err := notes().Page(t.Context(), snap, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, r := range page {
			keys = append(keys, r.Key)
		}
		got = append(got, keys)
		if len(page) < 2 {
			break
		}
		after = page[1].Key
	}
	if d := cmp.Diff([][]string{{"a", "b"}, {"b/c", "d"}, {"e"}}, got); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	if page, err := notes().Page(t.Context(), snap, "b0", 9); err != nil || len(page) != 2 {
		t.Errorf("after a key that is not there: %d records, %v; want 2", len(page), err)
	}
	for _, tt := range []struct {
		prefix, after string
		want          int
	}{{"b", "", 2}, {"b", "b", 1}, {"b", "b/c", 0}, {"b", "a", 2}, {"b", "d", 0}, {"x", "", 0}} {
		page, err := notes().PageBelow(t.Context(), snap, tt.prefix, tt.after, 9)
		if err != nil || len(page) != tt.want {
			t.Errorf("below %q after %q: %d records, %v; want %d", tt.prefix, tt.after, len(page), err, tt.want)
		}
	}
}

// several checks that records are read by their keys, as of the snapshot, also more than an
// etcd takes operations in a transaction.
func several(t *testing.T, s *store.Store) {
	var keys, want []string
	for i := range 300 {
		key := fmt.Sprintf("k%03d", 299-i)
		if keys = append(keys, key); i%3 == 0 {
			continue // not there
		}
		want = append(want, key)
		put(t, s, key, note{Text: key})
	}
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "k000", note{Text: "later"})
	put(t, s, "k299", note{Text: "later"})
	recs, err := notes().Of(t.Context(), snap, keys)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range recs {
		if got = append(got, r.Key); r.Value.Text != r.Key {
			t.Errorf("%s has the text %q, which is not that of the snapshot", r.Key, r.Value.Text)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
	if recs, err := notes().Of(t.Context(), snap, nil); err != nil || len(recs) != 0 {
		t.Errorf("of no keys: %d records, %v", len(recs), err)
	}
}
