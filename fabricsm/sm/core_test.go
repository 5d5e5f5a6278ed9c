package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

func tree(t testing.TB, hosts, radix int) *netlist.Netlist {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: hosts, Radix: radix})
	return list(t, l, err)
}

func TestBringUpOfAKeepingFabric(t *testing.T) {
	l := tree(t, 16, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	if bad := inactive(e.view); len(bad) > 0 {
		t.Errorf("not Active: %v", bad)
	}
	if len(e.problems()) > 0 {
		t.Errorf("problems: %q", e.problems())
	}
	for _, h := range hosts(l) {
		pi := e.fab.PortInfo(h.peer, h.pnum)
		if !pi.PartitionEnforcementInbound || !pi.PartitionEnforcementOutbound {
			t.Errorf("switch port %v does not enforce", h.place)
		}
		if k := e.fab.PKeys(h.node.Name, h.num); len(k) != 1 || k[0] != ib.DefaultPKeyLimited {
			t.Errorf("host %s holds %v", h.node.Name, k)
		}
	}
	if k := e.fab.PKeys("sm", 1); len(k) != 1 || k[0] != ib.DefaultPKeyFull {
		t.Errorf("the subnet manager's port holds %v", k)
	}
	before := e.sets()
	e.run(2 * time.Second)
	e.start()
	e.mustSettle(10 * time.Second)
	if n := e.sets() - before; n != 0 {
		t.Errorf("restart wrote %d times: %v", n, e.smps)
	}
	for _, ev := range e.events {
		t.Log(ev)
	}
	t.Log(e.smps)
}
