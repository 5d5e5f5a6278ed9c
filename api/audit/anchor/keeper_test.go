package anchor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/receipt/translog"
	"portcullis/api/receiptlog"
	"portcullis/api/refusal"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
)

// slate is a Sink in memory.
type slate struct {
	name string
	mu   sync.Mutex
	got  []chain.Anchor
	err  error
}

func (*slate) Kind() string   { return "file" }
func (s *slate) Name() string { return s.name }

func (s *slate) Write(_ context.Context, a *chain.Anchor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.got = append(s.got, *a)
	return nil
}

func (s *slate) Read(context.Context) ([]chain.Anchor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return chain.Sorted(slices.Clone(s.got)), s.err
}

func (s *slate) fail(err error) { s.mu.Lock(); defer s.mu.Unlock(); s.err = err }

func (s *slate) last() chain.Anchor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) == 0 {
		return chain.Anchor{}
	}
	return s.got[len(s.got)-1]
}

func newStore() *store.Store { return store.New(memory.New(time.Now), "") }

// happen appends n entries to the log.
func happen(t *testing.T, s *store.Store, actor string, n int) chain.Head {
	t.Helper()
	for range n {
		_, err := s.Update(t.Context(), func(tx *store.Tx) error {
			return audit.Append(t.Context(), tx, audit.Entry{Time: time.Now(), Actor: actor, Action: "host.assign", Object: "host/h"})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	head, err := audit.Latest(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

func newKeeper(s *store.Store, sinks ...Sink) *Keeper {
	return New(Options{
		Store: s, Sinks: sinks, Every: time.Minute, Tell: 15 * time.Minute, Service: "sm-1", Alone: true, Log: slog.New(slog.DiscardHandler),
	})
}

// copied returns a store with the records of another, as a copy of its files has them.
func copied(t *testing.T, s *store.Store) *store.Store {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	items, err := snap.Items(t.Context(), "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	to := newStore()
	if len(items) > 0 {
		if err := to.Load(t.Context(), items); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func current(t *testing.T, s *store.Store) *review.Mark {
	t.Helper()
	m, err := review.Current(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func judge(t *testing.T, s *store.Store, sinks ...Sink) *review.Mark {
	t.Helper()
	if err := newKeeper(s, sinks...).Judge(t.Context()); err != nil {
		t.Fatal(err)
	}
	return current(t, s)
}

func told(t *testing.T, s *store.Store, kind string) []v1.Event {
	t.Helper()
	list, err := events.Book{Store: s}.List(t.Context(), v1.EventQuery{Type: kind})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// anchored has a sink take the head of the log.
func anchored(t *testing.T, s *store.Store, to *slate) {
	t.Helper()
	newKeeper(s, to).Flush(t.Context())
	head, err := audit.Latest(t.Context(), s)
	if err != nil || to.last().Seq != head.Seq || to.last().Hash != head.Hash || to.last().Branch != head.Branch {
		t.Fatalf("anchored %+v, %v; want %+v", to.last(), err, head)
	}
}

func TestHeadIsAnchoredWhenItMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a, b := newStore(), &slate{name: "a"}, &slate{name: "b"}
		k := newKeeper(s, a, b)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { k.Run(ctx); close(done) }()
		synctest.Wait()
		if len(a.got) != 0 {
			t.Errorf("an empty log was anchored: %+v", a.got)
		}
		head := happen(t, s, "ann", 3)
		time.Sleep(time.Minute) // of the test's own clock
		synctest.Wait()
		origin, err := audit.Origin(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []*slate{a, b} {
			got := x.last()
			if got.Seq != head.Seq || got.Hash != head.Hash || got.Origin != origin || got.Service != "sm-1" || !got.Time.Equal(time.Now()) {
				t.Errorf("%s has %+v, want %+v", x.name, got, head)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(a.got) != 1 {
			t.Errorf("%d anchors, though the head did not move", len(a.got))
		}
		cancel()
		<-done
		head = happen(t, s, "ann", 1)
		k.Flush(t.Context())
		if a.last().Seq != head.Seq || b.last().Seq != head.Seq {
			t.Errorf("at the end %d and %d are anchored, want %d", a.last().Seq, b.last().Seq, head.Seq)
		}
	})
}

// A sink that fails delays no other, is tried again after ever longer pauses, and is reported once.
func TestFailingSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, good, bad := newStore(), &slate{name: "good"}, &slate{name: "bad", err: errors.New("disk full")}
		k := newKeeper(s, good, bad)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { k.Run(ctx); close(done) }()
		happen(t, s, "ann", 3)
		time.Sleep(14 * time.Minute)
		synctest.Wait()
		if good.last().Seq != 3 || len(told(t, s, events.AnchorsFailing)) != 0 {
			t.Errorf("good has %d, events %+v", good.last().Seq, told(t, s, events.AnchorsFailing))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		got := told(t, s, events.AnchorsFailing)
		if len(got) != 1 || got[0].Count != 1 || !strings.Contains(got[0].Seen, "disk full") || !strings.Contains(got[0].Expected, "bad") {
			t.Fatalf("events %+v", got)
		}
		st := k.States()[1]
		if st.Failed < 5 || st.Failed > 40 || st.Written != 0 || st.Err == nil || time.Since(st.Since) < time.Hour {
			t.Errorf("state %+v", st)
		}
		bad.fail(nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		head, err := audit.Latest(t.Context(), s)
		if err != nil || bad.last().Seq != head.Seq || len(told(t, s, events.AnchorsWritten)) != 1 {
			t.Errorf("bad has %d of %d, events %+v, %v", bad.last().Seq, head.Seq, told(t, s, events.AnchorsWritten), err)
		}
		if st := k.States()[1]; !st.Since.IsZero() || st.Err != nil {
			t.Errorf("state %+v", st)
		}
		cancel()
		<-done
	})
}

func TestAnchorsAreSigned(t *testing.T) {
	s, a := newStore(), &slate{name: "a"}
	happen(t, s, "ann", 2)
	k := newKeeper(s, a)
	k.SignWith(func(_ context.Context, content []byte) (string, error) {
		return fmt.Sprintf("over %d bytes", len(content)), nil
	})
	k.Flush(t.Context())
	content, err := a.last().Content()
	if want := fmt.Sprintf("over %d bytes", len(content)); err != nil || a.last().JWS != want {
		t.Errorf("signature %q, %v; want %q", a.last().JWS, err, want)
	}
	happen(t, s, "ann", 1)
	k.SignWith(func(context.Context, []byte) (string, error) { return "", errors.New("no key") })
	k.Flush(t.Context())
	if a.last().Seq != 3 || a.last().JWS != "" {
		t.Errorf("without a key %+v is anchored, want entry 3 without a signature", a.last())
	}
}

// TestJudge puts copies of a state in place of it and of others.
func TestJudge(t *testing.T) {
	s, a := newStore(), &slate{name: "file:/a"}
	happen(t, s, "ann", 3)
	old := copied(t, s)
	anchored(t, s, a)
	happen(t, s, "ann", 2)
	anchored(t, s, a)
	other := newStore()
	happen(t, other, "mallory", 7)
	longer := copied(t, old)
	happen(t, longer, "mallory", 9)
	for _, tt := range []struct {
		name, cause string
		state       *store.Store
	}{
		{"as it was", "", copied(t, s)},
		{"an older copy", causeShorter, old},
		{"an older copy that went on", causeDiffers, longer},
		{"another installation", causeDiffers, other},
		{"nothing", causeShorter, newStore()},
	} {
		head, err := audit.Latest(t.Context(), tt.state)
		if err != nil {
			t.Fatal(err)
		}
		m := judge(t, tt.state, a)
		got := told(t, tt.state, events.StateRolledBack)
		if tt.cause == "" {
			if m != nil || len(got) != 0 {
				t.Errorf("%s: in review %+v, events %+v", tt.name, m, got)
			}
			continue
		}
		if m == nil || m.RolledBack == nil || m.Clearing || m.RolledBack.Cause != tt.cause || m.RolledBack.Source != a.name || m.RolledBack.Head != head || m.RolledBack.Anchor.Seq != 5 {
			t.Errorf("%s: mark %+v, want cause %s and anchor 5", tt.name, m, tt.cause)
		}
		if len(got) != 1 || got[0].Cause != tt.cause || !strings.Contains(got[0].Seen, "entry 5 ") {
			t.Errorf("%s: events %+v", tt.name, got)
		}
		if _, err := audit.Verify(t.Context(), tt.state); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		// The next start finds the same, and says nothing more; nothing is anchored meanwhile.
		if judge(t, tt.state, a); len(told(t, tt.state, events.StateRolledBack)) != 1 || told(t, tt.state, events.StateRolledBack)[0].Count != 1 {
			t.Errorf("%s: told again", tt.name)
		}
		happen(t, tt.state, "ann", 1)
		if newKeeper(tt.state, a).Flush(t.Context()); a.last().Seq != 5 {
			t.Errorf("%s: anchored %+v during the review", tt.name, a.last())
		}
	}
	// Without anchors nothing is noticed: they are what does it.
	if m := judge(t, copied(t, s)); m != nil {
		t.Errorf("without anchors: %+v", m)
	}
}

// end ends a review as package admission does.
// late is a slate that takes its time to be read.
type late struct {
	slate
	after time.Duration
}

func (l *late) Read(ctx context.Context) ([]chain.Anchor, error) {
	select {
	case <-time.After(l.after):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return l.slate.Read(ctx)
}

// Where sinks have the same anchor, the first that is configured is named, in whatever order they answer. One that does not
// answer in time is left out.
func TestJudgeNamesTheFirstSink(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{time.Second: "first", time.Hour: "second"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			happen(t, s, "a", 3)
			old := copied(t, s)
			happen(t, s, "a", 2)
			first, second := &late{slate: slate{name: "first"}, after: after}, &slate{name: "second"}
			anchored(t, s, &first.slate)
			anchored(t, s, second)
			begun := time.Now()
			m := judge(t, old, first, second)
			if m == nil || m.RolledBack == nil || m.RolledBack.Source != want {
				t.Errorf("with a first sink that answers after %v: %+v; want the anchor of the %s one", after, m, want)
			}
			if took := time.Since(begun); took != min(after, readTimeout) {
				t.Errorf("with a first sink that answers after %v: judged after %v", after, took)
			}
		})
	}
}

func end(t *testing.T, s *store.Store) {
	t.Helper()
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		review.Marks().Delete(tx, review.Key)
		return audit.Append(t.Context(), tx, audit.Entry{Time: time.Now(), Actor: "ann", Action: chain.BranchAction, Object: "state"})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// After an operator has approved a state that was rolled back, the log is compared with anchors of after that decision
// alone, and a copy of before the decision is noticed.
func TestJudgeAfterADecision(t *testing.T) {
	s, a := newStore(), &slate{name: "file:/a"}
	happen(t, s, "ann", 3)
	old := copied(t, s)
	happen(t, s, "ann", 30)
	anchored(t, s, a)
	if judge(t, old, a) == nil {
		t.Fatal("not noticed")
	}
	during := copied(t, old)
	end(t, old)
	if m := judge(t, old, a); m != nil {
		t.Fatalf("in review after the decision: %+v", m)
	}
	happen(t, old, "ann", 1)
	later := copied(t, old)
	anchored(t, old, a)
	if m := judge(t, old, a); m != nil {
		t.Fatalf("in review with anchors of its own: %+v", m)
	}
	happen(t, old, "ann", 1)
	anchored(t, old, a)
	if m := judge(t, later, a); m == nil || m.RolledBack.Cause != causeShorter || m.RolledBack.Anchor.Branch != 1 {
		t.Errorf("a copy of after the decision: %+v", m)
	}
	// A decision from the review of the copy is made again.
	if _, err := during.Update(t.Context(), func(tx *store.Tx) error {
		return review.Decisions().Put(tx, "h1", review.Decision{Approved: true})
	}); err != nil {
		t.Fatal(err)
	}
	if m := judge(t, during, a); m == nil || m.RolledBack.Cause != causeBranch {
		t.Errorf("a copy of before the decision: %+v", m)
	}
	if list, _, err := review.Decisions().List(t.Context(), during, ""); err != nil || len(list) != 0 {
		t.Errorf("decisions %+v, %v stand", list, err)
	}
}

// A rolled back state says nothing of what the fabric was seen to be. Where others use the store, their records stand. A
// start that was interrupted while it removed them is continued.
func TestJudgeRemovesWhatWasSeen(t *testing.T) {
	for _, alone := range []bool{true, false} {
		s, a := newStore(), &slate{name: "a"}
		happen(t, s, "ann", 1)
		const n = 2*clearBatch + 1
		for i := range n {
			_, err := s.Update(t.Context(), func(tx *store.Tx) error {
				return errors.Join(
					records.Memberships().Put(tx, fmt.Sprint(i), records.Membership{State: records.Applied, Revision: 1 << 40}),
					records.Grants().Put(tx, fmt.Sprint(i), records.Grant{Host: "h1"}),
				)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		receipts := receiptlog.New(s, nil)
		if _, err := s.Update(t.Context(), func(tx *store.Tx) error {
			_, err := receipts.Append(t.Context(), tx, translog.Digest{1}, time.Unix(1e9, 0))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		old := copied(t, s)
		happen(t, s, "ann", 1)
		anchored(t, s, a)
		k := newKeeper(old, a)
		k.o.Alone = alone
		before, err := events.SeriesOf(t.Context(), old)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Judge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after, err := events.SeriesOf(t.Context(), old); err != nil || after.ID == before.ID {
			t.Errorf("events are numbered in series %s after a roll-back, %v; want another one", after.ID, err)
		}
		wantSeen(t, old, alone, n)
		if _, err := receiptlog.New(old, nil).Tile(t.Context(), 0, 0); !refusal.IsKind(err, refusal.NotFound) {
			t.Errorf("the log of receipts after a roll-back, alone %v: %v; want none", alone, err)
		}
		if !alone {
			continue
		}
		// Cut off before it had removed all.
		_, err = old.Update(t.Context(), func(tx *store.Tx) error {
			m := *current(t, old)
			m.Clearing = true
			return errors.Join(review.Marks().Put(tx, review.Key, m), records.Memberships().Put(tx, "0", records.Membership{State: records.Applied}))
		})
		if err != nil {
			t.Fatal(err)
		}
		judge(t, old, a)
		wantSeen(t, old, true, n)
	}
}

func wantSeen(t *testing.T, s *store.Store, removed bool, n int) {
	t.Helper()
	seen, _, err := records.Memberships().List(t.Context(), s, "")
	if err != nil || removed != (len(seen) == 0) || !removed && len(seen) != n {
		t.Errorf("%d memberships, %v; want them removed: %v", len(seen), err, removed)
	}
	if grants, _, err := records.Grants().List(t.Context(), s, ""); err != nil || len(grants) != n {
		t.Errorf("%d grants, %v; want %d", len(grants), err, n)
	}
	if m := current(t, s); m == nil || m.Clearing {
		t.Errorf("mark %+v, want one that clears nothing", m)
	}
}

// A store that is put back while the service runs is noticed before another head is anchored.
func TestRolledBackWhileItRuns(t *testing.T) {
	backend := memory.New(time.Now)
	s, a := store.New(backend, ""), &slate{name: "a"}
	happen(t, s, "ann", 3)
	k := newKeeper(s, a)
	k.Flush(t.Context())
	old := copied(t, s)
	happen(t, s, "ann", 4)
	k.Flush(t.Context())
	k.o.Store = old
	k.Flush(t.Context())
	if m := current(t, old); m == nil || m.RolledBack.Cause != causeShorter || m.RolledBack.Anchor.Seq != 7 || !k.Held() || a.last().Seq != 7 {
		t.Errorf("mark %+v, held %v, anchored %+v", m, k.Held(), a.last())
	}
}
