package sm_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestNoLIDOfAMemberIsGivenAway: while every LID belongs to an end port, one that has a membership and is out of sight
// keeps its own. Before the first intent, every end port may have one.
func TestNoLIDOfAMemberIsGivenAway(t *testing.T) {
	l := tree(t, 4, 4)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1, IntentWait: time.Hour}, 1)
	const absent = ib.GUID(0xFEED0000)
	in := sm.Intent{Revision: 1}
	for lid := ib.MinUnicastLID; lid <= ib.MaxUnicastLID; lid++ {
		e.facts = append(e.facts, sm.Fact{Kind: sm.FactLID, GUID: absent + ib.GUID(lid), LID: lid})
		if lid <= 100 {
			in.Grants = append(in.Grants, sm.Grant{GUID: absent + ib.GUID(lid), PKey: 0x8001, Place: ib.Place{Switch: 0x99, Port: ib.PortNum(lid)}})
		}
	}
	e.start()
	e.run(time.Minute)
	for guid, lid := range owners(t, e.facts) {
		if guid != absent+ib.GUID(lid) {
			t.Fatalf("before the first intent, LID %v of a port out of sight is given to %v", lid, guid)
		}
	}
	e.want(in)
	e.mustSettle(time.Minute)
	have := owners(t, e.facts)
	for _, g := range in.Grants {
		if have[g.GUID] == 0 {
			t.Errorf("the LID of %v, which has a membership, is given away", g.GUID)
		}
	}
	for _, h := range hosts(l) {
		if lid := e.fab.PortInfo(h.node.Name, h.num).LID; lid == 0 || have[h.node.PortGUID(h.num)] != lid {
			t.Errorf("%s has LID %v, saved is %v", h.node.Name, lid, have[h.node.PortGUID(h.num)])
		}
	}
}

// TestBlindIsNotSettled: a Subnet Manager that sees its own node alone, and knew others, reports the fabric as settled
// neither when its cable is pulled nor when it is started without. Back, it changes nothing.
func TestBlindIsNotSettled(t *testing.T) {
	e := newEnv(t, tree(t, 8, 8), sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	had := owners(t, e.facts)
	own := e.list.Find("sm")
	out := func() {
		t.Helper()
		e.takeEvents()
		e.run(5 * time.Minute)
		if e.view == nil || e.view.Settled || slices.ContainsFunc(e.takeEvents(), func(ev sm.Event) bool { _, ok := ev.(*sm.Settled); return ok }) {
			t.Error("the fabric is reported as settled, and one node is in sight")
		}
	}
	if err := e.fab.Unlink("sm", 1); err != nil {
		t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
	out()
	e.start()
	out()
	if err := e.fab.Relink("sm", 1, own.Ports[1].Peer, own.Ports[1].PeerPort); err != nil {
		t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
	sets := e.sets()
	e.mustSettle(5 * time.Minute)
	for guid, lid := range owners(t, e.facts) {
		if had[guid] != lid {
			t.Errorf("port %v had LID %v and has %v", guid, had[guid], lid)
		}
	}
	t.Logf("%d Sets", e.sets()-sets)
}
