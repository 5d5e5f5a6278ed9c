package sm_test

import (
	"maps"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// countRenewals counts by LID the Sets that ask clients to renew what they
// registered.
func countRenewals(e *env) map[ib.LID]int {
	asked := map[ib.LID]int{}
	e.logSend = func(r *sm.Request) {
		var pi mad.PortInfo
		if r.MAD.Attr() == mad.AttrPortInfo && r.MAD.Method() == mad.MethodSet && mad.Decode(r.MAD.Data(), &pi) == nil && pi.ClientReregister {
			asked[pi.LID]++
		}
	}
	return asked
}

func TestClientReregistration(t *testing.T) {
	l := tree(t, 16, 8)
	hs := hosts(l)
	key := ib.NewSMKey(7)
	cfg := sm.Config{SMKey: key, Priority: 5, AuditPeriod: -1}
	e := newEnv(t, l, sim.Options{}, cfg, 1)
	asked := countRenewals(e)
	all := func(n int) map[ib.LID]int {
		want := map[ib.LID]int{}
		for i := range l.Nodes {
			if node := &l.Nodes[i]; node.Type == ib.NodeCA && n > 0 {
				want[e.fab.PortInfo(node.Name, 1).LID] = n
			}
		}
		return want
	}
	check := func(what string, want map[ib.LID]int) {
		t.Helper()
		if !maps.Equal(asked, want) {
			t.Errorf("%s: asked %v, want %v", what, asked, want)
		}
		clear(asked)
	}
	one := func(h *endPort) map[ib.LID]int { return map[ib.LID]int{e.fab.PortInfo(h.node.Name, 1).LID: 1} }

	e.start()
	e.mustSettle(10 * time.Second)
	check("bring-up", all(1))

	e.start()
	e.mustSettle(10 * time.Second)
	check("restart", all(0))

	if err := e.fab.Reboot(hs[3].node.Name); err != nil {
		t.Fatal(err)
	}
	e.run(2 * time.Second)
	e.mustSettle(10 * time.Second)
	check("host rebooted", one(&hs[3]))

	if err := e.fab.Unlink(hs[4].node.Name, 1); err != nil {
		t.Fatal(err)
	}
	e.run(time.Second)
	if err := e.fab.Relink(hs[4].node.Name, 1, hs[4].peer, hs[4].pnum); err != nil {
		t.Fatal(err)
	}
	e.run(time.Second)
	e.mustSettle(10 * time.Second)
	check("cable pulled and put back", one(&hs[4]))

	e.cfg.Prefix = 0xFE80_0000_0000_0001
	e.start()
	e.mustSettle(10 * time.Second)
	check("another subnet prefix", all(1))

	e.cfg.Ports.NoReregister, e.cfg.Prefix = true, 0
	e.start()
	e.mustSettle(10 * time.Second)
	check("switched off", all(0))
}

// TestClientReregistrationAfterAnotherMaster: registrations of clients with the previous master are lost.
func TestClientReregistrationAfterAnotherMaster(t *testing.T) {
	l := tree(t, 16, 8)
	hs := hosts(l)
	key := ib.NewSMKey(7)
	e := newEnv(t, l, sim.Options{}, sm.Config{SMKey: key, Priority: 5}, 1)
	asked := countRenewals(e)
	e.start()
	e.mustSettle(10 * time.Second)
	clear(asked)

	other := e.addRogue(hs[0].node.Name, mad.SMInfo{SMKey: key, Priority: 9, SMState: ib.SMMaster})
	e.start()
	e.run(5 * time.Second)
	if e.view.State != ib.SMStandby || len(asked) > 0 {
		t.Fatalf("beside a master of higher rank: %v, asked %v", e.view.State, asked)
	}
	other.says.SMState = ib.SMStandby
	other.says.Priority = 1
	e.run(5 * time.Second)
	e.mustSettle(20 * time.Second)
	if len(asked) != 16 {
		t.Errorf("%d ports were asked, want each of 16 CAs: %v", len(asked), asked)
	}
	for lid, n := range asked {
		if n != 1 {
			t.Errorf("LID %v was asked %d times", lid, n)
		}
	}
}
