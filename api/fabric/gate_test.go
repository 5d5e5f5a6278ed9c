package fabric_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

func TestGateOpensAndCloses(t *testing.T) {
	s := newSite(t)
	red, blue := s.cluster("red"), s.cluster("blue")
	s.provision("host-1", "red")
	s.provision("host-2", "blue")
	h := s.until("host-1", v1.PhaseAdmitted)
	if h.Status.PKey != red || !slices.Equal(h.HCAs[1].Ports[0].PKeys, []ib.PKey{red}) {
		t.Errorf("host-1 shows P_Key %v and %v, want %v", h.Status.PKey, h.HCAs[1].Ports[0].PKeys, red)
	}
	s.until("host-2", v1.PhaseAdmitted)
	s.check("host-1", red.Full())
	s.check("host-2", blue.Full())
	s.check("host-3")

	if _, err := s.svc.Release(t.Context(), "alice", "host-1"); err != nil {
		t.Fatal(err)
	}
	s.until("host-1", v1.PhaseQuarantined)
	s.check("host-1")
	s.check("host-2", blue.Full())

	s.provision("host-1", "blue")
	s.until("host-1", v1.PhaseAdmitted)
	s.check("host-1", blue.Full())
	if err := s.svc.Tenancy().DeleteCluster(t.Context(), "alice", "red"); err != nil {
		t.Fatal(err)
	}
	if q, err := s.svc.Tenancy().QuarantinedPKeys(t.Context(), v1.PageQuery{}); err != nil || len(q.Items) != 0 {
		t.Errorf("quarantined P_Keys %+v, %v, want none: red's was proven absent", q, err)
	}
}

// A cable that is out takes nothing from the other rail, and nothing from the port behind it.
func TestPortThatIsNotSeenKeepsItsGrant(t *testing.T) {
	s := newSite(t)
	red := s.cluster("red")
	s.provision("host-1", "red")
	s.until("host-1", v1.PhaseAdmitted)

	hca := s.node(s.hcas["host-1"][0])
	s.unplug(hca)
	h := s.untilGuard("host-1", seenGuard, false)
	if g := h.Status.Guards[seenGuard]; h.Status.Phase != v1.PhaseAdmitted || !strings.Contains(g.Detail, hca.PortGUID(1).String()) {
		t.Errorf("host-1 is %s with guard %+v, want that it is admitted, and that the guard names the port that is gone", h.Status.Phase, g)
	}
	s.check("host-1", red.Full())
	s.plug(hca, hca)
	s.untilGuard("host-1", seenGuard, true)
	s.until("host-1", v1.PhaseAdmitted)
	s.check("host-1", red.Full())
}

// While the subnet manager's own cable is out, it is blind and no host is seen. Nothing is withdrawn. When the cable is
// back, it writes only the P_Key tables of the two ends of that cable, whose link was configured again.
func TestBlindManagerWithdrawsNothing(t *testing.T) {
	s := newSite(t)
	red := s.cluster("red")
	for _, id := range []string{"host-1", "host-2"} {
		s.provision(id, "red")
		s.until(id, v1.PhaseAdmitted)
	}
	s.untilSM(func(sm *v1.SM) bool { return sm.Settled && sm.Sight.State == v1.SightClear })
	own := s.node("sm")
	s.unplug(own)
	s.untilSM(func(sm *v1.SM) bool { return sm.Sight.State == v1.SightBlind && !sm.Settled })
	before := s.sim.Sets()["sm"].Tables
	for _, id := range []string{"host-1", "host-2"} {
		if h := s.untilGuard(id, seenGuard, false); h.Status.Phase != v1.PhaseAdmitted {
			t.Errorf("%s is %s while the subnet manager sees nobody", id, h.Status.Phase)
		}
		s.check(id, red.Full())
	}
	s.plug(own, own)
	for _, id := range []string{"host-1", "host-2"} {
		s.untilGuard(id, seenGuard, true)
		s.until(id, v1.PhaseAdmitted)
		s.check(id, red.Full())
	}
	s.untilSM(func(sm *v1.SM) bool { return sm.Settled && sm.Sight.State == v1.SightClear })
	ends := []sim.Endpoint{{Node: own.Name, Port: 1}, {Node: own.Ports[1].Peer, Port: own.Ports[1].PeerPort}}
	for port, n := range s.sim.Sets()["sm"].Tables {
		if n != before[port] && !slices.Contains(ends, port) {
			t.Errorf("%d blocks of the P_Key table of %v were written after the subnet manager saw again, want only those of %v", n-before[port], port, ends)
		}
	}
}

// A port plugged in at the place of a port that is not seen gets nothing of what that port keeps.
func TestAnotherPortAtAKeptPlaceGetsNothing(t *testing.T) {
	s := newSite(t)
	red := s.cluster("red")
	s.provision("host-1", "red")
	s.until("host-1", v1.PhaseAdmitted)
	hca, other := s.node(s.hcas["host-1"][0]), s.node(s.hcas["host-2"][0])
	s.unplug(hca, other)
	s.untilGuard("host-1", seenGuard, false)
	s.checkSwitch("host-1", red.Full())
	s.plug(other, hca)
	s.untilSeen("host-2", s.place(hca))
	s.untilActive(other)
	if got := tenants(s.sim.PKeys(hca.Ports[1].Peer, hca.Ports[1].PeerPort)); len(got) != 0 {
		t.Errorf("the switch port holds %v for an adapter that is not host-1's, want nothing", got)
	}
	if got := tenants(s.sim.PKeys(other.Name, 1)); len(got) != 0 {
		t.Errorf("the adapter that is not host-1's holds %v, want nothing", got)
	}
}

// A port of an admitted host that is plugged in elsewhere is seen there and
// stays out.
func TestPortAtAnotherPlaceStaysOut(t *testing.T) {
	s := newSite(t)
	s.cluster("red")
	s.provision("host-1", "red")
	s.until("host-1", v1.PhaseAdmitted)
	hca, other := s.node(s.hcas["host-1"][0]), s.node(s.hcas["host-2"][0])
	s.unplug(hca, other)
	s.plug(hca, other)
	s.untilSeen("host-1", s.place(other))
	s.untilGuard("host-1", seenGuard, false)
	s.until("host-1", v1.PhaseAdmitted) // by its other port, after this one's P_Key is proven absent
	home := s.node(s.hcas["host-1"][0]).Ports[1]
	if got := tenants(s.sim.PKeys(home.Peer, home.PeerPort)); len(got) != 0 {
		t.Errorf("the switch port where it was holds %v, want nothing", got)
	}
	if got := tenants(s.sim.PKeys(other.Ports[1].Peer, other.Ports[1].PeerPort)); len(got) != 0 {
		t.Errorf("the other switch port holds %v, want nothing", got)
	}
}

// A service that starts again over the same store and fabric finds all hosts admitted and writes no P_Key table.
func TestRestartProgramsNothing(t *testing.T) {
	s := newSite(t)
	red := s.cluster("red")
	s.provision("host-1", "red")
	s.provision("host-2", "red")
	s.until("host-1", v1.PhaseAdmitted)
	s.until("host-2", v1.PhaseAdmitted)
	s.untilSM(func(sm *v1.SM) bool { return sm.Settled })
	s.stop()
	s.start()
	began := time.Now()
	sm := s.untilSM(func(sm *v1.SM) bool { return sm.Settled && sm.Revision > 0 && sm.Updated.After(began) })
	for kind, n := range sm.SMPs {
		if strings.HasPrefix(kind, "Set") && strings.Contains(kind, "PKey") && n > 0 {
			t.Errorf("%d %s after a restart, want none", n, kind)
		}
	}
	for _, id := range []string{"host-1", "host-2"} {
		if p := s.until(id, v1.PhaseAdmitted); p.Status.PKey != red {
			t.Errorf("host %s has P_Key %v, want %v", id, p.Status.PKey, red)
		}
		s.check(id, red.Full())
	}
}

// Released while its cables are out, a host is out as soon as the switch
// ports are; its P_Key rests until the HCAs could be asked.
func TestReleaseOfAnUnreachableHost(t *testing.T) {
	s := newSite(t)
	s.cluster("red")
	s.provision("host-1", "red")
	s.until("host-1", v1.PhaseAdmitted)
	for _, name := range s.hcas["host-1"] {
		if err := s.sim.Unlink(name, 1); err != nil {
			t.Fatal(err)
		}
	}
	s.untilGuard("host-1", seenGuard, false)
	if _, err := s.svc.Release(t.Context(), "alice", "host-1"); err != nil {
		t.Fatal(err)
	}
	s.until("host-1", v1.PhaseQuarantined)
	s.checkSwitch("host-1")
	if err := s.svc.Tenancy().DeleteCluster(t.Context(), "alice", "red"); err != nil {
		t.Fatal(err)
	}
	q, err := s.svc.Tenancy().QuarantinedPKeys(t.Context(), v1.PageQuery{})
	if err != nil || len(q.Items) != 1 || len(q.Items[0].Waiting) != 2 || !strings.Contains(q.Items[0].Waiting[0], "HCA") {
		t.Fatalf("quarantined P_Keys %+v, %v, want one that waits for two HCAs", q, err)
	}
	if next := s.cluster("blue"); next == q.Items[0].PKey {
		t.Errorf("cluster blue got %v, which is not proven absent", next)
	}
	for _, name := range s.hcas["host-1"] {
		n := s.node(name)
		if err := s.sim.Relink(name, 1, n.Ports[1].Peer, n.Ports[1].PeerPort); err != nil {
			t.Fatal(err)
		}
	}
	s.untilNoQuarantine()
	s.check("host-1")
}

func TestFabricIsShown(t *testing.T) {
	s := newSite(t)
	s.untilSM(func(sm *v1.SM) bool { return sm.Settled })
	f, err := s.svc.Fabric(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Summary.Switches != 4 || f.Summary.CAs != 9 || f.Summary.Links == 0 || f.Summary.ActivePorts != 2*f.Summary.Links {
		t.Errorf("summary %+v, want 4 switches, 9 CAs and every linked port active", f.Summary)
	}
	owned := 0
	for _, n := range f.Nodes {
		if n.Host != "" {
			owned++
		}
	}
	if owned != 8 {
		t.Errorf("%d nodes have a host's name, want 8", owned)
	}
}
