package counterwatch_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

const period = time.Minute

// watched is a settled fabric with a watch, the tenants' hosts h1 and h3, and how many
// requests of the watch were sent.
type watched struct {
	*testbed.Stage
	t    *testing.T
	sent int
}

func start(t *testing.T) *watched {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	s, err := testbed.New(testbed.Options{
		Netlist: l, Manager: "sm", Fabric: sim.Options{LoseSilently: true}, Seed: 1,
		SM: sm.Config{Counters: sm.CountersConfig{Period: period}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Stage: s, t: t}
	s.OnSend = func(r *sm.Request) bool {
		if r.MAD.Class() == mad.ClassPerf {
			w.sent++
		}
		return false
	}
	s.Start()
	s.Want(sm.Intent{Revision: 1, Grants: []sm.Grant{s.GrantOf("h1", 1, 0x8001), s.GrantOf("h3", 1, 0x8001)}})
	if err := s.Settle(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	return w
}

// traffic has h1 send packets to h3.
func (w *watched) traffic() {
	w.t.Helper()
	for range 1000 {
		d := sim.Data{SLID: w.Fabric.PortInfo("h1", 1).LID, DLID: w.Fabric.PortInfo("h3", 1).LID, PKey: 0x8001, DestQP: 2, Payload: 256}
		if _, err := w.Fabric.Inject(sim.Endpoint{Node: "h1", Port: 1}, d); err != nil {
			w.t.Fatal(err)
		}
	}
}

// reset clears the counters of a node, as root on a host does.
func (w *watched) reset(from, node string, num ib.PortNum, sel byte, pkey ib.PKey) int {
	w.t.Helper()
	st, err := w.Fabric.Station(from, false)
	if err != nil {
		w.t.Fatal(err)
	}
	defer st.Close()
	st.UsePKey(pkey)
	p := transport.Packet{LID: w.Fabric.PortInfo(node, num).LID, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassPerf, ClassVersion: 1, Method: mad.MethodSet, Attr: 0x001D, TID: 5})
	data := p.MAD[64:]
	data[1], data[2], data[3] = sel, 0xFF, 0xFF
	return len(st.Exchange([]transport.Packet{p}, nil))
}

func (w *watched) resets(since int) (out []*sm.CountersReset) {
	for _, h := range w.Since(since) {
		if e, ok := h.Event.(*sm.CountersReset); ok {
			out = append(out, e)
		}
	}
	return out
}

// TestReset: counters of an adapter and of a switch that a host reset are reported within a period, once each time. Those
// of devices that were restarted are not.
func TestReset(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(*watched)
		want string // node
	}{
		{"nothing", func(*watched) {}, ""},
		{"an adapter", func(w *watched) { w.reset("h1", "h3", 1, 1, 0x8001) }, "h3"},
		{"a switch", func(w *watched) { w.reset("sm", "leaf1", 0, 255, 0) }, "leaf1"},
		{"a reboot", func(w *watched) {
			if err := w.Fabric.Reboot("h3"); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"a reboot of a switch", func(w *watched) {
			if err := w.Fabric.Reboot("leaf1"); err != nil {
				t.Fatal(err)
			}
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := start(t)
			w.t = t
			w.traffic()
			w.Run(2 * period)
			if got := w.resets(0); len(got) != 0 {
				t.Fatalf("told of %v before anything was done", got)
			}
			mark := w.Mark()
			tt.do(w)
			w.Run(3 * period)
			got := w.resets(mark)
			if tt.want == "" {
				if len(got) != 0 {
					t.Errorf("told of %v", got)
				}
				return
			}
			num := ib.PortNum(1)
			if w.List.Find(tt.want).Type == ib.NodeSwitch {
				num = 0
			}
			if len(got) != 1 || got[0].GUID != w.GUID(tt.want, num) || got[0].Times != 1 || got[0].Is >= got[0].Was {
				t.Errorf("told of %v, want of %s once", got, tt.want)
			}
		})
	}
}

// TestCost: each end port is asked once a period, spread over it, whether it answers or not. Nothing is asked after a
// crash, and only the master asks.
func TestCost(t *testing.T) {
	w := start(t)
	if err := w.Fabric.SetFault("h3", sim.Fault{Silent: true}); err != nil {
		t.Fatal(err)
	}
	w.Run(time.Second)
	n := len(w.List.Nodes)
	for range 3 {
		before := w.sent
		w.Run(period / 2)
		half := w.sent - before
		w.Run(period / 2)
		if whole := w.sent - before; whole < n-1 || whole > n+1 || half < n/2-1 || half > n/2+1 {
			t.Errorf("%d requests in a period, %d of them in its first half, want %d", whole, half, n)
		}
	}
	w.Crash()
	before := w.sent
	w.Run(10 * period)
	if w.sent != before {
		t.Errorf("%d requests without a manager", w.sent-before)
	}
	if w.Err() != nil {
		t.Error(w.Err())
	}
}
