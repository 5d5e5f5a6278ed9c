package driver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// wire is a simulated port whose failures a test decides, and that records when LIDs were put on it.
type wire struct {
	transport.Port
	fail func(transport.Packet) error
}

func (w *wire) Send(p []transport.Packet) (int, error) {
	for i := range p {
		if err := w.fail(p[i]); err != nil {
			return i, err
		}
	}
	return w.Port.Send(p)
}

func simulated(t *testing.T, fault sim.Fault, node string) transport.Port {
	t.Helper()
	l, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	f := sim.NewWith(l, sim.Options{LoseSilently: true})
	if node != "" {
		if err := f.SetFault(node, fault); err != nil {
			t.Fatal(err)
		}
	}
	p, err := f.Attach("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRunUntilSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &driver.Memory{}
		var last *sm.View
		err := driver.Run(t.Context(), driver.Options{
			Port: simulated(t, sim.Fault{}, ""), Store: store,
			OnView: func(v *sm.View) { last = v }, Until: driver.UntilSettled,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if saved, err := store.Load(); last == nil || !last.Settled || len(saved) == 0 || err != nil {
			t.Errorf("view %+v, %d facts saved, %v", last, len(saved), err)
		}
	})
}

// TestSilentNode: a host that never answers costs its own ports only, and time
// is what the timeouts say.
func TestSilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var told *sm.NodeUnreachable
		active := time.Duration(0)
		err := driver.Run(t.Context(), driver.Options{
			Port: simulated(t, sim.Fault{Silent: true}, "h2"), Until: driver.UntilSettled,
			OnEvent: func(e sm.Event) {
				switch e := e.(type) {
				case *sm.NodeUnreachable:
					told = e
				case *sm.Routed:
					active = time.Since(begin)
				}
			},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if told == nil || told.Place.IsZero() {
			t.Errorf("told %v, want the link of the silent host", told)
		}
		if active > 100*time.Millisecond {
			t.Errorf("others were routed after %v: the silent host held them up", active)
		}
	})
}

type brokenStore struct{ driver.Store }

var errDisk = errors.New("disk is full")

func (brokenStore) Load() ([]sm.Fact, error) { return nil, nil }
func (brokenStore) Save([]sm.Fact) error     { return errDisk }

// TestNothingIsSentThatWasNotSaved: a LID leaves only after the store has it.
func TestNothingIsSentThatWasNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{Port: simulated(t, sim.Fault{}, ""), fail: func(p transport.Packet) error {
			if p.MAD.Method() == mad.MethodSet && p.MAD.Attr() == mad.AttrPortInfo {
				t.Error("PortInfo was set although the store refused the LIDs")
			}
			return nil
		}}
		err := driver.Run(t.Context(), driver.Options{Port: w, Store: brokenStore{}}, nil)
		if !errors.Is(err, errDisk) {
			t.Errorf("Run: %v, want %v", err, errDisk)
		}
	})
}

func TestLostTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{Port: simulated(t, sim.Fault{}, ""), fail: func(p transport.Packet) error {
			if p.MAD.Attr() == mad.AttrPKeyTable {
				return transport.ErrLost
			}
			return nil
		}}
		err := driver.Run(t.Context(), driver.Options{Port: w}, nil)
		if !errors.Is(err, transport.ErrLost) || !strings.Contains(err.Error(), "start again") {
			t.Errorf("Run: %v, want the loss and what to do about it", err)
		}
	})
}

func TestContextEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(5 * time.Second)
			cancel()
		}()
		if err := driver.Run(ctx, driver.Options{Port: simulated(t, sim.Fault{}, "")}, nil); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestLatestIntentWins: of intents that wait together only the last is taken.
func TestLatestIntentWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		intents := make(chan sm.Intent, 3)
		for r := range int64(3) {
			intents <- sm.Intent{Revision: r + 1}
		}
		var seen []int64
		err := driver.Run(t.Context(), driver.Options{
			Port: simulated(t, sim.Fault{}, ""), Core: sm.Config{IntentWait: time.Minute},
			OnView: func(v *sm.View) {
				if v.Intent && (len(seen) == 0 || seen[len(seen)-1] != v.Revision) {
					seen = append(seen, v.Revision)
				}
			},
			Until: driver.UntilSettled,
		}, intents)
		if err != nil || len(seen) != 1 || seen[0] != 3 {
			t.Errorf("Run: %v; revisions seen %v, want 3 alone", err, seen)
		}
	})
}

// forger sees every request and gets its answer to the subnet manager first,
// under the transaction id that the core numbers its requests with.
type forger struct {
	transport.Port
	forged chan transport.Packet
	next   uint32
}

func (f *forger) Send(p []transport.Packet) (int, error) {
	for i := range p {
		f.next++
		lie := p[i]
		lie.MAD.SetTID(ib.TID(f.next<<12 | (f.next-1)&0xFFF))
		lie.MAD.Respond(mad.StatusOK)
		select {
		case f.forged <- lie:
		default:
		}
	}
	return f.Port.Send(p)
}

func (f *forger) Receive(p []transport.Packet) (int, error) {
	select {
	case p[0] = <-f.forged:
		return 1, nil
	default:
		return f.Port.Receive(p)
	}
}

// TestForgedAnswers: answers that a host sends in the name of others, without their transaction ids, are not accepted, and
// are reported.
func TestForgedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told *sm.StrayAnswer
		var last *sm.View
		err := driver.Run(t.Context(), driver.Options{
			Port:   &forger{Port: simulated(t, sim.Fault{}, ""), forged: make(chan transport.Packet, 1000)},
			OnView: func(v *sm.View) { last = v }, Until: driver.UntilSettled,
			OnEvent: func(e sm.Event) {
				if e, ok := e.(*sm.StrayAnswer); ok {
					told = e
				}
			},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if told == nil || told.Count < 10 {
			t.Errorf("told %v, want the answers that nobody asked for", told)
		}
		if nodes := len(last.Fabric.ByGUID()); nodes != 5 || len(last.Problems) != 0 {
			t.Errorf("%d nodes, want 5; problems %q", nodes, last.Problems)
		}
	})
}

// laterStore takes nothing until the test says so, and then all.
type laterStore struct {
	driver.Store
	takes   atomic.Bool
	refused atomic.Int64
}

func (s *laterStore) Load() ([]sm.Fact, error) { return nil, nil }

func (s *laterStore) Save([]sm.Fact) error {
	if s.takes.Load() {
		return nil
	}
	s.refused.Add(1)
	return fmt.Errorf("%w: %w", errDisk, driver.ErrLater)
}

// TestWaitsForTheStore: while the store can take no facts, nothing that depends on them is
// sent and the run goes on; when it can, the fabric comes up.
func TestWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, set := &laterStore{}, false
		w := &wire{Port: simulated(t, sim.Fault{}, ""), fail: func(p transport.Packet) error {
			if p.MAD.Method() == mad.MethodSet && p.MAD.Attr() == mad.AttrPortInfo {
				set = true
				if !s.takes.Load() {
					t.Error("PortInfo was set although the store had not taken the LIDs")
				}
			}
			return nil
		}}
		go func() {
			time.Sleep(time.Minute)
			if n := s.refused.Load(); n < 50 || n > 70 {
				t.Errorf("the store was asked %d times in a minute, want once a second", n)
			}
			s.takes.Store(true)
		}()
		if err := driver.Run(t.Context(), driver.Options{Port: w, Store: s, Until: driver.UntilSettled}, nil); err != nil || !set {
			t.Errorf("Run: %v, PortInfo set: %v, want the fabric settled", err, set)
		}
	})
}
