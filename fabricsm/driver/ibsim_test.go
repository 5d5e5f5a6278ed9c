package driver_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// manager is a subnet manager that runs beside a test.
type manager struct {
	t       testing.TB
	views   chan *sm.View
	events  chan sm.Event
	intents chan sm.Intent
	inputs  chan sm.Input
	ended   chan error
	cancel  context.CancelFunc
}

// manage starts a subnet manager at host "sm" of a lab.
func manage(t testing.TB, lab *ibsimlab.Lab, store driver.Store, intent bool) *manager {
	t.Helper()
	cfg := sm.Config{Enforcement: sm.Accepted}
	if intent {
		cfg.IntentWait = time.Minute
	}
	return manageAs(t, lab, store, cfg)
}

// manageAs is manage with a configuration.
func manageAs(t testing.TB, lab *ibsimlab.Lab, store driver.Store, cfg sm.Config) *manager {
	t.Helper()
	port, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket(), Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &manager{
		t: t, views: make(chan *sm.View, 1), events: make(chan sm.Event, 1<<16),
		intents: make(chan sm.Intent, 1), inputs: make(chan sm.Input, 1), ended: make(chan error, 1), cancel: cancel,
	}
	go func() {
		m.ended <- driver.Run(ctx, driver.Options{
			Port: port, Core: cfg, Store: store, Inputs: m.inputs,
			OnView: m.show,
			OnEvent: func(e sm.Event) {
				select {
				case m.events <- e:
				default:
				}
			},
		}, m.intents)
	}()
	t.Cleanup(m.stop)
	return m
}

// show keeps the newest view only.
func (m *manager) show(v *sm.View) {
	for {
		select {
		case m.views <- v:
			return
		default:
		}
		select {
		case <-m.views:
		default:
		}
	}
}

func (m *manager) stop() {
	m.cancel()
	if err, ok := <-m.ended; ok {
		if err != nil {
			m.t.Errorf("subnet manager ended: %v", err)
		}
		close(m.ended)
	}
}

// until waits for a view that is as wanted.
func (m *manager) until(what string, ok func(*sm.View) bool) *sm.View {
	m.t.Helper()
	deadline := time.NewTimer(60 * time.Second)
	defer deadline.Stop()
	var last *sm.View
	for {
		select {
		case last = <-m.views:
			if ok(last) {
				return last
			}
		case <-deadline.C:
			if last != nil {
				m.t.Logf("last view: settled %v, pending %d, problems %q, SMPs %v", last.Settled, last.Pending, last.Problems, last.SMPs)
			}
			m.t.Fatalf("waiting for %s: not within a minute", what)
		}
	}
}

func settled(v *sm.View) bool { return v.Settled }

// event waits for an event of type E that fits.
func event[E sm.Event](m *manager, ok func(E) bool) E {
	m.t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		select {
		case e := <-m.events:
			if e, is := e.(E); is && ok(e) {
				return e
			}
		case <-deadline.C:
			var want E
			m.t.Fatalf("waiting for event %T: not within 30 seconds", want)
		}
	}
}

func sets(v *sm.View) map[string]uint64 {
	out := make(map[string]uint64)
	for _, c := range v.SMPs {
		if c.Method == mad.MethodSet {
			out[c.Attr.String()] += c.Sent
		}
	}
	return out
}

func total(v *sm.View) (n uint64) {
	for _, c := range v.SMPs {
		n += c.Sent
	}
	return n
}

// rested reports whether a view is settled and no low-priority work is left.
func rested(v *sm.View) bool { return v.Settled && v.Progress.Background == 0 && v.Pending == 0 }

func text(t testing.TB, l *netlist.Netlist, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := l.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// inactive lists the cabled ports that are not Active.
func inactive(v *sm.View) (bad []string) {
	f := v.Fabric
	for i := range f.Ports() {
		p := f.Port(i)
		if f.NodeOf(i).Type != 0 && p.Peer != topo.None && p.State != ib.PortActive {
			bad = append(bad, f.NodeOf(i).Description+"/"+p.State.String())
		}
	}
	return bad
}

func fabrics(t testing.TB) map[string][]byte {
	made := func(l *netlist.Netlist, err error) []byte { return text(t, l, err) }
	return map[string][]byte{
		"one switch":           made(netlist.Single(netlist.Shape{Hosts: 8})),
		"two levels 36":        made(netlist.FatTree2(netlist.Shape{Hosts: 36, Radix: 12})),
		"two levels 648":       made(netlist.FatTree2(netlist.Shape{Hosts: 648})),
		"three levels 54":      made(netlist.FatTree3(netlist.Shape{Hosts: 54, Radix: 6})),
		"three levels 648":     made(netlist.FatTree3(netlist.Shape{Hosts: 648, Radix: 18})),
		"chain of 20":          made(netlist.Chain(netlist.Shape{Hosts: 20, Switches: 20})),
		"islands":              made(netlist.Islands(netlist.Shape{Hosts: 8})),
		"hosts with two ports": made(netlist.DualPort(netlist.Shape{Hosts: 6})),
	}
}

// TestBringUpAndRestart brings odd and ordinary fabrics up, and starts again on
// the settled fabric, which must cause no writes.
func TestBringUpAndRestart(t *testing.T) {
	ibsimtest.Need(t)
	all := fabrics(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			lab := ibsimtest.Start(t, all[name])
			store := &driver.Memory{}
			begin := time.Now()
			m := manage(t, lab, store, false)
			v := m.until("a settled fabric", settled)
			t.Logf("settled after %v, %d SMPs, Sets %v", time.Since(begin).Round(time.Millisecond), total(v), sets(v))
			if len(v.Problems) > 0 {
				t.Errorf("problems: %q", v.Problems)
			}
			if bad := inactive(v); len(bad) > 0 {
				t.Errorf("%d ports not Active: %.10q", len(bad), bad)
			}
			m.stop()

			m = manage(t, lab, store, false)
			v = m.until("a settled fabric after the restart", settled)
			if s := sets(v); len(s) > 0 {
				t.Errorf("restart on a settled fabric wrote: %v", s)
			}
			t.Logf("restart took %d SMPs", total(v))
		})
	}
}

// TestDeadLinks brings up a fabric with a cable between switches and a host
// pulled, and puts them back.
func TestDeadLinks(t *testing.T) {
	ibsimtest.Need(t)
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 16, Radix: 8})
	lab := ibsimtest.Start(t, text(t, l, err))
	leaf := l.Find("leaf1")
	up := 0
	for num := range leaf.Ports {
		if p := leaf.Ports[num].Peer; p != "" && l.Find(p).Type == ib.NodeSwitch {
			up = num
		}
	}
	cable := fmt.Sprintf("%q[%d]", "leaf1", up)
	ibsimtest.Console(t, lab, "unlink "+cable)
	ibsimtest.Console(t, lab, `unlink "h3"[1]`)
	m := manage(t, lab, &driver.Memory{}, false)
	v := m.until("a settled fabric", settled)
	if bad := inactive(v); len(bad) > 0 || v.Fabric.PortByGUID(l.Find("h3").PortGUID(1)) != topo.None {
		t.Errorf("not Active: %v; or the pulled host is seen", bad)
	}
	ibsimtest.Console(t, lab, "relink "+cable)
	ibsimtest.Console(t, lab, `relink "h3"[1]`)
	links := len(netlistCables(l))
	m.until("all cables in use", func(v *sm.View) bool {
		ends := 0
		for i := range v.Fabric.Ports() {
			if p := v.Fabric.Port(i); p.Peer != topo.None && p.State == ib.PortActive {
				ends++
			}
		}
		return v.Settled && ends == links
	})
}
