package inform_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/inform"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
)

// TestOnAFabric follows every view of a Subnet Manager on a simulated fabric. A port that appears or disappears is reported
// once to each port that could communicate with it, and to no other port. Reads and writes in between do not change that.
func TestOnAFabric(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 16, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	s, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm", Fabric: sim.Options{Device: sim.Modern()}, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	settle := func() {
		t.Helper()
		s.Run(3 * time.Second)
		if err := s.Settle(2 * time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	s.Start()
	s.Want(sm.Intent{Revision: 1})
	for _, h := range []string{"h1", "h2", "h9"} {
		s.Grant(s.GrantOf(h, 1, tenantA))
	}
	for _, h := range []string{"h3", "h10"} {
		s.Grant(s.GrantOf(h, 1, tenantB))
	}
	settle()

	r := inform.New(inform.Config{})
	b := portindex.New(nil, s.View())
	r.Follow(testbed.Epoch, registry.Of(b))
	var told []string
	s.OnStep = func() {
		v := s.View()
		if v == nil || v == b.View {
			return
		}
		b = portindex.New(b, v)
		now := testbed.Epoch.Add(s.Now())
		_, e := r.Follow(now, registry.Of(b))
		for len(e.Send) > 0 {
			packets := e.Send
			e = inform.Effects{}
			for i := range packets {
				var n mad.ReportNotice
				m := packets[i].MAD
				if err := mad.Decode(m.SAData(), &n); err != nil {
					t.Fatal(err)
				}
				var gid ib.GID
				copy(gid[:], n.DataDetails[6:])
				told = append(told, fmt.Sprintf("%v of %v to %v", uint16(n.TrapNumber), name(l, gid.GUID()), name(l, b.ByLID(packets[i].To.LID).GUID)))
				m.SetMethod(mad.MethodReportResp)
				more := r.Take(now, packets[i].To.LID, &m)
				e.Send = append(e.Send, more.Send...)
			}
		}
	}
	for _, h := range []string{"h1", "h3", "h4", "sm"} {
		at := b.ByGUID(s.GUID(h, 1))
		for _, trap := range []mad.TrapNum{64, 65} {
			info := all(trap)
			if a := r.Set(portindex.Asker{Port: at.Port, As: at.GUID, LID: at.LID, QP: 1}, inform.Address{LID: at.LID, QP: 1}, &info); a.Status != mad.StatusOK {
				t.Fatal(a.Events)
			}
		}
	}
	expect := func(what string, want ...string) {
		t.Helper()
		settle()
		slices.Sort(told)
		slices.Sort(want)
		if !slices.Equal(told, want) {
			t.Errorf("%s: told %q, want %q", what, told, want)
		}
		told = nil
	}
	expect("nothing")
	at := s.SwitchPort("h2", 1)
	if err := s.Fabric.Unlink(at.Node, at.Port); err != nil {
		t.Fatal(err)
	}
	expect("h2 is unplugged", "65 of h2 to h1", "65 of h2 to sm")
	if err := s.Fabric.Relink(at.Node, at.Port, "h2", 1); err != nil {
		t.Fatal(err)
	}
	expect("h2 is plugged in", "64 of h2 to h1", "64 of h2 to sm")
	s.Withdraw(s.GrantOf("h2", 1, tenantA))
	expect("h2 is taken from its tenant", "65 of h2 to h1")
	s.Grant(s.GrantOf("h2", 1, tenantB))
	expect("h2 is another's", "64 of h2 to h3")
	if err := s.Fabric.Reboot("h10"); err != nil {
		t.Fatal(err)
	}
	settle()
	for _, line := range told {
		if line != "65 of h10 to h3" && line != "64 of h10 to h3" && line != "65 of h10 to sm" && line != "64 of h10 to sm" {
			t.Errorf("h10 restarts: told %q", line)
		}
	}
	told = nil
	spine := l.Find(at.Node).Ports[8].Peer
	if err := s.Fabric.Reboot(spine); err != nil {
		t.Fatal(err)
	}
	settle()
	for _, line := range told {
		if !slices.Contains([]string{"65 of " + spine + " to sm", "64 of " + spine + " to sm"}, line) {
			t.Errorf("a spine restarts: told %q", line)
		}
	}
}

// name is the node of a netlist that has a port GUID.
func name(l *netlist.Netlist, g ib.GUID) string {
	for i := range l.Nodes {
		n := &l.Nodes[i]
		for p := range n.Ports {
			if n.PortGUID(ib.PortNum(p)) == g {
				return n.Name
			}
		}
	}
	return g.String()
}
