package verifier

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/events"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// A break that an operator accepted stays in the log and listed, with both ends, and the log counts as whole, also after a
// restart. The next break is found again.
func TestAccepted(t *testing.T) {
	for _, tt := range tampers() {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := newStore()
				happen(t, s, 600)
				v := newVerifier(s, "sm-1", false)
				defer run(t, v)()
				time.Sleep(time.Minute)
				tt.do(t, s)
				time.Sleep(time.Hour)
				known, err := v.Breaks(t.Context())
				if err != nil || len(known.Open) != 1 || len(known.Accepted) != 0 || known.Open[0].Cause != tt.cause {
					t.Fatalf("found: %+v, %v, want one break", known, err)
				}
				was := known.Open[0]
				now, err := v.AcceptBreak(t.Context(), "ann", v1.AuditAccept{Seq: was.Seq, Hash: was.To.Hash, Reason: "disk 3 was restored"})
				if err != nil || len(now.Open) != 0 || len(now.Accepted) != 1 || v.State().Broken != nil {
					t.Fatalf("accepted: %+v, %v", now, err)
				}
				time.Sleep(time.Minute)
				if st := v.State(); st.Whole != 2 || st.Broken != nil || len(st.Taken) != 1 {
					t.Errorf("verified at once: %+v", st)
				}
				if list := told(t, s, events.AuditWhole); len(list) != 1 {
					t.Errorf("events %+v, want one", list)
				}
				listed(t, s, &was)
				again := newVerifier(s, "sm-2", false)
				defer run(t, again)()
				time.Sleep(time.Minute)
				if st := again.State(); st.Broken != nil || len(st.Taken) != 1 {
					t.Errorf("after a restart: %+v", st)
				}
				if _, err := audit.Verify(t.Context(), s); err != nil {
					t.Errorf("verified: %v", err)
				}
				edit(t, s, func(tx *store.Tx) error { audit.Entries().Delete(tx, entryKey(100)); return nil })
				time.Sleep(time.Hour)
				if st := v.State(); st.Broken == nil || st.Broken.Cause != chain.Cut || len(st.Taken) != 1 {
					t.Errorf("another break: %+v", st)
				}
			})
		})
	}
}

// listed looks for the entry that accepts a break.
func listed(t *testing.T, s *store.Store, was *v1.AuditBreak) {
	t.Helper()
	page, err := (audit.Book{Store: s}).List(t.Context(), v1.AuditQuery{Action: chain.AcceptAction, Newest: true})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v, want one entry", page, err)
	}
	e := &page.Items[0]
	if e.Actor != "ann" || e.Code != was.Cause || e.Before != was.From.Hash || e.After != was.To.Hash || !strings.Contains(e.Detail, "disk 3 was restored") ||
		!strings.Contains(e.Detail, was.From.Hash) || !strings.Contains(e.Detail, was.To.Hash) {
		t.Errorf("entry %+v of %+v", e, was)
	}
}

// Only what was found is accepted, with a reason, and each break by itself.
func TestAcceptsWhatWasFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStore()
		happen(t, s, 600)
		v := newVerifier(s, "sm-1", false)
		defer run(t, v)()
		time.Sleep(time.Minute)
		var mine v1.AuditAccept
		edit(t, s, func(tx *store.Tx) error {
			audit.Entries().Delete(tx, entryKey(3))
			audit.Entries().Delete(tx, entryKey(300))
			return nil
		})
		time.Sleep(time.Hour)
		known, err := v.Breaks(t.Context())
		if err != nil || len(known.Open) != 2 || known.Open[1].Seq != 300 {
			t.Fatalf("%+v, %v, want two", known, err)
		}
		mine = v1.AuditAccept{Seq: 300, Hash: known.Open[1].To.Hash, Reason: "x"}
		for name, in := range map[string]v1.AuditAccept{
			"no reason":     {Seq: mine.Seq, Hash: mine.Hash, Reason: " "},
			"another entry": {Seq: 4, Hash: mine.Hash, Reason: "x"},
			"another hash":  {Seq: 300, Hash: known.Open[0].To.Hash, Reason: "x"},
		} {
			if _, err := v.AcceptBreak(t.Context(), "ann", in); err == nil {
				t.Errorf("%s is accepted", name)
			} else if e, is := errors.AsType[*refusal.Error](err); !is || e.Hint == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := v.AcceptBreak(t.Context(), "ann", mine); err != nil {
			t.Fatal(err)
		}
		if _, err := v.AcceptBreak(t.Context(), "ann", mine); err == nil {
			t.Error("a break is accepted twice")
		}
		time.Sleep(time.Minute)
		st := v.State()
		if st.Broken == nil || st.Broken.Seq != 3 || len(st.Taken) != 1 {
			t.Errorf("with one of two accepted: %+v", st)
		}
		if slices.ContainsFunc(st.Open, func(b chain.Break) bool { return b.Seq == 300 }) {
			t.Error("the one that was accepted is open")
		}
	})
}
