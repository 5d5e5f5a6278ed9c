package sim_test

import (
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport"
)

// traps empties an inbox and returns the traps in it.
func traps(t testing.TB, s *sim.Station) (numbers []mad.TrapNum, packets []transport.Packet) {
	t.Helper()
	for _, p := range s.Take(nil) {
		var n mad.Notice
		if p.MAD.Method() != mad.MethodTrap {
			t.Fatalf("the SM received %v %v", p.MAD.Method(), p.MAD.Attr())
		}
		if err := mad.Decode(p.MAD.Data(), &n); err != nil {
			t.Fatal(err)
		}
		numbers, packets = append(numbers, n.TrapNumber), append(packets, p)
	}
	return numbers, packets
}

func TestLinkTraps(t *testing.T) {
	f := tree(t, sim.Options{})
	sm := station(t, f, "sm", true)
	forward(t, sm)
	if err := f.Unlink("h1", 1); err != nil {
		t.Fatal(err)
	}
	numbers, packets := traps(t, sm)
	if len(numbers) != 1 || numbers[0] != mad.TrapLinkStateChange || packets[0].LID != 3 {
		t.Fatalf("traps after Unlink: %v", numbers)
	}
	if got := f.PortInfo("leaf1", 2).PortState; got != ib.PortDown {
		t.Errorf("the port of the leaf is %v", got)
	}
	if !get[mad.SwitchInfo](t, sm, mad.AttrSwitchInfo, 0, 1).PortStateChange {
		t.Error("PortStateChange is not set")
	}

	f.Advance(2 * time.Second)
	again, _ := traps(t, sm)
	if len(again) == 0 {
		t.Error("the trap was not repeated")
	}
	packets[0].MAD.Respond(mad.StatusOK)
	sm.Send(packets[0])
	f.Advance(time.Minute)
	if late, _ := traps(t, sm); len(late) != 0 {
		t.Errorf("%d traps after TrapRepress", len(late))
	}

	if err := f.Relink("h1", 1, "leaf1", 2); err != nil {
		t.Fatal(err)
	}
	if numbers, _ = traps(t, sm); len(numbers) != 1 || numbers[0] != mad.TrapLinkStateChange {
		t.Errorf("traps after Relink: %v", numbers)
	}
	f.Advance(time.Hour)
	if numbers, _ = traps(t, sm); len(numbers) == 0 || len(numbers) > 10 {
		t.Errorf("a trap nobody repressed was repeated %d times", len(numbers))
	}
	if at, more := f.NextEvent(); more {
		t.Errorf("something still waits, for %v", at)
	}
}

func TestLocalChangeTraps(t *testing.T) {
	f := tree(t, sim.Options{})
	sm := station(t, f, "sm", true)
	forward(t, sm)
	host := station(t, f, "h1", true)
	for _, change := range []struct {
		name string
		do   func()
		want int
	}{
		{"IsSM set", func() { host.SetIsSM(true) }, 1},
		{"IsSM set again", func() { host.SetIsSM(true) }, 0},
		{"the SM goes away", host.Close, 1},
		{"description", func() {
			if err := f.SetNodeDescription("h1", "another"); err != nil {
				t.Fatal(err)
			}
		}, 1},
	} {
		change.do()
		numbers, _ := traps(t, sm)
		if len(numbers) != change.want || change.want == 1 && numbers[0] != mad.TrapLocalChange {
			t.Errorf("%s: traps %v, want %d", change.name, numbers, change.want)
		}
	}
	// From another host, so that its answer does not come between the traps.
	other := station(t, f, "h2", false)
	if status := portSet(t, other, 1, func(pi *mad.PortInfo) { pi.LinkWidthEnabled = 1 }, 1, 3, 1, 2); status != mad.StatusOK {
		t.Fatal(status)
	}
	if numbers, _ := traps(t, sm); len(numbers) != 1 || numbers[0] != mad.TrapLocalChange {
		t.Errorf("traps after a change of width: %v", numbers)
	}
}

func TestReboot(t *testing.T) {
	f := tree(t, sim.Options{})
	sm := station(t, f, "sm", true)
	forward(t, sm)
	activate(t, sm)
	sm.Take(nil)
	if err := f.Reboot("h1"); err != nil {
		t.Fatal(err)
	}
	if pi := f.PortInfo("h1", 1); pi.LID != 0 || pi.PortState != ib.PortInit {
		t.Errorf("after a reboot the port is %v with LID %v", pi.PortState, pi.LID)
	}
	if numbers, _ := traps(t, sm); len(numbers) == 0 {
		t.Error("the leaf sent no trap")
	}
	if err := f.Reboot("leaf1"); err != nil {
		t.Fatal(err)
	}
	if got := f.Egress("leaf1", 2); got != ib.NoPort {
		t.Errorf("the rebooted leaf still sends LID 2 to port %d", got)
	}
}

func TestFaults(t *testing.T) {
	ask := directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo, TID: 1}, 1, 2)
	through := directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo, TID: 2}, 1, 3)
	for _, tt := range []struct {
		name      string
		node      string
		fault     sim.Fault
		p         transport.Packet
		at, later int // packets that come back at once, and after a second
	}{
		{"silent host", "h1", sim.Fault{Silent: true}, ask, 0, 0},
		{"silent leaf still forwards", "leaf1", sim.Fault{Silent: true}, ask, 1, 1},
		{"lost", "h1", sim.Fault{Loss: 1}, ask, 0, 0},
		{"lost elsewhere", "h1", sim.Fault{Loss: 1}, through, 1, 1},
		{"lost everywhere", "", sim.Fault{Loss: 1}, through, 0, 0},
		{"twice", "h1", sim.Fault{Duplicate: 1}, ask, 2, 2},
		{"late", "h1", sim.Fault{Delay: time.Second}, ask, 0, 1},
		{"late both ways", "", sim.Fault{Delay: time.Second / 2}, ask, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{LoseSilently: true})
			if err := f.SetFault(tt.node, tt.fault); err != nil {
				t.Fatal(err)
			}
			s := station(t, f, "sm", false)
			got := s.Exchange([]transport.Packet{tt.p}, nil)
			if len(got) != tt.at {
				t.Errorf("%d packets at once, want %d", len(got), tt.at)
			}
			f.Advance(time.Second)
			if got = s.Take(got); len(got) != tt.later {
				t.Errorf("%d packets in the end, want %d", len(got), tt.later)
			}
		})
	}
}

func TestCablesAndNodesThatAreNotThere(t *testing.T) {
	f := tree(t, sim.Options{})
	if err := f.Unlink("h1", 1); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"unlink twice":          {f.Unlink("h1", 1), `unlink: port 1 of "h1" has no cable`},
		"unlink unknown node":   {f.Unlink("h9", 1), `unlink: unknown node: "h9"`},
		"unlink unknown port":   {f.Unlink("h1", 3), `unlink: "h1" has no port 3`},
		"relink to a used port": {f.Relink("h1", 1, "leaf1", 1), `relink: port 1 of "leaf1" cannot take the cable`},
		"relink to itself":      {f.Relink("h1", 1, "h1", 1), `relink: port 1 of "h1" cannot take the cable`},
		"relink to port 0":      {f.Relink("h1", 1, "leaf1", 0), `relink: port 0 of "leaf1" cannot take the cable`},
		"reboot unknown node":   {f.Reboot("h9"), `reboot: unknown node: "h9"`},
		"fault of unknown node": {f.SetFault("h9", sim.Fault{}), `set fault: unknown node: "h9"`},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, tt.err, tt.want)
		}
	}
	s := station(t, f, "sm", false)
	if in := only(t, s, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1, 2)); !in.Undelivered {
		t.Error("a packet crossed a port without a cable")
	}
}

func TestMovedHost(t *testing.T) {
	f := tree(t, sim.Options{})
	for _, node := range []string{"h1", "h2"} {
		if err := f.Unlink(node, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Relink("h1", 1, "leaf2", 1); err != nil {
		t.Fatal(err)
	}
	if err := f.SetGUIDs("h1", 0x77, 0x78); err != nil {
		t.Fatal(err)
	}
	ni := get[mad.NodeInfo](t, station(t, f, "sm", false), mad.AttrNodeInfo, 0, 1, 3, 3, 1)
	if ni.NodeGUID != 0x77 || ni.PortGUID != 0x78 || ni.SystemImageGUID != 0x78 {
		t.Errorf("at the new place: node %v, port %v, system %v", ni.NodeGUID, ni.PortGUID, ni.SystemImageGUID)
	}
}
