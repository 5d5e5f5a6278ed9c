package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/reason"
	"portcullis/api/store"
	"portcullis/api/store/storetest"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func appended(t *testing.T, s *store.Store, n int) {
	t.Helper()
	for i := range n {
		_, err := s.Update(t.Context(), func(tx *store.Tx) error {
			return Append(t.Context(), tx, Entry{
				Time: start.Add(time.Duration(i) * time.Second), Actor: "alice", Action: "host.assign",
				Object: fmt.Sprintf("host/h%d", i), Code: "ok", Detail: "to cluster c1",
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestChain(t *testing.T) {
	backend := storetest.Open(t).Backend()
	edit := func(seq uint64, change func(*Entry)) func(*testing.T, *store.Store) {
		return func(t *testing.T, s *store.Store) {
			_, err := s.Update(t.Context(), func(tx *store.Tx) error {
				rec, err := Entries().Get(t.Context(), tx, key(seq))
				if err != nil {
					return err
				}
				change(&rec.Value)
				return Entries().Put(tx, key(seq), rec.Value)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(seq uint64) func(*testing.T, *store.Store) {
		return func(t *testing.T, s *store.Store) {
			_, err := s.Update(t.Context(), func(tx *store.Tx) error { Entries().Delete(tx, key(seq)); return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	rehash := func(e *Entry) {
		e.Actor = "mallory"
		e.Hash, _ = e.Sum()
	}
	for _, c := range []struct {
		name   string
		tamper func(*testing.T, *store.Store)
		want   string // in the error; empty: the chain is whole
	}{
		{"whole", func(*testing.T, *store.Store) {}, ""},
		{"actor altered", edit(3, func(e *Entry) { e.Actor = "mallory" }), "entry 3 was altered"},
		{"time altered", edit(1, func(e *Entry) { e.Time = e.Time.Add(1) }), "entry 1 was altered"},
		{"altered with a fresh hash", edit(3, rehash), "entry 4 does not follow entry 3"},
		{"last altered with a fresh hash", edit(5, rehash), "its head says 5"},
		{"sequence altered", edit(2, func(e *Entry) { e.Seq = 7 }), "entry 2 is missing"},
		{"first removed", remove(1), "entry 1 is missing"},
		{"one in the middle removed", remove(3), "entry 3 is missing"},
		{"last removed", remove(5), "entries were removed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := store.New(backend, strings.ReplaceAll(c.name, " ", "-"))
			appended(t, s, 5)
			c.tamper(t, s)
			h, err := Verify(t.Context(), s)
			if c.want == "" {
				if err != nil || h.Seq != 5 {
					t.Errorf("got end %+v, %v, want a whole chain of 5", h, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// A text that was cut within a letter, as what a host says may be, does not make the
// chain look altered.
func TestTextCutWithinALetter(t *testing.T) {
	s := storetest.Open(t)
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		return Append(t.Context(), tx, Entry{Time: start, Actor: "agent:h1", Action: "lock.refuse", Object: "host/h1", Detail: "é"[:1]})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// TestReasonOfEntry: an entry has the reason of its request, one of the service itself has none, and an entry without one is
// written as it was before there were reasons.
func TestReasonOfEntry(t *testing.T) {
	s := storetest.Open(t)
	ctx := reason.With(t.Context(), "ticket 88")
	_, err := s.Update(ctx, func(tx *store.Tx) error {
		for _, e := range []Entry{
			{Actor: "olga"}, {Actor: Service}, {Actor: "olga", Reason: "of its own"},
		} {
			e.Time, e.Action, e.Object = start, "b", "c"
			if err := Append(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for seq, want := range []string{"ticket 88", "", "of its own"} {
		e, err := Get(t.Context(), s, uint64(seq+1))
		if err != nil || e.Reason != want {
			t.Fatalf("entry %d: %+v, %v; want reason %q", seq+1, e, err, want)
		}
		if text, err := json.Marshal(e); err != nil || strings.Contains(string(text), "reason") != (want != "") {
			t.Errorf("entry %d: %s, %v", seq+1, text, err)
		}
		other := *e
		other.Reason = "forged"
		if sum, err := other.Sum(); err != nil || sum == e.Hash {
			t.Errorf("entry %d with another reason has the same hash: %v", seq+1, err)
		}
	}
	if _, err := Verify(t.Context(), s); err != nil {
		t.Error(err)
	}
}

func TestSeveralInOneTransaction(t *testing.T) {
	s := storetest.Open(t)
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		for i := range 3 {
			if err := Append(t.Context(), tx, Entry{Time: start, Actor: "a", Action: "b", Object: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := Verify(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	latest, err := Latest(t.Context(), s)
	if d := cmp.Diff(h, latest); d != "" || err != nil || h.Seq != 3 {
		t.Errorf("end of chain %+v, latest %+v, %v, want the same with Seq 3", h, latest, err)
	}
}

func TestIncompleteEntryIsRefused(t *testing.T) {
	s := storetest.Open(t)
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		return Append(t.Context(), tx, Entry{Actor: "a", Action: "b", Object: "c"})
	})
	if err == nil {
		t.Error("an entry without time was accepted")
	}
}
