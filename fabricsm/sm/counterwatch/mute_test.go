package counterwatch_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/testbed"
)

// mutePeriod is how often the tests have counters of mute switches read.
const mutePeriod = 10 * time.Second

// everySwitch has all switches of a fabric be mute.
var everySwitch = []string{"all"}

// startMute is start with two tenants, on switches of which some send no trap 259.
func startMute(t *testing.T, hosts int, mute []string, period time.Duration) *watched {
	t.Helper()
	all := slices.Equal(mute, everySwitch)
	if all {
		mute = nil
	}
	l, err := netlist.FatTree2(netlist.Shape{Hosts: hosts, Radix: max(8, hosts/8)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := testbed.New(testbed.Options{
		Netlist: l, Manager: "sm", Fabric: sim.Options{LoseSilently: true, Device: sim.Device{NoPKeyTraps: all}}, Seed: 1,
		SM: sm.Config{Counters: sm.CountersConfig{Mute: period}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Stage: s, t: t}
	for _, n := range mute {
		if err := s.Fabric.SetDevice(n, sim.Device{NoPKeyTraps: true}); err != nil {
			t.Fatal(err)
		}
		if err := s.Fabric.Reboot(n); err != nil {
			t.Fatal(err)
		}
	}
	s.OnSend = func(r *sm.Request) bool {
		if r.MAD.Class() == mad.ClassPerf {
			w.sent++
		}
		return false
	}
	s.Start()
	s.Want(sm.Intent{Revision: 1, Grants: []sm.Grant{s.GrantOf("h1", 1, 0x8001), s.GrantOf("h2", 1, 0x8002)}})
	if err := s.Settle(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	w.Run(2 * mutePeriod)
	return w
}

// wrong has h1 send packets with the P_Key of another tenant.
func (w *watched) wrong(n int) {
	w.t.Helper()
	for range n {
		r, err := w.Fabric.Inject(sim.Endpoint{Node: "h1", Port: 1}, sim.Data{
			SLID: w.Fabric.PortInfo("h1", 1).LID, DLID: w.Fabric.PortInfo("h2", 1).LID, PKey: 0x8002, DestQP: 2, Payload: 256,
		})
		if err != nil || r.Fate != sim.PKeyInbound {
			w.t.Fatalf("a packet of h1 ends as %v: %v", r.Fate, err)
		}
	}
	w.Collect()
}

// rows are the violations that the view shows.
func (w *watched) rows() []violation.Violation {
	w.Run(2 * time.Second)
	v := w.View().Violations
	if v == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.Rows), func(r violation.Violation) bool { return r.Kind == violation.LinkState })
}

// TestMute: packets that a mute switch has refused are one violation at the place of the host. They are counted exactly as
// long as the counter does not overflow between two reads, and reported within a period. Nothing else is written, and no
// reset is reported.
func TestMute(t *testing.T) {
	w := startMute(t, 8, []string{"leaf1"}, mutePeriod)
	port := w.SwitchPort("h1", 1)
	if port.Node != "leaf1" {
		t.Fatalf("h1 is at %v", port)
	}
	if rows := w.rows(); len(rows) != 0 {
		t.Fatalf("violations before there was one: %+v", rows)
	}
	mark, all := w.Mark(), 0
	before := w.Fabric.PacketsSent("leaf1", port.Port)
	for _, n := range []int{1, 90, 60, 200, 200, 3} { // more than 8 bits hold
		w.wrong(n)
		all += n
		w.Run(mutePeriod + time.Second)
	}
	rows := w.rows()
	if len(rows) != 1 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	r := rows[0]
	want := violation.Violation{
		ID: r.ID, Kind: violation.BadPKey, Place: w.Place("h1", 1), GUID: w.GUID("h1", 1), LID: w.Fabric.PortInfo("h1", 1).LID, By: violation.ByPort,
		Reporter: w.GUID("leaf1", 0), ReporterPlace: w.Place("h1", 1), Detail: "counted by the switch port, with raw packets",
		Verdict: violation.Confirmed, Count: uint64(all), Counted: uint64(all), First: r.First, Last: r.Last,
	}
	if r != want {
		t.Errorf("row %+v\nwant %+v", r, want)
	}
	if n := w.View().Violations.Totals[violation.BadPKey]; n.Reported != uint64(all) || n.Confirmed != uint64(all) || n.Counted != uint64(all) {
		t.Errorf("totals %+v, want %d of each", n, all)
	}
	if in, _ := w.Fabric.ConstraintErrors(port.Node, port.Port); in == 255 {
		t.Errorf("the counter stays at %d", in)
	}
	if w.Fabric.PacketsSent("leaf1", port.Port) < before {
		t.Error("other counters were cleared")
	}
	loud := 0
	for _, h := range w.Since(mark) {
		switch e := h.Event.(type) {
		case *violation.Violation:
			if !e.Quiet {
				loud++
			}
			if text := e.String(); !strings.Contains(text, "which has counted it") {
				t.Errorf("told %q", text)
			}
		case *sm.CountersReset, *violation.TrapReceived, *health.Unhealthy, *sm.MembershipRemoved:
			t.Errorf("told %v", h.Event)
		}
	}
	if loud == 0 || loud > 8 {
		t.Errorf("the log has %d lines, want some", loud)
	}
}

// TestMuteIsTold: that switches are mute is reported once in the life of a manager, and shown
// by views. Switches that send trap 259 are not read.
func TestMuteIsTold(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mute   []string
		period time.Duration
		read   bool
	}{
		{"none", nil, mutePeriod, false},
		{"one", []string{"leaf2"}, mutePeriod, true},
		{"one, never read", []string{"leaf2"}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := startMute(t, 8, tt.mute, tt.period)
			w.Grant(w.GrantOf("h3", 1, 0x8003)) // so that it is settled once more
			if err := w.Settle(10 * time.Second); err != nil {
				t.Fatal(err)
			}
			told := 0
			for _, h := range w.Since(0) {
				if e, ok := h.Event.(*sm.SwitchesMute); ok {
					told++
					if len(e.Switches) != 1 || e.Switches[0] != w.List.Find("leaf2").GUID || e.All != 3 || e.Read != tt.read {
						t.Errorf("told %+v", e)
					}
				}
			}
			if told != len(tt.mute) || len(w.View().MuteSwitches()) != len(tt.mute) {
				t.Errorf("told %d times, the view shows %v", told, w.View().MuteSwitches())
			}
			if (w.sent > 0) != tt.read {
				t.Errorf("%d requests", w.sent)
			}
			if w.Err() != nil {
				t.Error(w.Err())
			}
		})
	}
}

// TestMuteCost: each port in front of an adapter is read once a period, and no more than
// 200 of them in a second.
func TestMuteCost(t *testing.T) {
	for _, tt := range []struct {
		hosts  int
		period time.Duration
		want   int // in ten seconds
	}{{9, mutePeriod, 10}, {9, 5 * time.Second, 20}, {9, time.Second, 100}, {300, time.Second, 2000}} {
		w := startMute(t, tt.hosts, everySwitch, tt.period)
		before := w.sent
		w.Run(10 * time.Second)
		if got := w.sent - before; got < tt.want-tt.want/5 || got > tt.want+1 {
			t.Errorf("%d hosts, period %v: %d requests in 10 s, want %d", tt.hosts, tt.period, got, tt.want)
		}
	}
}

// TestMuteAnotherHost: where another adapter came since the last read, the place is
// accused and no adapter.
func TestMuteAnotherHost(t *testing.T) {
	w := startMute(t, 8, []string{"leaf1"}, mutePeriod)
	w.Run(mutePeriod)
	w.wrong(5)
	if err := w.Fabric.PowerOff("h1"); err != nil {
		t.Fatal(err)
	}
	w.Collect()
	if err := w.Fabric.SetGUIDs("h1", 0xABC0, 0xABC1); err != nil {
		t.Fatal(err)
	}
	if err := w.Fabric.PowerOn("h1"); err != nil {
		t.Fatal(err)
	}
	w.Collect()
	w.Run(2 * mutePeriod)
	rows := w.rows()
	if len(rows) != 1 || rows[0].Place != w.Place("h1", 1) || rows[0].GUID != 0 || rows[0].Count != 5 {
		t.Errorf("rows %+v, want one of the place alone", rows)
	}
}

// TestMuteNotCleared: a switch that does not let the counter be cleared is no reason for
// violations that were none.
func TestMuteNotCleared(t *testing.T) {
	w := startMute(t, 8, []string{"leaf1"}, mutePeriod)
	count := w.OnSend
	w.OnSend = func(r *sm.Request) bool {
		if r.MAD.Class() == mad.ClassPerf && r.MAD.Method() == mad.MethodSet {
			r.MAD.SetMethod(mad.MethodGet) // its answer is what such a switch says
		}
		return count(r)
	}
	w.wrong(300)
	w.Run(5 * mutePeriod)
	if rows := w.rows(); len(rows) != 1 || rows[0].Count != 255 {
		t.Errorf("rows %+v, want 255 packets", rows)
	}
}
