package proving_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/events"
	"portcullis/api/isolation/remedy"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// asked collects what the service has done about drift. No brake keeps a host.
type asked struct {
	mu      sync.Mutex
	correct []ib.Place
	fenced  []string
}

func (a *asked) Correct(_ context.Context, places []ib.Place) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.correct = append(a.correct, places...)
	return nil
}

// all returns what was asked for so far.
func (a *asked) all() (correct []ib.Place, fenced []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.correct), slices.Clone(a.fenced)
}

func (a *asked) MayFence(context.Context, *store.Tx, string, string, []string) (bool, error) {
	return true, nil
}

func (a *asked) NotFenced(context.Context, *store.Tx, string) error { return nil }

func (a *asked) Fence(_ context.Context, host, _ string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fenced = append(a.fenced, host)
	return nil
}

// What a reading finds is corrected, and an event says so when the next reading does not have it any more. If it stays, the host is
// fenced, by a policy that wants that.
func TestDriftIsActedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a asked
		s := newSeenSite(t, proving.Pace{Every: 5 * time.Minute, Rate: 1000}, func(s *seenSite) {
			s.Remedy = remedy.New(remedy.Options{
				Store: s.store, Log: slog.New(slog.DiscardHandler), Now: time.Now, Policy: remedy.Policy{v1.DriftStray: remedy.Fence},
				Settled: func() bool { return s.settled() }, Correct: a.Correct, Fencer: &a,
			})
		})
		defer s.stop()
		s.after(10 * time.Minute)
		stray := s.stage.GrantOf("h1", 1, 0x8202)
		at := stray.Place
		s.manage(func() { s.stage.Grant(stray) })
		s.after(10*time.Minute + 10*time.Second)
		if correct, _ := a.all(); !slices.Equal(correct, []ib.Place{at}) {
			t.Errorf("to be corrected: %v, want %v", correct, at)
		}
		list, err := events.Book{Store: s.store}.List(t.Context(), v1.EventQuery{Type: events.DriftFound})
		if err != nil || len(list.Items) != 1 || list.Items[0].Host != "h1" || list.Items[0].Count != 2 ||
			!strings.Contains(list.Items[0].Seen, at.String()) || !strings.Contains(list.Items[0].Seen, "P_Key 0x8202, since 20") {
			t.Errorf("events %+v, %v", list, err)
		}
		s.manage(func() { s.stage.Withdraw(stray) })
		s.after(11 * time.Minute)
		if n := s.types(); n[events.DriftEnded] != 1 || n[events.DriftFenced] != 0 {
			t.Errorf("events: %v", n)
		}
		s.manage(func() { s.stage.Grant(stray) })
		s.after(12 * time.Minute)
		if _, fenced := a.all(); len(fenced) != 0 {
			t.Errorf("fenced at once: %v", fenced)
		}
		s.after(25 * time.Minute)
		correct, fenced := a.all()
		if n := s.types(); n[events.DriftFenced] != 1 || !slices.Equal(fenced, []string{"h1"}) || len(correct) < 3 {
			t.Errorf("fenced %v, to be corrected %v; events: %v", fenced, correct, n)
		}
	})
}

// Drift in a reading that is too old is not acted on.
func TestOldDrift(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a asked
		var wild atomic.Bool
		s := newSeenSite(t, proving.Pace{Every: 5 * time.Minute, Rate: 1000}, func(s *seenSite) {
			s.Remedy = remedy.New(remedy.Options{
				Store: s.store, Log: slog.New(slog.DiscardHandler), Now: time.Now, Policy: remedy.Policy{v1.DriftStray: remedy.Correct},
				Settled: func() bool { return !wild.Load() }, Correct: a.Correct, Fencer: &a,
			})
		})
		defer s.stop()
		s.after(10 * time.Minute)
		wild.Store(true)
		s.manage(func() { s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8202)) })
		s.after(11 * time.Minute)
		s.set(true, nil) // from now on, nothing is read
		s.after(40 * time.Minute)
		wild.Store(false)
		s.after(50 * time.Minute)
		if correct, _ := a.all(); len(correct) != 0 || s.types()[events.DriftFound] != 0 {
			t.Errorf("to be corrected %v; events: %v", correct, s.types())
		}
	})
}

// Drift in a reading that began while the Subnet Manager had something left to write is not acted on. That of the next one is.
func TestDriftWhileWriting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, change := range map[string]func(*sm.View){
			"not settled": func(v *sm.View) { v.Settled = false },
			"no intent":   func(v *sm.View) { v.Intent = false },
			"standby":     func(v *sm.View) { v.State = ib.SMStandby },
		} {
			var a asked
			s := newSeenSite(t, proving.Pace{Every: 5 * time.Minute, Rate: 1000}, func(s *seenSite) {
				s.Remedy = remedy.New(remedy.Options{
					Store: s.store, Log: slog.New(slog.DiscardHandler), Now: time.Now, Policy: remedy.Policy{v1.DriftStray: remedy.Correct},
					Settled: func() bool { return true }, Correct: a.Correct, Fencer: &a,
				})
				s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8202))
				s.stage.Run(5 * time.Second)
				v := *s.stage.View()
				change(&v)
				s.view = &v
			})
			s.after(4 * time.Minute)
			found, drift := s.rows()
			if len(found) == 0 || len(drift) == 0 {
				t.Errorf("%s: nothing was read", name)
			}
			if correct, _ := a.all(); len(correct) != 0 || s.types()[events.DriftFound] != 0 {
				t.Errorf("%s: to be corrected %v; events: %v", name, correct, s.types())
			}
			s.manage(func() {})
			s.after(12 * time.Minute)
			if correct, _ := a.all(); len(correct) == 0 || s.types()[events.DriftFound] != 1 {
				t.Errorf("%s, then settled: to be corrected %v; events: %v", name, correct, s.types())
			}
			s.stop()
		}
	})
}
