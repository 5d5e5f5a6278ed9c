package proving_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/events"
	"portcullis/api/isolation/outsiders"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// seenSite is a kept site whose Subnet Manager runs, and shows what it sees.
type seenSite struct {
	*keptSite
	t    *testing.T
	mu   sync.Mutex
	view *sm.View
}

func newSeenSite(t *testing.T, pace proving.Pace, change func(*seenSite)) *seenSite {
	t.Helper()
	s := &seenSite{t: t}
	site := runningSite(t)
	s.view = site.stage.View()
	keepOf(t, site, pace, func(k *keptSite) {
		s.keptSite = k
		s.View = func() (*sm.View, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.view, nil }
		if change != nil {
			change(s)
		}
	})
	return s
}

// manage has the Subnet Manager do something, and settle.
func (s *seenSite) manage(do func()) {
	s.t.Helper()
	do()
	s.stage.Run(5 * time.Second)
	if err := s.stage.Settle(time.Minute); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = s.stage.View()
}

func (s *seenSite) found() *v1.Isolation {
	s.t.Helper()
	found, _ := s.Last()
	if found == nil {
		s.t.Fatal("nothing was found")
	}
	return found
}

func (s *seenSite) types() map[string]int {
	s.t.Helper()
	list, err := events.Book{Store: s.store}.List(s.t.Context(), v1.EventQuery{})
	if err != nil {
		s.t.Fatal(err)
	}
	n := map[string]int{}
	for i := range list.Items {
		n[list.Items[i].Type]++
	}
	return n
}

// A P_Key that the Subnet Manager wrote is in the proof seconds later, at the cost of a few requests.
func TestFollowsWhatWasTouched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: time.Hour, Rate: 1000}, nil)
		defer s.stop()
		s.after(10 * time.Minute)
		whole := s.found()
		if whole.Verdict != v1.Isolated || whole.Bounds.Again != nil || len(s.reads()) != 1 {
			t.Fatalf("verdict %v, bounds %+v, read at %v", whole.Verdict, whole.Bounds, s.reads())
		}
		stray := s.stage.GrantOf("h1", 1, 0x8202)
		s.manage(func() { s.stage.Grant(stray) })
		s.after(10*time.Minute + 5*time.Second)
		now := s.found()
		b := &now.Bounds
		if now.Verdict != v1.Leaks || !b.Begun.Equal(whole.Bounds.Begun) || b.Again == nil || b.Again.Sub(s.began) < 10*time.Minute || b.Requests > 40 || whole.Bounds.Requests < 200 {
			t.Errorf("verdict %v, bounds %+v; the reading of everything took %d requests", now.Verdict, b, whole.Bounds.Requests)
		}
		if n := s.types(); n[events.IsolationLost] != 1 {
			t.Errorf("events: %v", n)
		}
		_, err := s.store.Update(t.Context(), func(tx *store.Tx) error {
			return outsiders.Check(t.Context(), tx, outsiders.Asked{Key: 0x8202, Subject: "host h6"})
		})
		if code(err) != v1.CodeOpensPath || !strings.Contains(err.Error(), b.Again.UTC().Format(time.RFC3339)) {
			t.Errorf("another member is refused with %v, want %s by what was read at %v", err, v1.CodeOpensPath, b.Again)
		}
		s.manage(func() { s.stage.Withdraw(stray) })
		s.after(10*time.Minute + 10*time.Second)
		if now := s.found(); now.Verdict != v1.Isolated || len(s.reads()) != 3 {
			t.Errorf("after it was taken away: verdict %v, read at %v", now.Verdict, s.reads())
		}
		if n := s.types(); n[events.IsolationRegained] != 1 {
			t.Errorf("events: %v", n)
		}
		s.after(50 * time.Minute)
		if len(s.reads()) != 3 {
			t.Errorf("nothing was touched, and the fabric was read at %v", s.reads())
		}
		s.after(2 * time.Hour)
		if now := s.found(); !now.Bounds.Begun.After(b.Begun) || now.Verdict != v1.Isolated || len(s.reads()) < 4 {
			t.Errorf("an hour later: verdict %v, bounds %+v, read at %v", now.Verdict, now.Bounds, s.reads())
		}
	})
}

// A change of what is declared is in the proof, also if no table was touched for it.
func TestFollowsWhatIsDeclared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: time.Hour, Rate: 1000}, nil)
		defer s.stop()
		s.after(10 * time.Minute)
		_, err := s.store.Update(t.Context(), func(tx *store.Tx) error {
			g := s.stage.GrantOf("h3", 1, 0x8101)
			return s.grant(tx, &g, "h3", "crimson")
		})
		if err != nil {
			t.Fatal(err)
		}
		s.manage(func() {
			in := s.stage.Intent()
			in.Revision++
			s.stage.Want(in)
		})
		s.after(10*time.Minute + 5*time.Second)
		if now := s.found(); now.Verdict != v1.Leaks || now.Bounds.Again == nil || now.Bounds.Requests > 30 {
			t.Errorf("two tenants share a P_Key: verdict %v, bounds %+v", now.Verdict, now.Bounds)
		}
	})
}

// A reading of everything that ends while what was touched is read is the one that later readings build on.
func TestEverythingReadMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var whole *v1.Isolation
		s := newSeenSite(t, proving.Pace{Every: time.Hour, Rate: 1000}, func(s *seenSite) {
			open, opened := s.Open, 0
			s.Open = func(ctx context.Context) (transport.Port, error) {
				if opened++; opened == 2 {
					var err error
					if whole, err = s.Prove(ctx, "olga", v1.IsolationQuery{}); err != nil {
						return nil, err
					}
				}
				return open(ctx)
			}
		})
		defer s.stop()
		s.after(10 * time.Minute)
		for i := range 2 {
			s.manage(func() { s.stage.Grant(s.stage.GrantOf("h1", 1, ib.PKey(0x8301+i))) })
			s.after(10*time.Minute + time.Duration(i+1)*10*time.Second)
		}
		if b := &s.found().Bounds; whole == nil || b.Again == nil || !b.Begun.Equal(whole.Bounds.Begun) || !b.Again.After(whole.Bounds.Ended) {
			t.Errorf("everything was read: %+v; the newest: %+v", whole, b)
		}
	})
}

// While the Subnet Manager works, what it touched is not read: tables are half written.
func TestFollowsWhenSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: time.Hour, Rate: 1000}, nil)
		defer s.stop()
		s.after(10 * time.Minute)
		s.set(true, nil)
		s.manage(func() { s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8202)) })
		s.after(11 * time.Minute)
		if len(s.reads()) != 1 {
			t.Errorf("the fabric was read at %v", s.reads())
		}
		s.set(false, nil)
		s.after(11*time.Minute + 5*time.Second)
		if now := s.found(); len(s.reads()) != 2 || now.Verdict != v1.Leaks {
			t.Errorf("the fabric was read at %v: %v", s.reads(), now.Verdict)
		}
	})
}

// A value that was not read because the Subnet Manager works again is no finding.
func TestFollowsNothingHalfDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: time.Hour, Rate: 1000}, func(s *seenSite) {
			open, opened := s.Open, 0
			s.Open = func(ctx context.Context) (transport.Port, error) {
				if opened++; opened == 2 {
					s.set(true, nil)
					if err := s.stage.Fabric.SetFault("h1", sim.Fault{Silent: true}); err != nil {
						return nil, err
					}
				}
				return open(ctx)
			}
		})
		defer s.stop()
		s.after(10 * time.Minute)
		s.manage(func() { s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8303)) })
		s.after(11 * time.Minute)
		if now := s.found(); now.Verdict != v1.Isolated || now.Bounds.Again != nil || len(s.reads()) != 2 {
			t.Errorf("verdict %v, bounds %+v, read at %v", now.Verdict, now.Bounds, s.reads())
		}
	})
}

// Readings that a Subnet Manager at work makes void are not tried less and less often: when it is done, the next one is soon.
func TestFollowsSoonAfterWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: time.Hour, Rate: 1000}, func(s *seenSite) {
			open, opened := s.Open, 0
			s.Open = func(ctx context.Context) (transport.Port, error) {
				opened++
				if works := opened > 1 && opened < 9; works || opened == 9 {
					s.set(works, nil)
					if err := s.stage.Fabric.SetFault("h1", sim.Fault{Silent: works}); err != nil {
						return nil, err
					}
					time.AfterFunc(time.Second, func() { s.set(false, nil) })
				}
				return open(ctx)
			}
		})
		defer s.stop()
		s.after(10 * time.Minute)
		s.manage(func() { s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8303)) })
		s.after(30 * time.Minute)
		reads := s.reads()
		if now := s.found(); len(reads) != 9 || now.Verdict != v1.Isolated || now.Bounds.Again == nil {
			t.Fatalf("%v, bounds %+v, read at %v", now.Verdict, now.Bounds, reads)
		}
		for i := 3; i < len(reads); i++ {
			if gap, before := reads[i]-reads[i-1], reads[i-1]-reads[i-2]; gap > before+time.Second {
				t.Errorf("a reading came %v after one that was void, the one before %v: %v", gap, before, reads)
			}
		}
	})
}

// An instance that leads again does not build on what it read before another one led.
func TestFollowsFromAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: time.Hour, Rate: 1000}, nil)
		s.after(10 * time.Minute)
		before := s.found().Bounds.Begun
		s.stop()
		s.manage(func() { s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8202)) })
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); s.keeper.Keep(ctx) }()
		s.after(10*time.Minute + 50*time.Second)
		if len(s.reads()) != 1 {
			t.Errorf("it reads at %v on top of what it read before", s.reads())
		}
		s.after(80 * time.Minute)
		if b := &s.found().Bounds; !b.Begun.After(before) || b.Again != nil {
			t.Errorf("bounds %+v", b)
		}
		cancel()
		<-over
	})
}

// A reading that fails is tried again, less and less often, and takes nothing from what is known.
func TestFollowsAfterFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: time.Hour, Rate: 1000}, nil)
		defer s.stop()
		s.after(10 * time.Minute)
		s.set(false, errors.New("the cable is out"))
		s.manage(func() { s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8202)) })
		s.after(20 * time.Minute)
		if n := len(s.reads()); n < 10 || n > 20 {
			t.Errorf("in ten minutes %d readings were tried, at %v", n, s.reads())
		}
		if now := s.found(); now.Verdict != v1.Isolated {
			t.Errorf("verdict %v", now.Verdict)
		}
		s.set(false, nil)
		s.after(22 * time.Minute)
		if now := s.found(); now.Verdict != v1.Leaks {
			t.Errorf("verdict %v, read at %v", now.Verdict, s.reads())
		}
	})
}

// Changes without end take a part of the time, and of the wire, and not all of it.
func TestFollowsAtAPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: time.Hour, Rate: 8}, nil)
		defer s.stop()
		s.after(10 * time.Minute)
		for i := range 300 {
			s.manage(func() {
				s.stage.Withdraw(s.stage.GrantOf("h1", 1, ib.PKey(0x8300+(i+39)%40)))
				s.stage.Grant(s.stage.GrantOf("h1", 1, ib.PKey(0x8300+i%40)))
			})
			s.after(10*time.Minute + time.Duration(i+1)*time.Second)
		}
		busy := s.found().Bounds.Ended.Sub(*s.found().Bounds.Again)
		if n := len(s.reads()) - 1; n < 10 || n > 45 || busy < time.Second {
			t.Errorf("in five minutes of changes %d readings began, of which one took %v", n, busy)
		}
	})
}

// A host that is given to a tenant while everything is read does not cost that reading: what was touched is read again, and it counts.
func TestChangeWhileEverythingIsRead(t *testing.T) {
	t.Parallel()
	for name, sees := range map[string]bool{"seen": true, "not seen": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := runningSite(t)
			view := s.stage.View()
			if sees {
				s.View = func() (*sm.View, error) { return view, nil }
			}
			open, opened := s.Open, 0
			s.Open = func(ctx context.Context) (transport.Port, error) {
				if opened++; opened == 1 {
					g := s.stage.GrantOf("h5", 1, 0x8303)
					if _, err := s.store.Update(ctx, func(tx *store.Tx) error { return s.grant(tx, &g, "h5", "green") }); err != nil {
						return nil, err
					}
					port, err := open(ctx)
					s.stage.Grant(g)
					s.stage.Run(5 * time.Second)
					view = s.stage.View()
					return port, err
				}
				return open(ctx)
			}
			got, err := s.Prove(t.Context(), "olga", v1.IsolationQuery{})
			if !sees {
				if code(err) != "changed_meanwhile" || opened != 1 {
					t.Errorf("%v after %d readings", err, opened)
				}
				return
			}
			if err != nil || got.Verdict != v1.Isolated || opened != 2 || got.Bounds.Again == nil || len(got.Parties) != 3 || got.Parties[1].Name != "green" {
				t.Errorf("%+v, %v after %d readings", got, err, opened)
			}
		})
	}
}

// A table that is touched while everything is read is read again, whether it was read before or after.
func TestTouchedWhileEverythingIsRead(t *testing.T) {
	t.Parallel()
	s := runningSite(t)
	view := s.stage.View()
	s.View = func() (*sm.View, error) { return view, nil }
	open, opened := s.Open, 0
	s.Open = func(ctx context.Context) (transport.Port, error) {
		opened++
		port, err := open(ctx)
		if opened == 1 {
			s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8202))
			s.stage.Run(5 * time.Second)
			view = s.stage.View()
		}
		return port, err
	}
	got, err := s.Prove(t.Context(), "olga", v1.IsolationQuery{})
	if err != nil || got.Verdict != v1.Leaks || opened != 2 || got.Bounds.Again == nil || got.Bounds.Requests > 40 {
		t.Errorf("%+v, %v after %d readings", got, err, opened)
	}
}

// Changes without end end in a refusal, not in a reading without end.
func TestChangesWithoutEnd(t *testing.T) {
	t.Parallel()
	s := runningSite(t)
	s.View = func() (*sm.View, error) { return s.stage.View(), nil }
	open, opened := s.Open, 0
	s.Open = func(ctx context.Context) (transport.Port, error) {
		opened++
		g := s.stage.GrantOf("h5", 1, ib.PKey(0x8300+opened))
		if _, err := s.store.Update(ctx, func(tx *store.Tx) error { return s.grant(tx, &g, "h5", "green") }); err != nil {
			return nil, err
		}
		return open(ctx)
	}
	if _, err := s.Prove(t.Context(), "olga", v1.IsolationQuery{}); code(err) != "changed_meanwhile" || opened != 4 {
		t.Errorf("%v after %d readings", err, opened)
	}
}
