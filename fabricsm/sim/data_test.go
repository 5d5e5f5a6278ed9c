package sim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

var (
	atSM = sim.Endpoint{Node: "sm", Port: 1}
	atH1 = sim.Endpoint{Node: "h1", Port: 1}
)

// running is the tree with sm and h1 reachable from each other: LIDs 1 and 2,
// links Active. The station is sm's.
func running(t testing.TB) (*sim.Fabric, *sim.Station) {
	t.Helper()
	f := tree(t, sim.Options{})
	s := station(t, f, "sm", false)
	forward(t, s)
	activate(t, s)
	return f, s
}

func pkeys(t testing.TB, s *sim.Station, mod uint32, keys []ib.PKey, route ...ib.PortNum) {
	t.Helper()
	var table mad.PKeyTable
	copy(table.PKey[:], keys)
	if status, _ := set(t, s, mad.AttrPKeyTable, mod, table, route...); status != mad.StatusOK {
		t.Fatalf("Set of P_Keys: %v", status)
	}
}

// lft sets the egress port of LID 2 on leaf1 and leaf2's way back, over a spine.
func lft(t testing.TB, s *sim.Station, lid ib.LID, egress ib.PortNum, route ...ib.PortNum) {
	t.Helper()
	si := get[mad.SwitchInfo](t, s, mad.AttrSwitchInfo, 0, route...)
	si.LinearFDBTop = max(3, lid)
	if status, _ := set(t, s, mad.AttrSwitchInfo, 0, si, route...); status != mad.StatusOK {
		t.Fatalf("Set of SwitchInfo: %v", status)
	}
	table := get[mad.LinearForwardingTable](t, s, mad.AttrLinearForwardingTable, 0, route...)
	table.Port[lid] = egress
	if status, _ := set(t, s, mad.AttrLinearForwardingTable, 0, table, route...); status != mad.StatusOK {
		t.Fatalf("Set of forwarding: %v", status)
	}
}

func toActive(t testing.TB, s *sim.Station, num ib.PortNum, route ...ib.PortNum) {
	t.Helper()
	for _, state := range []ib.PortState{ib.PortArmed, ib.PortActive} {
		if status := portSet(t, s, num, func(pi *mad.PortInfo) { pi.PortState = state }, route...); status != mad.StatusOK {
			t.Fatalf("Set to %v: %v", state, status)
		}
	}
}

func TestDataPackets(t *testing.T) {
	leaf := func(port ib.PortNum) sim.Endpoint { return sim.Endpoint{Node: "leaf1", Port: port} }
	plain := sim.Data{SLID: 1, DLID: 2, PKey: 0xFFFF, Payload: 256}
	for _, tt := range []struct {
		name   string
		setup  func(t *testing.T, f *sim.Fabric, s *sim.Station)
		change func(d *sim.Data)
		fate   sim.Fate
		at     sim.Endpoint
	}{
		{"plain", nil, nil, sim.Delivered, atH1},
		{"to itself", nil, func(d *sim.Data) { d.DLID = 1 }, sim.Delivered, atSM},
		{"to the switch", nil, func(d *sim.Data) { d.DLID = 3 }, sim.Delivered, leaf(0)},
		{"to a LID without a route", nil, func(d *sim.Data) { d.DLID = 9 }, sim.NoRoute, leaf(1)},
		{"by a wrong table", func(t *testing.T, _ *sim.Fabric, s *sim.Station) { lft(t, s, 2, 1, 1) }, nil, sim.WrongPort, atSM},
		{"back and forth", func(t *testing.T, _ *sim.Fabric, s *sim.Station) {
			lft(t, s, 2, 3, 1)
			lft(t, s, 2, 1, 1, 3)
			toActive(t, s, 3, 1)
			toActive(t, s, 1, 1, 3)
		}, nil, sim.Looped, sim.Endpoint{Node: "spine1", Port: 1}},
		{"through a link that is not Active", func(t *testing.T, _ *sim.Fabric, s *sim.Station) { lft(t, s, 2, 3, 1) }, nil, sim.LinkDown, leaf(3)},
		{"without a cable", func(t *testing.T, f *sim.Fabric, _ *sim.Station) {
			if err := f.Unlink("sm", 1); err != nil {
				t.Fatal(err)
			}
		}, nil, sim.NotSent, atSM},
		{"P_Key that the destination has not", nil, func(d *sim.Data) { d.PKey = 0x8005 }, sim.PKeyDestination, atH1},
		{
			"limited to limited", func(t *testing.T, _ *sim.Fabric, s *sim.Station) { pkeys(t, s, 0, []ib.PKey{0x7FFF}, 1, 2) },
			func(d *sim.Data) { d.PKey = 0x7FFF }, sim.PKeyDestination, atH1,
		},
		{"P_Key refused inbound", func(t *testing.T, _ *sim.Fabric, s *sim.Station) { enforce(t, s, 1, 0x8005) }, nil, sim.PKeyInbound, leaf(1)},
		{"P_Key refused outbound", func(t *testing.T, _ *sim.Fabric, s *sim.Station) { enforce(t, s, 2, 0x8005) }, nil, sim.PKeyOutbound, leaf(2)},
		{"P_Key enforced and let through", func(t *testing.T, _ *sim.Fabric, s *sim.Station) { enforce(t, s, 1, 0xFFFF) }, nil, sim.Delivered, atH1},
		{"raw", nil, func(d *sim.Data) { d.Raw = true }, sim.Delivered, atH1},
		{
			"raw past enforcement", func(t *testing.T, _ *sim.Fabric, s *sim.Station) { enforce(t, s, 1, 0x8005) },
			func(d *sim.Data) { d.Raw = true }, sim.Delivered, atH1,
		},
		{"raw filtered", func(t *testing.T, _ *sim.Fabric, s *sim.Station) {
			if status := portSet(t, s, 1, func(pi *mad.PortInfo) { pi.FilterRawInbound = true }, 1); status != mad.StatusOK {
				t.Fatal(status)
			}
		}, func(d *sim.Data) { d.Raw = true }, sim.RawFiltered, leaf(1)},
		{"service level on VL15", func(t *testing.T, _ *sim.Fabric, s *sim.Station) {
			table := mad.SLtoVLMappingTable{}
			for sl := range table.VL {
				table.VL[sl] = ib.VL15
			}
			if status, _ := set(t, s, mad.AttrSLtoVLMappingTable, 1<<8|2, table, 1); status != mad.StatusOK {
				t.Fatal(status)
			}
		}, nil, sim.NoLane, leaf(2)},
		{"longer than the MTU", nil, func(d *sim.Data) { d.Payload = 257 }, sim.TooLong, atSM},
		{"lost at the host", func(t *testing.T, f *sim.Fabric, _ *sim.Station) {
			if err := f.SetFault("h1", sim.Fault{Loss: 1}); err != nil {
				t.Fatal(err)
			}
		}, nil, sim.Faulty, atH1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, s := running(t)
			if tt.setup != nil {
				tt.setup(t, f, s)
			}
			d := plain
			if tt.change != nil {
				tt.change(&d)
			}
			want := sim.Report{Fate: tt.fate, At: tt.at}
			if tt.fate == sim.Delivered {
				want.To = []sim.Endpoint{tt.at}
			}
			got, err := f.Inject(atSM, d)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("want-, got+\n%s", diff)
			}
		})
	}
}

// enforce makes a port of leaf1 enforce a table of one P_Key, both ways.
func enforce(t testing.TB, s *sim.Station, num ib.PortNum, key ib.PKey) {
	t.Helper()
	pkeys(t, s, uint32(num)<<16, []ib.PKey{key}, 1)
	if status := portSet(t, s, num, func(pi *mad.PortInfo) {
		pi.PartitionEnforcementInbound, pi.PartitionEnforcementOutbound = true, true
	}, 1); status != mad.StatusOK {
		t.Fatal(status)
	}
}

// A GMP carries the P_Key at index 0 of its sender.
func TestGMPsAreHeldToPartitions(t *testing.T) {
	f, s := running(t)
	sm := station(t, f, "h1", true)
	gmp := toLID(2, mad.Header{Method: mad.MethodGet, Attr: mad.AttrClassPortInfo})
	gmp.MAD[1], gmp.MAD[2], gmp.QP = byte(mad.ClassSubnAdm), 2, 1
	s.Send(gmp)
	if got := sm.Take(nil); len(got) != 1 {
		t.Fatalf("%d GMPs arrived, want 1", len(got))
	}
	enforce(t, s, 1, 0x8005)
	if got := only(t, s, gmp); !got.Undelivered {
		t.Error("a GMP passed a switch port that enforces another partition")
	}
	if got := sm.Take(nil); len(got) != 0 {
		t.Errorf("%d GMPs arrived", len(got))
	}
}

func TestDataIsCounted(t *testing.T) {
	f, s := running(t)
	before := extended(t, s)
	for range 3 {
		if r, err := f.Inject(atSM, sim.Data{SLID: 1, DLID: 2, PKey: 0xFFFF, Payload: 100, GRH: &sim.GRH{}}); err != nil || r.Fate != sim.Delivered {
			t.Fatalf("%v, %v", r, err)
		}
	}
	// LRH 8, GRH 40, BTH 12, payload 100 and ICRC 4 bytes are 41 words.
	after := extended(t, s)
	if packets, words := after[1]-before[1], after[0]-before[0]; packets != 3 || words != 3*41 {
		t.Errorf("%d packets and %d words counted, want 3 and %d", packets, words, 3*41)
	}
	if got := f.Stats().DataDelivered; got != 3 {
		t.Errorf("%d packets delivered, want 3", got)
	}
}

// extended reads the words and packets that leaf1 port 2 sent. Each reading
// itself goes through port 1 only.
func extended(t testing.TB, s *sim.Station) [2]uint64 {
	t.Helper()
	got := only(t, s, perf(3, mad.MethodGet, 0x1D, 2, 0))
	if got.Undelivered || got.MAD.Status() != mad.StatusOK {
		t.Fatalf("no counters: %v", got.MAD.Status())
	}
	be := func(at int) (v uint64) {
		for _, b := range got.MAD[64+at:][:8] {
			v = v<<8 | uint64(b)
		}
		return v
	}
	return [2]uint64{be(8), be(24)}
}

func TestMulticastData(t *testing.T) {
	f, s := running(t)
	group := sim.Data{SLID: 1, DLID: 0xC000, PKey: 0xFFFF}
	r, err := f.Inject(atSM, group)
	if err != nil || r.Fate != sim.NoRoute || len(r.To) != 0 {
		t.Errorf("without a table: %+v, %v", r, err)
	}
	var table mad.MulticastForwardingTable
	table.PortMask[0] = 1<<0 | 1<<1 | 1<<2 | 1<<3
	if status, _ := set(t, s, mad.AttrMulticastForwardingTable, 0, table, 1); status != mad.StatusOK {
		t.Fatal(status)
	}
	r, err = f.Inject(atSM, group)
	want := []sim.Endpoint{{Node: "leaf1"}, atH1}
	if diff := cmp.Diff(want, r.To); diff != "" || err != nil || r.Fate != sim.Delivered {
		t.Errorf("%v, %v, want-, got+\n%s", r.Fate, err, diff)
	}
	pkeys(t, s, 0, []ib.PKey{0x8005}, 1, 2)
	if r, err = f.Inject(atSM, group); err != nil || len(r.To) != 1 {
		t.Errorf("after h1 left the partition: %+v, %v", r, err)
	}
}

func TestFlow(t *testing.T) {
	f, s := running(t)
	w, err := f.Flow(atSM, atH1, 0xFFFF, sim.FlowOptions{PerTick: 10, EachSet: true})
	if err != nil {
		t.Fatal(err)
	}
	counts := func(want sim.FlowCounts) {
		t.Helper()
		if diff := cmp.Diff(want, w.Counts()); diff != "" {
			t.Errorf("want-, got+\n%s", diff)
		}
	}
	f.Advance(time.Millisecond)
	counts(sim.FlowCounts{Sent: 10, Delivered: 10})
	// Between these Sets packets are lost, which no test sees that looks at the
	// end alone.
	lft(t, s, 2, 9, 1)
	lft(t, s, 2, 2, 1)
	lost := sim.FlowCounts{Sent: 14, Delivered: 12, Lost: 2, Last: sim.Report{Fate: sim.NoRoute, At: sim.Endpoint{Node: "leaf1", Port: 1}}}
	counts(lost)
	w.Stop()
	w.Stop()
	f.Advance(time.Millisecond)
	counts(lost)
}

// An impostor that gets a victim's LID and place is seen by the victim's flow.
func TestFlowStrays(t *testing.T) {
	f, _ := running(t)
	w, err := f.Flow(atSM, atH1, 0xFFFF, sim.FlowOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Swap(sim.Endpoint{Node: "leaf1", Port: 2}, sim.Endpoint{Node: "leaf2", Port: 1}); err != nil {
		t.Fatal(err)
	}
	s := station(t, f, "leaf1", false)
	if err := f.SetLID("h2", 1, 2, 0); err != nil {
		t.Fatal(err)
	}
	toActive(t, s, 2)
	toActive(t, s, 1, 2)
	w.Send(2)
	want := sim.FlowCounts{Sent: 2, Strayed: 2, Last: sim.Report{At: sim.Endpoint{Node: "h2", Port: 1}}}
	if diff := cmp.Diff(want, w.Counts()); diff != "" {
		t.Errorf("want-, got+\n%s", diff)
	}
}

func TestFlowsThatCannotBe(t *testing.T) {
	f := tree(t, sim.Options{})
	for name, ends := range map[string][2]sim.Endpoint{
		"without LIDs":     {atSM, atH1},
		"no such port":     {atSM, {Node: "h1", Port: 7}},
		"port of a switch": {{Node: "leaf1", Port: 1}, atH1},
	} {
		if _, err := f.Flow(ends[0], ends[1], 0xFFFF, sim.FlowOptions{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkFlow(b *testing.B) {
	f, _ := running(b)
	w, err := f.Flow(atSM, atH1, 0xFFFF, sim.FlowOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		w.Send(1)
	}
	if c := w.Counts(); c.Lost != 0 {
		b.Fatalf("%+v", c)
	}
}
