package keeper

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/audit"
	"portcullis/api/clock"
	"portcullis/api/events"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
)

// instance is a Keeper whose clock can be set. In a bubble elapsed time is that of the bubble.
type instance struct {
	*Keeper
	off atomic.Int64
}

func (i *instance) set(off time.Duration) { i.off.Store(int64(off)) }

func startInstance(t *testing.T, s *store.Store, name string, off time.Duration) *instance {
	t.Helper()
	i := &instance{}
	i.set(off)
	i.Keeper = New(Options{
		Store: s, Log: storetest.Quiet(), Instance: name, Wall: func() time.Time { return time.Now().Add(time.Duration(i.off.Load())).Round(0) },
	})
	if err := i.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *instance) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); i.Run(ctx) }()
	synctest.Wait()
	return func() { cancel(); <-done }
}

func causes(t *testing.T, s *store.Store) []string {
	t.Helper()
	list, err := events.Book{Store: s}.List(t.Context(), v1.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Type+" "+e.Cause)
	}
	slices.Sort(out)
	return out
}

func wantCauses(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	if got := causes(t, s); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func recorded(t *testing.T, s *store.Store) (clock.Mark, int64) {
	t.Helper()
	rec, err := Marks().Get(t.Context(), s, markKey)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Value, rec.Modified
}

// TestWritesAreFew: three instances together record the time about once a minute.
func TestWritesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(memory.New(time.Now), "")
		for _, name := range []string{"a", "b", "c"} {
			defer startInstance(t, s.Twin(), name, 0).run(t)()
		}
		_, before := recorded(t, s)
		time.Sleep(time.Hour)
		m, after := recorded(t, s)
		if n := after - before; n < 50 || n > 62 {
			t.Errorf("recorded %d times in an hour", n)
		}
		if age := time.Since(m.Highest); age > clock.Every+2*tick {
			t.Errorf("what is recorded is %v old", age)
		}
	})
}

// TestInstanceAhead: an instance whose clock is far ahead stops itself alone.
func TestInstanceAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(memory.New(time.Now), "")
		a := startInstance(t, s.Twin(), "a", 0)
		defer a.run(t)()
		b := startInstance(t, s.Twin(), "b", 30*24*time.Hour)
		defer b.run(t)()
		if b.Halted() == nil {
			t.Error("b is believed")
		}
		time.Sleep(time.Hour)
		if err := a.Halted(); err != nil {
			t.Errorf("a is stopped: %v", err)
		}
		if err := b.Halted(); err == nil || b.Jumps(true) != 1 {
			t.Errorf("b: %v, %d jumps", err, b.Jumps(true))
		}
		if off := time.Until(b.Now()).Abs(); off > clock.Tolerance {
			t.Errorf("the time of b is %v off", off)
		}
		wantCauses(t, s, "clock.jump ahead")
		b.set(0)
		time.Sleep(time.Minute)
		if err := b.Halted(); err != nil {
			t.Errorf("b was corrected: %v", err)
		}
		wantCauses(t, s, "clock.jump ahead", "clock.steady caught-up")
	})
}

// TestSetBackWhileRunning: the clock goes back in a process that runs, and is corrected.
func TestSetBackWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(memory.New(time.Now), "")
		a := startInstance(t, s, "", 0)
		stop := a.run(t)
		time.Sleep(10 * time.Minute)
		last := a.Now()
		a.set(-3 * time.Hour)
		if now := a.Now(); now.Before(last) || a.Halted() == nil {
			t.Errorf("%v after %v, halted: %v", now, last, a.Halted())
		}
		time.Sleep(time.Minute)
		wantCauses(t, s, "clock.jump back")
		if _, err := s.Update(t.Context(), func(tx *store.Tx) error { return a.Raise(t.Context(), tx) }); err != nil {
			t.Error(err)
		}
		if m, _ := recorded(t, s); m.Highest.After(last) {
			t.Errorf("recorded %v by a clock that is behind", m.Highest)
		}
		a.set(0)
		time.Sleep(time.Minute)
		if err := a.Halted(); err != nil {
			t.Error(err)
		}
		wantCauses(t, s, "clock.jump back", "clock.steady caught-up")
		stop()
	})
}

// TestGrantIsRecorded: grants of a transaction are recorded with its time, and at the end of a service all are.
func TestGrantIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(memory.New(time.Now), "")
		a := startInstance(t, s, "", 0)
		for range 3 {
			time.Sleep(time.Second)
			if _, err := s.Update(t.Context(), func(tx *store.Tx) error { return a.Raise(t.Context(), tx) }); err != nil {
				t.Fatal(err)
			}
			if m, _ := recorded(t, s); !m.Highest.Equal(time.Now()) {
				t.Errorf("recorded %v, want now", m.Highest)
			}
		}
		time.Sleep(time.Second)
		a.Flush(t.Context())
		if m, _ := recorded(t, s); !m.Highest.Equal(time.Now()) {
			t.Errorf("recorded %v at the end, want now", m.Highest)
		}
	})
}

// TestSet: the time is set by an operator, with a reason, and is in the audit log; all instances follow.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(memory.New(time.Now), "")
		wrong := startInstance(t, s.Twin(), "a", 2*time.Hour)
		wrong.run(t)() // records its time, and ends
		b, c := startInstance(t, s.Twin(), "b", 0), startInstance(t, s.Twin(), "c", 0)
		defer b.run(t)()
		defer c.run(t)()
		if b.Halted() == nil || c.Halted() == nil {
			t.Fatal("the time that was recorded stops nothing")
		}
		for _, in := range []v1.ClockSet{{Time: time.Now(), Reason: " "}, {Time: time.Now().Add(2 * time.Hour), Reason: "x"}, {Reason: "x"}} {
			if _, err := b.SetClock(t.Context(), "olga", in); !refusal.IsKind(err, refusal.Invalid) && !refusal.IsKind(err, refusal.Conflict) {
				t.Errorf("%+v: %v", in, err)
			}
		}
		if _, err := b.SetClock(t.Context(), "olga", v1.ClockSet{Time: time.Now(), Reason: "INC-9"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := errors.Join(b.Halted(), c.Halted()); err != nil {
			t.Error(err)
		}
		head, err := audit.Latest(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for n := uint64(1); n <= head.Seq; n++ {
			e, err := audit.Get(t.Context(), s, n)
			if err != nil {
				t.Fatal(err)
			}
			found = found || e.Action == "clock.set" && e.Actor == "olga"
		}
		if !found {
			t.Error("no entry of the audit log has who set the time")
		}
	})
}

// TestStoreAway: while the store is away time goes on, and jumps are reported later.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := &storetest.Failing{Backend: memory.New(time.Now)}
		s := store.New(failing, "")
		a := startInstance(t, s, "", 0)
		defer a.run(t)()
		time.Sleep(time.Minute)
		failing.FailAt(1, storetest.Before)
		a.set(-time.Hour)
		time.Sleep(time.Minute)
		if a.Halted() == nil {
			t.Error("the clock is believed")
		}
		failing.Heal()
		time.Sleep(time.Minute)
		wantCauses(t, s, "clock.jump back")
	})
}
