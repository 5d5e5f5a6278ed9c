package locks

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/events"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// told returns the events of a type.
func (s *site) told(kind string) []v1.Event {
	s.t.Helper()
	all, err := events.Book{Store: s.store}.List(s.t.Context(), v1.EventQuery{Type: kind})
	if err != nil {
		s.t.Fatal(err)
	}
	return all.Items
}

func causes(list []v1.Event) (out []string) {
	for _, e := range list {
		out = append(out, e.By+" "+e.Cause)
	}
	slices.Sort(out)
	return out
}

// look has refused evidence show an adapter's lock.
func (s *site) look(l attest.Lock) {
	s.t.Helper()
	st := &attest.Statement{Host: "h1", HCAs: []attest.HCA{{NodeGUID: cardA, Lock: l}}}
	s.update(func(tx *store.Tx) error { return s.Look(s.t.Context(), tx, st) })
}

func firewallItem(value string) attest.Item {
	return attest.Item{Index: 290, Supported: attest.Yes, Current: value, Next: value}
}

func locked(epoch uint64) attest.Lock {
	return attest.Lock{Method: attest.LockWrites, MLOCK: attest.MLOCKLocked, Epoch: epoch, Items: []attest.Item{firewallItem("80000000")}}
}

// proven is a site whose card A was locked under epoch 1, and shown so.
func proven(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.mustOrder(cardA)
	st := &attest.Statement{Host: "h1", HCAs: []attest.HCA{{NodeGUID: cardA, Lock: locked(1)}}}
	s.update(func(tx *store.Tx) error { return s.Prove(t.Context(), tx, st) })
	return s
}

// T93: each difference of a lock from its last proof is reported, with the expected and the seen state.
func TestLockThatChangedIsTold(t *testing.T) {
	for _, tt := range []struct {
		name           string
		lock           attest.Lock
		cause          string
		expected, seen string
	}{
		{"opened", attest.Lock{MLOCK: attest.MLOCKUnlocked}, "unlocked", "epoch 1", "unlocked"},
		{"under another key", locked(7), "epoch", "epoch 1", "epoch 7"},
		{"by another method", func() attest.Lock { l := locked(1); l.Method = attest.LockSignedFile; return l }(), "method", "writes", "signed-file"},
		{"firewall off", func() attest.Lock { l := locked(1); l.Items = []attest.Item{firewallItem("00000000")}; return l }(), "value", "80000000", "00000000"},
		{"firewall off after a reset", func() attest.Lock { l := locked(1); l.Items[0].Next = "00000000"; return l }(), "value", "80000000", "80000000 then 00000000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := proven(t)
			s.look(tt.lock)
			s.look(tt.lock)
			got := s.told(events.LockChanged)
			if len(got) != 1 || got[0].Cause != tt.cause || got[0].By != events.ByEvidence || got[0].Count != 2 || got[0].Adapter != cardA ||
				!strings.Contains(got[0].Expected, tt.expected) || !strings.Contains(got[0].Seen, tt.seen) || got[0].Do == "" {
				t.Fatalf("told: %+v", got)
			}
			if l, err := s.Show(t.Context(), cardA); err != nil || l.Epoch != 1 || l.Proven != 1 {
				t.Errorf("what was told changed the lock: %+v, %v", l, err)
			}
		})
	}
}

func TestFileThatWasExchangedIsTold(t *testing.T) {
	s := newSite(t, signing(t))
	s.mustOrder(cardA)
	rec, err := recordOf(t.Context(), s.store, cardA)
	if err != nil {
		t.Fatal(err)
	}
	l := locked(1)
	l.Method, l.File = attest.LockSignedFile, &attest.LockFile{SHA256: rec.File}
	st := &attest.Statement{Host: "h1", HCAs: []attest.HCA{{NodeGUID: cardA, Lock: l}}}
	s.update(func(tx *store.Tx) error { return s.Prove(t.Context(), tx, st) })
	s.look(l)
	if got := s.told(events.LockChanged); len(got) != 0 {
		t.Fatalf("told of the right file: %+v", got)
	}
	l.File = &attest.LockFile{SHA256: strings.Repeat("0", 64)}
	s.look(l)
	if got := causes(s.told(events.LockChanged)); !slices.Equal(got, []string{"evidence file"}) {
		t.Errorf("told: %v", got)
	}
}

// A change that an order of ours explains is no alarm. An agent that was interrupted leaves an open adapter, a locked one
// reports nothing of itself, and one that was released is open.
func TestWhatWasOrderedIsNoAlarm(t *testing.T) {
	s := proven(t)
	s.look(attest.Lock{MLOCK: attest.MLOCKLocked}) // after a reboot: locked, and nothing else known
	s.look(locked(1))
	s.mustOrder(cardA) // epoch 2, and the agent ends
	s.look(attest.Lock{MLOCK: attest.MLOCKUnlocked, Items: []attest.Item{firewallItem("00000000")}})
	s.look(locked(2))
	s.prove(cardA, 2, attest.MLOCKLocked)
	if _, err := s.Release(t.Context(), "alice", cardA, v1.LockRelease{Reason: "RMA"}); err != nil {
		t.Fatal(err)
	}
	s.mustOrder(cardA)
	s.look(attest.Lock{MLOCK: attest.MLOCKUnlocked})
	if got := s.told(events.LockChanged); len(got) != 0 {
		t.Errorf("told: %+v", got)
	}
	if got := s.told(events.LockEpochSkipped); len(got) != 0 {
		t.Errorf("an epoch that was proven was skipped: %+v", got)
	}
	if got := s.told(events.LockRelocked); len(got) != 1 || !strings.Contains(got[0].Seen, "epoch 2") {
		t.Errorf("relocked: %+v", got)
	}
}

// An epoch that was issued and never proven is reported when the next one is issued.
func TestSkippedEpochIsTold(t *testing.T) {
	s := newSite(t)
	for range maxHeld + 2 {
		s.mustOrder(cardA)
	}
	if got := causes(s.told(events.LockEpochSkipped)); !slices.Equal(got, []string{"service repeated", "service skipped"}) {
		t.Errorf("told: %v", got)
	}
}

func outcomeOf(guid ib.GUID, code string) v1.LockReport {
	return v1.LockReport{Adapters: []v1.LockOutcome{{NodeGUID: guid, Code: code, Detail: "adapter mlx5_0: did not open\nfake line"}}}
}

// A host's word about a lock that does not open is reported as such, once for a ticket, for adapters it had orders for;
// lock, epoch and host stay as they were.
func TestReportGrantsNothing(t *testing.T) {
	s := proven(t)
	orders := s.mustOrder(cardA)
	before, err := recordOf(t.Context(), s.store, cardA)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]v1.LockReport{
		"of an adapter without order": outcomeOf(cardB, "foreign"),
		"of one twice":                {Adapters: slices.Concat(outcomeOf(cardA, "foreign").Adapters, outcomeOf(cardA, "foreign").Adapters)},
		"with a code of its own":      outcomeOf(cardA, "proven"),
		"with values that are none":   {Adapters: []v1.LockOutcome{{NodeGUID: cardA, Code: v1.LockDone, Found: []v1.LockFound{{Index: 290, Current: "zz"}}}}},
	} {
		if err := s.Report(t.Context(), orders.Report, bad); err == nil {
			t.Errorf("a report %s was taken", name)
		}
	}
	if err := s.Report(t.Context(), "made up", outcomeOf(cardA, "foreign")); !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("without orders: %v", err)
	}
	if err := s.Report(t.Context(), orders.Report, outcomeOf(cardA, "foreign")); err != nil {
		t.Fatal(err)
	}
	if err := s.Report(t.Context(), orders.Report, outcomeOf(cardA, "foreign")); !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("a second time: %v", err)
	}
	got := s.told(events.LockUnlockFailed)
	if len(got) != 1 || got[0].By != events.ByHost || got[0].Cause != "foreign" || got[0].Count != 1 || !strings.Contains(got[0].Expected, "epoch 1") || strings.Contains(got[0].Seen, "\n") {
		t.Errorf("told: %+v", got)
	}
	after, err := recordOf(t.Context(), s.store, cardA)
	if err != nil || !cmp.Equal(after, before) {
		t.Errorf("the lock is %+v, was %+v: %v", after, before, err)
	}
	late := s.mustOrder(cardA).Report
	s.now = s.now.Add(reportLife)
	if err := s.Report(t.Context(), late, outcomeOf(cardA, "foreign")); !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("too late: %v", err)
	}
}

// Every outcome that an agent may report is accepted. If one were refused, operators would not learn why an adapter is not
// locked.
func TestEachOutcomeIsTold(t *testing.T) {
	s := proven(t)
	for code, kind := range kinds {
		if err := s.Report(t.Context(), s.mustOrder(cardA).Report, outcomeOf(cardA, code)); err != nil {
			t.Errorf("%s: %v", code, err)
		}
		if !slices.Contains(causes(s.told(kind)), "host "+code) {
			t.Errorf("%s: %s is not told", code, kind)
		}
	}
}

// Settings that the host found under a proven lock are compared with the proven ones. Where an order was interrupted in
// between, our own agent may have written them.
func TestSettingsFoundUnderALock(t *testing.T) {
	found := v1.LockReport{Adapters: []v1.LockOutcome{{NodeGUID: cardA, Code: v1.LockDone, Found: []v1.LockFound{{Index: 290, Current: "00000000", Next: "00000000"}}}}}
	s := proven(t)
	first, second := s.mustOrder(cardA), s.mustOrder(cardA)
	if err := s.Report(t.Context(), second.Report, found); err != nil {
		t.Fatal(err)
	}
	if got := s.told(events.LockChanged); len(got) != 0 {
		t.Errorf("told of what our own agent may have written: %+v", got)
	}
	if err := s.Report(t.Context(), first.Report, found); err != nil {
		t.Fatal(err)
	}
	if got := causes(s.told(events.LockChanged)); !slices.Equal(got, []string{"host value"}) {
		t.Errorf("told: %v", got)
	}
}
