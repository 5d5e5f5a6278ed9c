package standing

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// fabric is a site whose tenants are examined.
type fabric struct {
	store *store.Store
	fails *storetest.Failing
	every time.Duration

	mu    sync.Mutex
	found *v1.Isolation
	why   string
	keeps *Keeper
	end   func()
}

func newFabric(every time.Duration) *fabric {
	f := &fabric{every: every, fails: &storetest.Failing{Backend: memory.New(time.Now)}}
	f.store = store.New(f.fails, "")
	return f
}

// lead has an instance lead that found nothing so far.
func (f *fabric) lead(t *testing.T) {
	t.Helper()
	f.resign()
	f.mu.Lock()
	f.found = nil
	f.mu.Unlock()
	k := New(Options{
		Store: f.store, Log: slog.New(slog.DiscardHandler), Now: time.Now, Every: f.every, MaxAge: 3 * time.Hour,
		Newest: func() *v1.Isolation { f.mu.Lock(); defer f.mu.Unlock(); return f.found },
		Why:    func() string { f.mu.Lock(); defer f.mu.Unlock(); return f.why },
	})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); k.Run(ctx) }()
	f.keeps, f.end = k, func() { cancel(); <-over }
	synctest.Wait()
}

// knows sets what the instance that leads found last, and why it has no newer result.
func (f *fabric) knows(found *v1.Isolation, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found, f.why = found, why
}

func (f *fabric) resign() {
	if f.end != nil {
		f.end()
		f.end = nil
	}
}

func report(verdict string) *v1.Isolation {
	r := &v1.Isolation{Verdict: verdict, Parties: []v1.IsolationParty{{Name: "blue", Tenant: true}, {Name: "red", Tenant: true}}}
	switch verdict {
	case v1.Isolated:
		r.Pairs.Isolated = 3
	case v1.Leaks:
		r.Pairs = v1.IsolationPairs{Isolated: 2, Leaks: 1}
		r.Examples = []v1.IsolationExample{{
			From: "blue", To: "red", Certain: true, PKey: 0x8101, Cure: "remove entry 5 of leaf1 port 3",
			Hops: []v1.IsolationHop{{Device: "h2 (mlx5_0)", Out: 1}, {Device: "leaf1", In: 4, Out: 3}, {Device: "h1 (mlx5_0)", In: 1}},
		}}
	case v1.IsolationUnknown:
		r.Pairs.Unknown, r.Reason = 3, "ports of tenants were not found where they are declared"
		r.Missing = []v1.MissingPort{{Host: "h4", Party: "blue", Place: ib.Place{Switch: 7, Port: 4}, Cause: "the switch port is down"}}
		r.Unread = []v1.UnreadValue{{What: "P_KeyTable", Where: "leaf1", Cause: "the device did not answer"}}
		r.Bounds.Missing, r.Bounds.Unread = 1, 2
	}
	return r
}

// none is a report where no host belongs to a tenant.
func none() *v1.Isolation {
	return &v1.Isolation{Verdict: v1.IsolationUnknown, Reason: "nothing to prove", Parties: []v1.IsolationParty{{Name: "(no tenant)"}}}
}

// find has the instance that leads find something now, and waits for a time.
func (f *fabric) find(r *v1.Isolation, then time.Duration) {
	r.Bounds.Begun = time.Now()
	f.mu.Lock()
	f.found = r
	f.mu.Unlock()
	f.keeps.News()
	f.rest(then)
}

func (f *fabric) rest(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// reported lists the events so far, in order, and how many there were: each type and cause, as often as it happened.
func (f *fabric) reported(t *testing.T) (last []v1.Event, n int) {
	t.Helper()
	all, err := events.Book{Store: f.store}.List(t.Context(), v1.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		n += int(all.Items[i].Count)
	}
	slices.Reverse(all.Items)
	return all.Items, n
}

// newest returns the newest event in short, and how many there were.
func (f *fabric) newest(t *testing.T) (string, int) {
	t.Helper()
	list, n := f.reported(t)
	if n == 0 {
		return "", 0
	}
	e := &list[len(list)-1]
	return e.Type + " " + e.Cause, n
}

func (f *fabric) want(t *testing.T, what, event string, n int) {
	t.Helper()
	if got, m := f.newest(t); got != event || m != n {
		t.Errorf("%s: the newest of %d events is %q, want %q of %d", what, m, got, event, n)
	}
}

// A change of the verdict is one event, and what stays is none, also for an instance that leads next.
func TestTellsEachChangeOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Hour)
		defer f.resign()
		f.lead(t)
		f.find(report(v1.Isolated), time.Hour)
		f.want(t, "isolated from the begin", "", 0)
		f.find(report(v1.Leaks), time.Hour)
		f.want(t, "a leak", "isolation.lost leak", 1)
		f.find(report(v1.Leaks), time.Hour)
		f.lead(t)
		f.rest(time.Minute)
		f.find(report(v1.Leaks), time.Hour)
		f.want(t, "it is found again, also by another instance", "isolation.lost leak", 1)
		f.lead(t)
		f.rest(time.Minute)
		f.find(report(v1.Isolated), time.Hour)
		f.want(t, "a third instance finds none", "isolation.regained proven", 2)
		f.lead(t)
		f.rest(time.Minute)
		f.want(t, "a fourth has found nothing yet", "isolation.regained proven", 2)
		f.find(report(v1.Isolated), 26*time.Hour)
		f.find(report(v1.IsolationUnknown), time.Hour)
		f.want(t, "its age was reported before", "isolation.unproven old", 3)
		f.find(report(v1.Isolated), 26*time.Hour)
		f.want(t, "and is again", "isolation.unproven old", 5)
	})
}

// The events name what was found, since when, and what to do.
func TestEventsSayWhatAndWhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Hour)
		defer f.resign()
		f.lead(t)
		start := time.Now().UTC().Format(time.RFC3339)
		f.find(report(v1.Isolated), time.Hour)
		lost := time.Now().UTC().Format(time.RFC3339)
		f.find(report(v1.Leaks), time.Hour)
		f.find(report(v1.IsolationUnknown), time.Hour)
		f.find(none(), time.Hour)
		list, n := f.reported(t)
		if n != 3 || len(list) != 3 {
			t.Fatalf("%d events: %+v", n, list)
		}
		for i, want := range []struct {
			kind, severity, cause string
			seen                  []string
			do                    string
		}{
			{events.IsolationLost, events.Critical, "leak", []string{
				"between 1 of 3 pairs", "from blue to red, P_Key 0x8101: h2 (mlx5_0) out 1 > leaf1 in 4 out 3 > h1 (mlx5_0) in 1", "before: isolated since " + start, "last proven at " + start,
			}, "remove entry 5 of leaf1 port 3; then portcullis verify"},
			{events.IsolationUnproven, events.Warning, "unknown", []string{
				"of 3 pairs", "1 declared ports were not found, the first of h4 at 0x0000000000000007/4: the switch port is down",
				"2 values were not read, the first P_KeyTable of leaf1: the device did not answer", "before: leaks since " + lost, "last proven at " + start,
			}, "portcullis verify lists what was not read and what is missing; portcullis verify --last says why there is no newer result"},
			{events.IsolationRegained, events.Notice, "no-tenants", []string{"no host belongs to a tenant; before: unknown since"}, ""},
		} {
			e := &list[i]
			if e.Type != want.kind || e.Severity != want.severity || e.Cause != want.cause || e.Do != want.do || e.By != events.ByService {
				t.Errorf("event %d: %+v", i, e)
			}
			for _, text := range want.seen {
				if !strings.Contains(e.Seen, text) {
					t.Errorf("%s says %q, want %q", e.Type, e.Seen, text)
				}
			}
		}
	})
}

// An examination that is too old proves nothing. An instance that begins to lead has time to make one before it says so.
func TestOldProof(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Hour)
		defer f.resign()
		f.lead(t)
		f.find(report(v1.Isolated), 3*time.Hour)
		f.want(t, "at its bound", "", 0)
		f.knows(f.found, "the adapter is gone")
		f.rest(2 * time.Minute)
		f.want(t, "beyond it", "isolation.unproven old", 1)
		if list, _ := f.reported(t); !strings.Contains(list[0].Seen, "began at ") || !strings.Contains(list[0].Seen, ": the adapter is gone; before: isolated since") ||
			!strings.Contains(list[0].Expected, "3h0m0s") {
			t.Errorf("the event is %+v", list[0])
		}
		f.rest(time.Hour)
		f.want(t, "it goes on", "isolation.unproven old", 1)
		f.find(report(v1.IsolationUnknown), time.Hour)
		f.want(t, "a newer one proves nothing either", "isolation.unproven old", 1)
		f.find(report(v1.Isolated), time.Hour)
		f.want(t, "proven", "isolation.regained proven", 2)
		f.find(report(v1.Leaks), 10*time.Hour)
		f.want(t, "a leak that was found long ago is still one", "isolation.lost leak", 3)
		f.find(report(v1.Isolated), 2*time.Hour)
		f.want(t, "not proven for long yet", "isolation.lost leak", 3)
		f.find(report(v1.Isolated), 2*time.Hour)
		f.want(t, "proven for long", "isolation.regained proven", 4)
		f.resign()
		f.rest(30 * time.Hour)
		_, before := f.reported(t)
		f.lead(t)
		f.rest(14 * time.Minute)
		if _, n := f.reported(t); n != before {
			t.Errorf("an instance that just began to lead says %d events more", n-before)
		}
		f.rest(2 * time.Minute)
		f.want(t, "it had time", "isolation.unproven old", before+1)
	})
}

// Where examinations are to be made and none ever has a result, that is reported. Where none are to be made, it is not.
func TestNeverProven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for every, want := range map[time.Duration]string{time.Hour: "isolation.unproven old", 0: ""} {
			f := newFabric(every)
			f.lead(t)
			f.rest(2 * time.Hour)
			f.want(t, "so far", "", 0)
			f.lead(t)
			f.rest(2 * time.Hour)
			if got, _ := f.newest(t); got != want {
				t.Errorf("every %v: %q, want %q", every, got, want)
			}
			f.resign()
		}
	})
}

// A verdict that changes all the time causes few events. The last that is reported is true once it lasts.
func TestFlappingIsBounded(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{v1.Leaks, v1.Isolated}, {v1.IsolationUnknown, v1.Isolated}, {v1.Leaks, v1.IsolationUnknown}} {
		for _, every := range []time.Duration{time.Minute, 20 * time.Minute, time.Hour, 3 * time.Hour} {
			t.Run(fmt.Sprint(pair, every), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFabric(time.Hour)
					defer f.resign()
					f.lead(t)
					f.find(report(v1.Isolated), time.Minute)
					for begin := time.Now(); time.Since(begin) < 48*time.Hour; {
						f.find(report(pair[0]), every/2)
						f.find(report(pair[1]), every/2)
					}
					if _, n := f.reported(t); n < 2 || n > 24 {
						t.Errorf("%d events in two days", n)
					}
					for range 10 {
						f.find(report(v1.Isolated), time.Hour)
					}
					if got, _ := f.newest(t); got != "isolation.regained proven" {
						t.Errorf("after ten quiet hours the newest event is %q", got)
					}
				})
			})
		}
	}
}

// A leak is reported at once, however often the verdict changed before.
func TestBadNewsIsNeverHeldBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Hour)
		defer f.resign()
		f.lead(t)
		for range 3 {
			f.find(report(v1.IsolationUnknown), time.Minute)
			f.find(report(v1.Isolated), time.Minute)
		}
		for range 9 {
			f.find(report(v1.Isolated), time.Hour)
		}
		f.want(t, "it lasts", "isolation.regained proven", 4)
		f.find(report(v1.Leaks), 0)
		f.want(t, "a leak", "isolation.lost leak", 5)
	})
}

// Good news after much bad news must last without a break, and be of a current examination.
func TestGoodNewsMustLast(t *testing.T) {
	t.Parallel()
	for worse, want := range map[int]time.Duration{0: 0, 1: 0, 2: time.Hour, 3: 2 * time.Hour, 4: 4 * time.Hour, 5: 8 * time.Hour, 99: 8 * time.Hour} {
		if got := hold(worse); got != want {
			t.Errorf("after %d times: %v, want %v", worse, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Hour)
		defer f.resign()
		f.lead(t)
		f.find(report(v1.Leaks), time.Minute)
		f.find(report(v1.Isolated), time.Minute)
		f.find(report(v1.Leaks), time.Minute)
		f.find(report(v1.Isolated), 30*time.Minute)
		f.find(report(v1.Leaks), time.Minute)
		f.find(report(v1.Isolated), 50*time.Minute)
		f.find(report(v1.Isolated), time.Minute)
		f.want(t, "it did not last for an hour", "isolation.lost leak", 3)
		f.resign()
		f.rest(30 * time.Hour)
		f.lead(t)
		f.rest(5 * time.Minute)
		f.want(t, "it was long ago", "isolation.lost leak", 3)
		f.find(report(v1.Isolated), time.Minute)
		f.want(t, "it is so now", "isolation.regained proven", 4)
	})
}

// While the store does not answer, no change is lost. One that it took without saying so is not reported twice.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	for _, moment := range []storetest.Moment{storetest.Before, storetest.After} {
		synctest.Test(t, func(t *testing.T) {
			f := newFabric(time.Hour)
			defer f.resign()
			f.lead(t)
			f.find(report(v1.Isolated), time.Minute)
			f.fails.FailAt(1, moment)
			f.find(report(v1.Leaks), time.Hour)
			f.fails.Heal()
			f.rest(time.Minute)
			f.want(t, "the store is back", "isolation.lost leak", 1)
		})
	}
}

// What an instance found that led before is known to the next.
func TestStanding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Hour)
		defer f.resign()
		f.lead(t)
		if s, ok := f.keeps.Standing(); !ok || !s.Examined.IsZero() || s.MaxAge != 3*time.Hour {
			t.Errorf("before the first: %+v, %v", s, ok)
		}
		proven := time.Now()
		f.find(report(v1.Isolated), time.Hour)
		leaks := time.Now()
		f.find(report(v1.Leaks), time.Hour)
		if s, ok := f.keeps.Standing(); !ok || s.Verdict != v1.Leaks || !s.Examined.Equal(leaks) || !s.Proven.Equal(proven) || s.Counts.Pairs.Leaks != 1 {
			t.Errorf("of the instance itself: %+v, %v", s, ok)
		}
		old := f.found
		f.lead(t)
		if s, ok := f.keeps.Standing(); !ok || s.Verdict != v1.Leaks || !s.Examined.Equal(leaks) || !s.Proven.Equal(proven) || s.Counts.Pairs.Leaks != 1 {
			t.Errorf("of another: %+v, %v", s, ok)
		}
		f.find(report(v1.Isolated), time.Minute)
		f.knows(old, f.why) // the first one leads again, and has what it found then
		f.keeps.News()
		f.rest(time.Minute)
		if s, _ := f.keeps.Standing(); s.Verdict != v1.Isolated || s.Counts.Pairs != (v1.IsolationPairs{Isolated: 3}) {
			t.Errorf("an older examination replaces a newer one: %+v", s)
		}
		r := report(v1.IsolationUnknown)
		r.Parties[0].Declared, r.Parties[0].Found, r.Bounds.Ghosts = 3, 1, 5
		f.find(r, time.Minute)
		if s, _ := f.keeps.Standing(); s.Counts != (Counts{Pairs: v1.IsolationPairs{Unknown: 3}, Missing: 2, Ghosts: 5, Unread: 2}) {
			t.Errorf("counts %+v", s.Counts)
		}
		f.find(none(), time.Minute)
		if s, _ := f.keeps.Standing(); s.Verdict != v1.IsolationUnknown || !strings.Contains(s.Reason, "no host") {
			t.Errorf("without tenants: %+v", s)
		}
	})
}

// Texts are bounded, however long names and ways are.
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	r := report(v1.Leaks)
	for range 100 {
		r.Examples[0].Hops = append(r.Examples[0].Hops, v1.IsolationHop{Device: strings.Repeat("ä", 99)})
	}
	r.Examples[0].Cure = strings.Repeat("x", 10_000)
	if f := findingOf(r); len(f.Seen) > maxText || len(f.Do) > maxText || !strings.Contains(f.Seen, "h1 (mlx5_0)") {
		t.Errorf("%d and %d bytes: %+v", len(f.Seen), len(f.Do), f)
	}
	r.Examples[0].Raw = true
	if text := packet(&r.Examples[0]); !strings.Contains(text, "without a P_Key") || !strings.HasSuffix(text, "> ...") {
		t.Errorf("a packet without a P_Key: %s", text)
	}
}
