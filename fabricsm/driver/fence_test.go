package driver_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
)

// leased is a lease that a test ends and begins.
type leased struct {
	mu    sync.Mutex
	until time.Time
	// every ends the lease at each so many looks, for a while; 0: never.
	every, looks int
	gap          time.Duration
}

func (l *leased) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.looks++; l.every > 0 && l.looks%l.every == 0 && time.Until(l.until) > 0 {
		l.until = time.Now()
		time.AfterFunc(l.gap, func() { l.hold(time.Hour) })
	}
	return max(0, time.Until(l.until))
}

func (l *leased) hold(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Now().Add(d)
}

func (l *leased) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.until) > 0
}

// witness is a port that counts the packets sent while the lease is held, and while it is not.
type witness struct {
	lease *leased

	mu           sync.Mutex
	sets, gets   int
	wrong        int // Sets without the lease
	masters      int // answers, without the lease, that this subnet manager is master
	readsWithout int
}

func (w *witness) saw(packets []transport.Packet) {
	held := w.lease.held()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range packets {
		m := &packets[i].MAD
		switch m.Method() {
		case mad.MethodSet:
			w.sets++
			if !held {
				w.wrong++
			}
		case mad.MethodGet:
			w.gets++
			if !held {
				w.readsWithout++
			}
		case mad.MethodGetResp:
			var si mad.SMInfo
			if m.Attr() == mad.AttrSMInfo && mad.Decode(m.Data(), &si) == nil && si.SMState == ib.SMMaster && !held {
				w.masters++
			}
		}
	}
}

func (w *witness) count() (sets, wrong, masters, readsWithout int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sets, w.wrong, w.masters, w.readsWithout
}

// seenPort is a port that a witness sees.
type seenPort struct {
	transport.Port
	w *witness
}

func (p *seenPort) Send(packets []transport.Packet) (int, error) {
	p.w.saw(packets)
	return p.Port.Send(packets)
}

// TestFenceClosed: without a lease the fabric is read and nothing is written, however long
// it takes; with it, all is.
func TestFenceClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leased{}
		w := &witness{lease: l}
		began := time.Now()
		time.AfterFunc(time.Minute, func() {
			if sets, _, _, reads := w.count(); sets != 0 || reads < 10 {
				t.Errorf("%d Sets and %d Gets without a lease, want no Set", sets, reads)
			}
			l.hold(time.Hour)
		})
		err := driver.Run(t.Context(), driver.Options{
			Port: &seenPort{simulated(t, sim.Fault{}, ""), w}, Store: &driver.Memory{}, Fence: l, Until: driver.UntilSettled,
		}, nil)
		sets, wrong, masters, _ := w.count()
		if err != nil || sets == 0 || wrong+masters != 0 || time.Since(began) < time.Minute {
			t.Errorf("%v after %v: %d Sets, %d of them and %d claims to be master without a lease", err, time.Since(began), sets, wrong, masters)
		}
	})
}

// slowStore is a process that is paused, for longer than its lease, between its first decision and the effect of it.
type slowStore struct {
	driver.Memory
	saves int
}

func (s *slowStore) Save(facts []sm.Fact) error {
	if s.saves++; s.saves == 1 {
		time.Sleep(3 * time.Second)
	}
	return s.Memory.Save(facts)
}

// TestPausedLeader: a decision from before a pause is not written after it.
func TestPausedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leased{}
		l.hold(2 * time.Second)
		w, store := &witness{lease: l}, &slowStore{}
		time.AfterFunc(30*time.Second, func() {
			if sets, _, _, _ := w.count(); sets != 0 || store.saves != 1 {
				t.Errorf("%d Sets after the pause, %d saves; want none, and one from before", sets, store.saves)
			}
			l.hold(time.Hour)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var last *sm.View
		err := driver.Run(ctx, driver.Options{
			Port: &seenPort{simulated(t, sim.Fault{}, ""), w}, Store: store, Fence: l, OnView: func(v *sm.View) { last = v },
		}, nil)
		if sets, wrong, masters, _ := w.count(); err != nil || sets == 0 || wrong+masters != 0 {
			t.Errorf("%v, %d Sets, %d of them and %d claims to be master without a lease", err, sets, wrong, masters)
		}
		if last == nil || !last.Settled {
			t.Errorf("the last view is %+v", last)
		}
	})
}

// TestLeaseEndsAnywhere: the lease ends at any moment of a bring-up, and comes back.
func TestLeaseEndsAnywhere(t *testing.T) {
	lapses := 0
	for every := 2; every < 60; every++ {
		synctest.Test(t, func(t *testing.T) {
			l := &leased{every: every, gap: time.Second}
			l.hold(time.Hour)
			time.AfterFunc(20*time.Second, func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.every = 0
			})
			w := &witness{lease: l}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var last *sm.View
			err := driver.Run(ctx, driver.Options{
				Port: &seenPort{simulated(t, sim.Fault{}, ""), w}, Store: &driver.Memory{}, Fence: l, OnView: func(v *sm.View) { last = v },
			}, nil)
			sets, wrong, masters, reads := w.count()
			if err != nil || sets == 0 || wrong+masters != 0 {
				t.Errorf("every %d: %v, %d Sets, %d of them and %d claims to be master without a lease", every, err, sets, wrong, masters)
			}
			if last == nil || !last.Settled || len(last.Problems) != 0 {
				t.Errorf("every %d: the last view is %+v", every, last)
			}
			lapses += reads
		})
	}
	if lapses < 1000 {
		t.Errorf("%d Gets without a lease in all: it hardly ever ended", lapses)
	}
}

// seenPoller is a port that can be polled and that a witness sees.
type seenPoller struct {
	*ibsim.Port
	w *witness
}

func (p *seenPoller) TrySend(packets []transport.Packet) (int, error) {
	p.w.saw(packets)
	return p.Port.TrySend(packets)
}

// TestLeaseEndsPolled: the same where the port is polled, with a fabric that is written
// to all the time.
func TestLeaseEndsPolled(t *testing.T) {
	list := pairFabric(t)
	wire, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: simtest.Serve(t, sim.New(list)).Socket, Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	l := &leased{every: 40, gap: 50 * time.Millisecond}
	l.hold(time.Hour)
	w := &witness{lease: l}
	lapses := 0
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = driver.Run(ctx, driver.Options{
		Port: &seenPoller{wire, w}, Store: &driver.Memory{}, Fence: l, Core: sm.Config{Enforcement: sm.Accepted},
		OnEvent: func(e sm.Event) {
			if s, ok := e.(*sm.StateChanged); ok && s.State == ib.SMNotActive {
				if lapses++; lapses == 10 {
					l.mu.Lock()
					l.every = 0
					l.mu.Unlock()
				}
			}
		},
		Until: func(v *sm.View) bool { return v.Settled && lapses >= 10 },
	}, nil)
	// Gets are not counted here: a lease that ends for 50 ms may end between two of them.
	sets, wrong, masters, _ := w.count()
	if err != nil || ctx.Err() != nil || sets == 0 || wrong+masters != 0 || lapses < 10 {
		t.Errorf("%v: %d lapses, %d Sets, %d of them and %d claims to be master without a lease", err, lapses, sets, wrong, masters)
	}
}
