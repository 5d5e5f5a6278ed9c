package remedy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// site is what a Keeper acts on.
type site struct {
	*Keeper
	store     *store.Store
	fails     *storetest.Failing
	now       time.Time
	settled   bool
	corrected []ib.Place
	mute      error // of Correct

	kept    map[string]bool // by the brake
	refused error           // of Fence
	fenced  []string
	freed   []string
}

func newSite(policy Policy) *site {
	s := &site{now: noon, settled: true, kept: map[string]bool{}, fails: &storetest.Failing{Backend: memory.New(time.Now)}}
	s.store = store.New(s.fails, "")
	s.Keeper = New(Options{
		Store: s.store, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return s.now }, Policy: policy, Settled: func() bool { return s.settled },
		Correct: func(_ context.Context, places []ib.Place) error {
			s.corrected = append(s.corrected, places...)
			return s.mute
		},
		Fencer: s,
	})
	return s
}

func (s *site) MayFence(_ context.Context, _ *store.Tx, host, cause string, _ []string) (bool, error) {
	if !strings.Contains(cause, "P_Key 0x8001, since 20") {
		return false, fmt.Errorf("cause %q", cause)
	}
	return !s.kept[host], nil
}

func (s *site) NotFenced(_ context.Context, _ *store.Tx, host string) error {
	s.freed = append(s.freed, host)
	return nil
}

func (s *site) Fence(_ context.Context, host, _ string) error {
	if s.refused == nil {
		s.fenced = append(s.fenced, host)
	}
	return s.refused
}

// look has the Keeper look, some time after noon, at what was read then.
func (s *site) look(t *testing.T, at time.Duration, list ...v1.Drift) error {
	t.Helper()
	s.now = noon.Add(at)
	return s.Look(t.Context(), sorted(list...), &v1.IsolationBounds{Begun: s.now})
}

// want compares the events, as type and cause with their counts.
func (s *site) want(t *testing.T, want map[string]uint64) {
	t.Helper()
	list, err := events.Book{Store: s.store}.List(t.Context(), v1.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, e := range list.Items {
		got[strings.TrimSpace(e.Type+" "+e.Cause+" "+e.Host)] = e.Count
		if e.Seen == "" || e.Expected == "" {
			t.Errorf("event %+v", e)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}

// Events say when drift begins and ends, and the Subnet Manager is asked to correct it. Without news nothing is written.
func TestReportsAndCorrects(t *testing.T) {
	t.Parallel()
	s := newSite(Default())
	d, elsewhere := drift(v1.DriftStray, 1, 0), drift(v1.DriftStray, 2, 0)
	elsewhere.Host = ""
	for range 3 {
		if err := s.look(t, 0, d, elsewhere); err != nil {
			t.Fatal(err)
		}
	}
	s.want(t, map[string]uint64{"drift.found stray h1": 1, "drift.elsewhere stray": 1})
	if want := []ib.Place{d.Place, elsewhere.Place}; !slices.Equal(s.corrected, want) {
		t.Errorf("corrected %v, want %v", s.corrected, want)
	}
	snap, err := s.store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.look(t, time.Minute, d, elsewhere); err != nil {
		t.Fatal(err)
	}
	if now, err := s.store.Snapshot(t.Context()); err != nil || now.Revision != snap.Revision {
		t.Errorf("something was written without news: %v", err)
	}
	if err := s.look(t, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	s.want(t, map[string]uint64{"drift.found stray h1": 1, "drift.elsewhere stray": 1, "drift.ended stray h1": 1})
	if len(s.fenced)+len(s.freed) != 0 {
		t.Errorf("fenced %v, freed %v", s.fenced, s.freed)
	}
}

// What the Subnet Manager has not written yet is no drift.
func TestWaitsUntilSettled(t *testing.T) {
	t.Parallel()
	s := newSite(all(Fence))
	s.settled = false
	if err := s.look(t, 0, drift(v1.DriftStray, 1, 0)); err != nil {
		t.Fatal(err)
	}
	s.want(t, map[string]uint64{})
	if len(s.corrected) != 0 {
		t.Errorf("corrected %v", s.corrected)
	}
}

// A host is fenced once. A brake keeps it as long as it wants, and a fence that fails is tried again.
func TestFences(t *testing.T) {
	t.Parallel()
	s := newSite(all(Fence))
	a, b := drift(v1.DriftStray, 1, 0), drift(v1.DriftStray, 2, 0)
	s.kept["h2"], s.refused = true, errors.New("the Subnet Manager is busy")
	s.mute = errors.New("not attached") // drift that is not corrected is fenced all the same
	for _, at := range []time.Duration{0, grace, grace + time.Minute} {
		if err := s.look(t, at, a, b); err != nil {
			t.Fatal(err)
		}
	}
	s.want(t, map[string]uint64{"drift.found stray h1": 1, "drift.found stray h2": 1})
	s.refused = nil
	for range 3 {
		if err := s.look(t, grace+2*time.Minute, a, b); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(s.fenced, []string{"h1"}) {
		t.Errorf("fenced %v", s.fenced)
	}
	s.want(t, map[string]uint64{"drift.found stray h1": 1, "drift.found stray h2": 1, "drift.fenced stray h1": 1})
	s.kept["h2"] = false
	if err := s.look(t, grace+3*time.Minute, a, b); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.fenced, []string{"h1", "h2"}) {
		t.Errorf("fenced %v", s.fenced)
	}
	if err := s.look(t, time.Hour); err != nil {
		t.Fatal(err)
	}
	if slices.Sort(s.freed); !slices.Equal(s.freed, []string{"h1", "h2"}) {
		t.Errorf("the brake knows of %v that they have no drift any more", s.freed)
	}
}

// A host of which one port has drift still is not said to have none.
func TestBrakeKeepsUntilTheLastPort(t *testing.T) {
	t.Parallel()
	s := newSite(all(Fence))
	a, b := drift(v1.DriftStray, 1, 0), drift(v1.DriftStray, 1, 0)
	b.Place.Port++
	s.kept["h1"] = true
	for _, at := range []time.Duration{0, grace} {
		if err := s.look(t, at, a, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.look(t, time.Hour, b); err != nil || len(s.freed) != 0 {
		t.Errorf("freed %v, %v", s.freed, err)
	}
	if err := s.look(t, 2*time.Hour); err != nil || !slices.Equal(s.freed, []string{"h1"}) {
		t.Errorf("freed %v, %v", s.freed, err)
	}
}

// Where the store takes nothing, nothing is done, and it is done later.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	s := newSite(Default())
	s.fails.FailAt(1, storetest.Before)
	if err := s.look(t, 0, drift(v1.DriftStray, 1, 0)); err == nil || len(s.corrected) != 0 {
		t.Fatalf("%v, corrected %v", err, s.corrected)
	}
	s.fails.Heal()
	if err := s.look(t, time.Minute, drift(v1.DriftStray, 1, 0)); err != nil || len(s.corrected) != 1 {
		t.Fatalf("%v, corrected %v", err, s.corrected)
	}
	s.want(t, map[string]uint64{"drift.found stray h1": 1})
}
