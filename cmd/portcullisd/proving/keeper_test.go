package proving_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/events"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport"
)

// keptSite is a site whose tenants a keeper examines.
type keptSite struct {
	*site
	keeper  *proving.Keeper
	began   time.Time
	settled func() bool
	end     context.CancelFunc
	over    chan struct{}

	mu     sync.Mutex
	opened []time.Duration // when the port was opened
	broken error           // what opening it fails with
	wild   bool            // the Subnet Manager works
}

// keep begins to keep the proof of a site that was changed. It is to be called in a bubble of synctest.
func keep(t *testing.T, pace proving.Pace, change func(*keptSite)) *keptSite {
	t.Helper()
	return keepOf(t, newSite(t), pace, change)
}

// keepOf is keep, for a site that may have a Subnet Manager.
func keepOf(t *testing.T, s *site, pace proving.Pace, change func(*keptSite)) *keptSite {
	t.Helper()
	k := &keptSite{site: s, began: time.Now(), over: make(chan struct{})}
	k.Pace = pace
	k.settled = func() bool { k.mu.Lock(); defer k.mu.Unlock(); return !k.wild }
	if change != nil {
		change(k)
	}
	open := k.Open
	k.Open = func(ctx context.Context) (transport.Port, error) {
		k.mu.Lock()
		k.opened = append(k.opened, time.Since(k.began))
		err := k.broken
		k.mu.Unlock()
		if err != nil {
			return nil, err
		}
		return open(ctx)
	}
	k.keeper = &proving.Keeper{Prover: k.Prover, Settled: k.settled}
	ctx, cancel := context.WithCancel(t.Context())
	k.end = cancel
	go func() { defer close(k.over); k.keeper.Keep(ctx) }()
	return k
}

// reads returns when the port was opened.
func (k *keptSite) reads() []time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.opened)
}

// set changes the site while the keeper runs.
func (k *keptSite) set(wild bool, broken error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wild, k.broken = wild, broken
}

// after waits until so much time has passed since the begin.
func (k *keptSite) after(d time.Duration) {
	<-time.After(d - time.Since(k.began))
	synctest.Wait()
}

// stop ends the keeper, and returns how long that took.
func (k *keptSite) stop() time.Duration {
	at := time.Now()
	k.end()
	<-k.over
	return time.Since(at)
}

func code(err error) string {
	if e, ok := errors.AsType[*refusal.Error](err); ok {
		return e.Code
	}
	return ""
}

// All tenants are examined a minute after the begin, once the fabric is settled, and then at the pace of the configuration.
func TestKeepsProofCurrent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 100}, nil)
		defer k.stop()
		if _, err := k.Kept(t.Context()); code(err) != v1.CodeNotExamined {
			t.Errorf("before the first examination: %v", err)
		}
		k.set(true, nil)
		k.after(10 * time.Minute)
		if len(k.reads()) > 0 {
			t.Errorf("the fabric was read at %v, before it was settled", k.reads())
		}
		k.set(false, nil)
		k.after(20 * time.Minute)
		now, err := k.Kept(t.Context())
		if err != nil || now.Found.Verdict != v1.Isolated || now.By != v1.ByItself || !now.Current || now.Every != 3600 || now.MaxAge != 3*3600 || now.Failure != "" {
			t.Fatalf("%+v, %v", now, err)
		}
		b := &now.Found.Bounds
		if took, least := b.Ended.Sub(b.Begun), time.Duration(b.Requests)*time.Second/100; took < least-time.Second || took > 2*least {
			t.Errorf("%d requests took %v", b.Requests, took)
		}
		if age := time.Since(b.Begun).Seconds(); now.Age != age {
			t.Errorf("the result is %v s old, want %v", now.Age, age)
		}
		k.after(4*time.Hour + 20*time.Minute)
		if n := len(k.reads()); n != 5 {
			t.Errorf("the fabric was read at %v", k.reads())
		}
		for i := 1; i < len(k.reads()); i++ {
			if d := k.reads()[i] - k.reads()[i-1]; d < time.Hour || d > time.Hour+time.Minute {
				t.Errorf("from one examination to the next: %v", d)
			}
		}
		k.stop()
		k.after(10 * time.Hour)
		if now, err := k.Kept(t.Context()); err != nil || now.Current || now.Found.Verdict != v1.Isolated {
			t.Errorf("hours later: %+v, %v", now, err)
		}
	})
}

// Without a pace, nothing is examined but at request. What was found then is kept for a day.
func TestKeepsWhatWasAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{}, nil)
		defer k.stop()
		k.after(2 * time.Hour)
		if len(k.reads()) > 0 {
			t.Errorf("the fabric was read at %v", k.reads())
		}
		if _, err := k.Prove(t.Context(), "olga", v1.IsolationQuery{Membership: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Kept(t.Context()); code(err) != v1.CodeNotExamined {
			t.Errorf("a result under another assumption is kept: %v", err)
		}
		if _, err := k.Prove(t.Context(), "olga", v1.IsolationQuery{}); err != nil {
			t.Fatal(err)
		}
		now, err := k.Kept(t.Context())
		if err != nil || now.By != v1.ByRequest || !now.Current || now.MaxAge != 24*3600 || now.Every != 0 {
			t.Errorf("%+v, %v", now, err)
		}
	})
}

// An operator does not wait for an examination by the service itself. What was found for the operator counts for the pace.
func TestYieldsToOperators(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 10}, nil)
		defer k.stop()
		k.after(time.Minute + 2*time.Second)
		if len(k.reads()) != 1 {
			t.Fatalf("the fabric was read at %v", k.reads())
		}
		got, err := k.Prove(t.Context(), "olga", v1.IsolationQuery{})
		if err != nil || got.Verdict != v1.Isolated {
			t.Fatalf("%+v, %v", got, err)
		}
		if waited := time.Since(k.began) - time.Minute - 2*time.Second; waited > 3*time.Second {
			t.Errorf("the operator waited for %v", waited)
		}
		if now, err := k.Kept(t.Context()); err != nil || now.By != v1.ByRequest || now.Failure != "" {
			t.Errorf("%+v, %v", now, err)
		}
		k.after(time.Hour)
		if len(k.reads()) != 2 {
			t.Errorf("the fabric was read at %v", k.reads())
		}
		k.after(time.Hour + 5*time.Minute)
		if now, err := k.Kept(t.Context()); err != nil || now.By != v1.ByItself || len(k.reads()) != 3 {
			t.Errorf("%+v, %v; read at %v", now, err, k.reads())
		}
	})
}

// A request that may share a reading waits for the one of the service, and gets it.
func TestSharesWithTenants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 100}, nil)
		defer k.stop()
		k.after(time.Minute + time.Second)
		out, err := k.Examine(t.Context(), v1.IsolationQuery{Tenant: "red"}, true)
		if err != nil || out.Detail.Report.Verdict != v1.Isolated || len(k.reads()) != 1 {
			t.Errorf("%+v, %v; read at %v", out, err, k.reads())
		}
		k.after(2 * time.Minute)
		if now, err := k.Kept(t.Context()); err != nil || now.By != v1.ByItself {
			t.Errorf("%+v, %v", now, err)
		}
	})
}

// A tenant does not wait for the pace of the service: the rest is read as fast as for a request.
func TestTenantsDoNotWaitForPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 1}, nil)
		defer k.stop()
		k.after(time.Minute + time.Second)
		at := time.Now()
		out, err := k.Examine(t.Context(), v1.IsolationQuery{Tenant: "red"}, true)
		if err != nil || out.Detail.Report.Verdict != v1.Isolated || len(k.reads()) != 1 {
			t.Errorf("%+v, %v; read at %v", out, err, k.reads())
		}
		if took := time.Since(at); took > 10*time.Second {
			t.Errorf("the tenant waited for %v", took)
		}
		synctest.Wait() // the service notes what it found
		if now, err := k.Kept(t.Context()); err != nil || now.By != v1.ByItself {
			t.Errorf("%+v, %v", now, err)
		}
	})
}

// The end of leadership ends an examination at once, and there is no result of it.
func TestEndsWithLeadership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 10}, nil)
		k.after(time.Minute + 2*time.Second)
		if took := k.stop(); took > time.Second || len(k.reads()) != 1 {
			t.Errorf("the end took %v; read at %v", took, k.reads())
		}
		if now, err := k.Kept(t.Context()); code(err) != v1.CodeNotExamined || strings.Contains(err.Error(), "attempt") {
			t.Errorf("%+v, %v", now, err)
		}
		if got, err := k.Prove(t.Context(), "", v1.IsolationQuery{}); err != nil || got.Verdict != v1.Isolated {
			t.Errorf("a request afterwards: %+v, %v", got, err)
		}
	})
}

// Without a result the service tries again, with pauses that grow up to the pace.
func TestTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: 10 * time.Minute, Rate: 10_000}, nil)
		defer k.stop()
		k.set(false, errors.New("the adapter is gone"))
		k.after(38 * time.Minute)
		want := []time.Duration{1, 2, 4, 8, 16, 26, 36}
		for i := range want {
			want[i] *= time.Minute
		}
		if !slices.Equal(k.reads(), want) {
			t.Errorf("tried at %v, want %v", k.reads(), want)
		}
		if _, err := k.Kept(t.Context()); code(err) != v1.CodeNotExamined || !strings.Contains(err.Error(), "the adapter is gone") {
			t.Errorf("%v", err)
		}
		k.set(false, nil)
		k.after(47 * time.Minute)
		if now, err := k.Kept(t.Context()); err != nil || now.Failure != "" || !now.Current {
			t.Errorf("%+v, %v", now, err)
		}
		k.set(false, errors.New("the adapter is gone again"))
		k.after(57 * time.Minute)
		now, err := k.Kept(t.Context())
		if err != nil || !strings.Contains(now.Failure, "gone again") || now.FailedAt == nil || !now.Current {
			t.Errorf("%+v, %v", now, err)
		}
	})
}

// That something was not read while the Subnet Manager changed the fabric is no result.
func TestDropsWhatChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		changes := true
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 100}, func(k *keptSite) {
			k.Root = nil // no device is read
			k.settled = func() bool {
				k.mu.Lock()
				defer k.mu.Unlock()
				return !changes || len(k.opened) == 0
			}
		})
		defer k.stop()
		k.after(10 * time.Minute)
		if _, err := k.Kept(t.Context()); code(err) != v1.CodeNotExamined || !strings.Contains(err.Error(), "while it was read") {
			t.Errorf("%v", err)
		}
		k.mu.Lock()
		changes = false
		k.mu.Unlock()
		k.after(20 * time.Minute)
		if now, err := k.Kept(t.Context()); err != nil || now.Found.Verdict != v1.IsolationUnknown {
			t.Errorf("%+v, %v", now, err)
		}
	})
}

// mute is a port whose requests reach no device.
type mute struct{ transport.Port }

func (mute) Send(p []transport.Packet) (int, error) { return len(p), nil }

// An examination that takes too long ends without a result.
func TestBoundsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: 10 * time.Minute, Rate: 10}, func(k *keptSite) {
			k.Timeout = time.Hour
			open := k.Open
			k.Open = func(ctx context.Context) (transport.Port, error) {
				port, err := open(ctx)
				return mute{port}, err
			}
		})
		defer k.stop()
		k.after(11*time.Minute + 30*time.Second)
		if _, err := k.Kept(t.Context()); code(err) != v1.CodeNotExamined || !strings.Contains(err.Error(), "raise verify.rate") {
			t.Errorf("%v", err)
		}
	})
}

// A change of what is found is an event, by whatever examination it is found. How isolation stands is known while this instance leads.
func TestTellsOfChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 100}, nil)
		defer k.stop()
		k.after(30 * time.Minute)
		told := func(want ...string) {
			t.Helper()
			all, err := events.Book{Store: k.store}.List(t.Context(), v1.EventQuery{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range all.Items {
				got = append(got, all.Items[i].Type+" "+all.Items[i].Cause)
			}
			if slices.Reverse(got); !slices.Equal(got, want) {
				t.Errorf("events %q, want %q", got, want)
			}
		}
		told()
		if s, ok := k.Standing(); !ok || s.Verdict != v1.Isolated || s.MaxAge != 3*time.Hour || s.Counts.Pairs.Isolated != 3 || !s.Proven.Equal(s.Examined) {
			t.Errorf("isolation stands as %+v, %v", s, ok)
		}
		silent := func(is bool) {
			t.Helper()
			if err := k.stage.Fabric.SetFault("h1", sim.Fault{Silent: is}); err != nil {
				t.Fatal(err)
			}
		}
		silent(true)
		if _, err := k.Prove(t.Context(), "olga", v1.IsolationQuery{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		told("isolation.lost leak")
		silent(false)
		k.after(3 * time.Hour)
		told("isolation.lost leak", "isolation.regained proven")
		k.set(false, errors.New("the adapter is gone"))
		k.after(7 * time.Hour)
		told("isolation.lost leak", "isolation.regained proven", "isolation.unproven old")
		if all, err := (events.Book{Store: k.store}).List(t.Context(), v1.EventQuery{}); err != nil || !strings.Contains(all.Items[0].Seen, "the adapter is gone") {
			t.Errorf("%+v, %v", all, err)
		}
		k.stop()
		if s, ok := k.Standing(); ok {
			t.Errorf("without leading, isolation stands as %+v", s)
		}
	})
}
