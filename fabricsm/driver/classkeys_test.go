package driver_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
)

// TestClassKeys: over a transport, devices get the keys of their classes besides normal management, and the keys are
// removed on request.
func TestClassKeys(t *testing.T) {
	for name, dial := range map[string]func(*testing.T, *sim.Fabric) transport.Port{
		"in process":      attachTo,
		"ibsim's sockets": dialTo,
	} {
		t.Run(name, func(t *testing.T) {
			l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
			if err != nil {
				t.Fatal(err)
			}
			f := sim.NewWith(l, sim.Options{Device: sim.Modern()})
			r := runKeys(t, dial(t, f))
			r.until(t, func(s *keymgr.Status) bool { return settledKeys(s, len(l.Nodes)) })
			for i := range l.Nodes {
				for _, class := range []mad.Class{mad.ClassCongestionControl, mad.ClassVendorVS, mad.ClassVendorN2N} {
					if k, ok := f.ClassKey(l.Nodes[i].Name, endOf(&l.Nodes[i]), class); !ok || k.Key.IsZero() || !k.Protect || k.Violations != 0 {
						t.Errorf("%s, %v: has a key: %v, protected: %v, violations: %d", l.Nodes[i].Name, class, !k.Key.IsZero(), k.Protect, k.Violations)
					}
				}
			}
			r.inputs <- &sm.ReleaseKeys{}
			want := 3 * len(l.Nodes)
			for i := range l.Nodes {
				if l.Nodes[i].Type == ib.NodeSwitch {
					want++ // its node key
				}
			}
			if e := <-r.released; e.Kept != 0 || e.Released != want {
				t.Errorf("%v; want %d", e, want)
			}
		})
	}
}

func endOf(n *netlist.Node) ib.PortNum {
	if n.Type == ib.NodeSwitch {
		return 0
	}
	return 1
}

// settledKeys reports whether the given number of devices has the keys of all classes.
func settledKeys(s *keymgr.Status, devices int) bool {
	for _, c := range s.Classes {
		if c.Settled != devices {
			return false
		}
	}
	return len(s.Classes) == 3
}

func attachTo(t *testing.T, f *sim.Fabric) transport.Port {
	t.Helper()
	p, err := f.Attach("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func dialTo(t *testing.T, f *sim.Fabric) transport.Port {
	t.Helper()
	p, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: simtest.Serve(t, f).Socket, Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// keysRun is a subnet manager with class keys that runs beside a test.
type keysRun struct {
	inputs   chan sm.Input
	status   chan *keymgr.Status
	released chan *sm.ClassKeysReleased
}

func runKeys(t *testing.T, port transport.Port) *keysRun {
	t.Helper()
	m, err := keys.DrawMaster(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	on := sm.ClassKeyConfig{Enable: sm.KeyEnabled, Lease: 60}
	r := &keysRun{inputs: make(chan sm.Input, 1), status: make(chan *keymgr.Status, 1024), released: make(chan *sm.ClassKeysReleased, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- driver.Run(ctx, driver.Options{
			Port: port, Store: &driver.Memory{}, Inputs: r.inputs,
			Core: sm.Config{
				MKey:      mkeys.Config{Places: keyplace.Seen},
				ClassKeys: sm.ClassKeysConfig{Source: keys.Derived{Master: m}, CC: on, VS: on, N2N: on},
			},
			OnKeys: func(s *keymgr.Status) { r.status <- s },
			OnEvent: func(e sm.Event) {
				if x, ok := e.(*sm.ClassKeysReleased); ok {
					r.released <- x
				}
			},
		}, nil)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *keysRun) until(t *testing.T, ok func(*keymgr.Status) bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		select {
		case s := <-r.status:
			if ok(s) {
				return
			}
		case <-deadline.C:
			t.Fatal("the keys of classes are not there after half a minute")
		}
	}
}
