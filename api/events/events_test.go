package events

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/audit"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
)

var start = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

func changed(host string) v1.Event {
	return v1.Event{
		Type: LockChanged, By: ByEvidence, Cause: "unlocked", Host: host, Adapter: 0xb83fd20300123400,
		Expected: "locked under epoch 3", Seen: "open", Do: "find out who opened it",
	}
}

func newStore() *store.Store { return store.New(memory.New(time.Now), "") }

func tell(t *testing.T, s *store.Store, at time.Time, e v1.Event) error {
	t.Helper()
	_, err := s.Update(t.Context(), func(tx *store.Tx) error { return Record(t.Context(), tx, at, e) })
	return err
}

func list(t *testing.T, s *store.Store, q v1.EventQuery) *v1.Events {
	t.Helper()
	out, err := Book{s}.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func entries(t *testing.T, s *store.Store) []string {
	t.Helper()
	all, _, err := audit.Entries().List(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range all {
		out = append(out, e.Value.Action+" "+e.Value.Object)
	}
	return out
}

// A host that repeats itself fills neither list nor audit log; the count stays exact, and after a quiet day the event is
// reported again.
func TestRepeatingHostFillsNothing(t *testing.T) {
	s := newStore()
	for n := range 60 {
		if err := tell(t, s, start.Add(time.Duration(n)*time.Second), changed("h1")); err != nil {
			t.Fatal(err)
		}
	}
	all := list(t, s, v1.EventQuery{})
	if len(all.Items) != 1 || all.Items[0].Count != 60 || !all.Items[0].First.Equal(start) || all.Items[0].Severity != Critical {
		t.Fatalf("listed: %+v", all)
	}
	if got := len(entries(t, s)); got != 6 { // 1, 2, 5, 10, 20, 50
		t.Errorf("%d entries in the audit log, want 6", got)
	}
	if err := tell(t, s, start.Add(48*time.Hour), changed("h1")); err != nil {
		t.Fatal(err)
	}
	if got := len(entries(t, s)); got != 7 {
		t.Errorf("%d entries in the audit log after a quiet day, want 7", got)
	}
	if _, err := audit.Verify(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// A host's own report neither replaces what evidence showed nor counts it up. It does not keep the journal from recording
// what evidence shows either.
func TestHostSpeaksForEvidence(t *testing.T) {
	s := newStore()
	shown, said := changed("h1"), changed("h1")
	said.By, said.Seen, said.Do = ByHost, "all is well", "nothing"
	for _, e := range []v1.Event{said, said, shown, said, said} {
		if err := tell(t, s, start, e); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]v1.Event{}
	for _, e := range list(t, s, v1.EventQuery{}).Items {
		got[e.By] = e
	}
	if e := got[ByEvidence]; len(got) != 2 || e.Count != 1 || e.Seen != shown.Seen || e.Do != shown.Do || got[ByHost].Count != 4 {
		t.Errorf("listed: %+v", got)
	}
	if n := len(entries(t, s)); n != 3 { // the host's 1st and 2nd, and what evidence showed
		t.Errorf("%d entries in the audit log, want 3", n)
	}
}

// Events that this service found out itself are in the audit log each time.
func TestServiceIsToldEachTime(t *testing.T) {
	s := newStore()
	e := v1.Event{Type: LockUnlockGiven, By: ByService, Cause: "release", Host: "h1", Expected: "to leave", Seen: "keys given out"}
	for range 4 {
		if err := tell(t, s, start, e); err != nil {
			t.Fatal(err)
		}
	}
	if got := entries(t, s); len(got) != 4 || got[0] != "event.lock.unlock-given host/h1" {
		t.Errorf("audit log: %q", got)
	}
}

// Types and causes are known ones, so that rows and labels are bounded; texts are
// short and of one line, whatever a host said.
func TestTextsAreBounded(t *testing.T) {
	s := newStore()
	for _, bad := range []v1.Event{
		{Type: "lock.odd", By: ByHost, Cause: "unlocked", Host: "h1"},
		{Type: LockChanged, By: ByHost, Cause: "anything", Host: "h1"},
		{Type: LockChanged, By: ByHost, Cause: "unlocked"},
		{Type: LockChanged, By: "somebody", Cause: "unlocked", Host: "h1"},
		{Type: LockChanged, Cause: "unlocked", Host: "h1"},
	} {
		if err := tell(t, s, start, bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	e := changed("h1")
	e.Seen = "a\nb\x00c\u2028d\u009be" + strings.Repeat("é", maxText)
	if err := tell(t, s, start, e); err != nil {
		t.Fatal(err)
	}
	got := list(t, s, v1.EventQuery{}).Items
	if len(got) != 1 || !strings.HasPrefix(got[0].Seen, "a b c d e") || len(got[0].Seen) > maxText+3 {
		t.Errorf("%+v", got)
	}
}

func TestListChooses(t *testing.T) {
	s := newStore()
	for n := range 5 {
		if err := tell(t, s, start.Add(time.Duration(n)*time.Minute), changed(fmt.Sprintf("h%d", n))); err != nil {
			t.Fatal(err)
		}
	}
	if err := tell(t, s, start, v1.Event{Type: LockRelocked, Cause: "proven", By: ByEvidence, Host: "h1"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		q    v1.EventQuery
		want string
		left int
	}{
		{"all, the last first", v1.EventQuery{}, "h4 h3 h2 h1 h0 h1", 0},
		{"type", v1.EventQuery{Type: LockRelocked}, "h1", 0},
		{"type is no prefix", v1.EventQuery{Type: "lock"}, "", 0},
		{"host", v1.EventQuery{Host: "h1"}, "h1 h1", 0},
		{"severity", v1.EventQuery{Host: "h1", Severity: Warning}, "h1", 0},
		{"since", v1.EventQuery{Since: start.Add(3 * time.Minute)}, "h4 h3", 0},
		{"limit", v1.EventQuery{PageQuery: v1.PageQuery{Limit: 2}}, "h4 h3", 4},
	} {
		got := list(t, s, tt.q)
		var hosts []string
		for _, e := range got.Items {
			hosts = append(hosts, e.Host)
		}
		if strings.Join(hosts, " ") != tt.want || got.LeftOff != tt.left {
			t.Errorf("%s: %v and %d left off, want %s and %d", tt.name, hosts, got.LeftOff, tt.want, tt.left)
		}
	}
}

// A reported event goes to the journal once it is committed. One that only counts up does not, and is counted for metrics.
// Old rows are removed.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(memory.New(time.Now), "")
		old := changed("h0")
		if err := tell(t, s, time.Now().Add(-kept-time.Hour), old); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		counted := 0
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Follow(ctx, s, slog.New(slog.NewTextHandler(&text, nil)), func(*v1.Event) { counted++ })
		}()
		synctest.Wait()
		for range 4 {
			if err := tell(t, s, time.Now(), changed("h1")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		cancel()
		<-done
		if got := list(t, s, v1.EventQuery{}).Items; len(got) != 1 || got[0].Host != "h1" {
			t.Errorf("old rows stand: %+v", got)
		}
		if counted != 4 || strings.Count(text.String(), "event=lock.changed") != 2 {
			t.Errorf("counted %d, journal:\n%s", counted, text.String())
		}
	})
}
