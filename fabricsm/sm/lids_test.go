package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

// owners returns the saved LID of each GUID.
func owners(t *testing.T, facts []sm.Fact) map[ib.GUID]ib.LID {
	t.Helper()
	byGUID, byLID := make(map[ib.GUID]ib.LID), make(map[ib.LID]ib.GUID)
	for _, f := range facts {
		if f.Kind != sm.FactLID {
			continue
		}
		delete(byLID, byGUID[f.GUID])
		delete(byGUID, f.GUID)
		if f.LID == 0 {
			continue
		}
		if other, ok := byLID[f.LID]; ok {
			t.Fatalf("LID %v was saved for %v while %v owns it", f.LID, f.GUID, other)
		}
		byGUID[f.GUID], byLID[f.LID] = f.LID, f.GUID
	}
	return byGUID
}

// TestLIDSpaceIsFull: when every LID has an owner, ports that are away lose theirs, one by one, and the saved facts stay
// true.
func TestLIDSpaceIsFull(t *testing.T) {
	l := tree(t, 4, 4)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	w := watch(e)
	for lid := ib.MinUnicastLID; lid <= ib.MaxUnicastLID; lid++ {
		e.facts = append(e.facts, sm.Fact{Kind: sm.FactLID, GUID: 0xFEED0000 + ib.GUID(lid), LID: lid})
	}
	e.start()
	e.mustSettle(30 * time.Second)
	w.checkEnd()
	before := owners(t, e.facts)
	if n := len(before); n != int(ib.MaxUnicastLID) {
		t.Errorf("%d LIDs are owned, want all %d", n, ib.MaxUnicastLID)
	}
	for _, h := range hosts(l) {
		if lid := e.fab.PortInfo(h.node.Name, h.num).LID; lid == 0 || before[h.node.PortGUID(h.num)] != lid {
			t.Errorf("%s has LID %v, saved is %v", h.node.Name, lid, before[h.node.PortGUID(h.num)])
		}
	}
	sets := e.sets()
	e.start()
	e.mustSettle(30 * time.Second)
	if n := e.sets() - sets; n != 0 {
		t.Errorf("a restart wrote %d times", n)
	}
}

// TestEverNewGUIDs: a host that comes back under ever new GUIDs costs a bounded
// number of slots, and is still served in the end.
func TestEverNewGUIDs(t *testing.T) {
	t.Parallel()
	const times = 4200 // more than the tombstones that are kept
	l := tree(t, 2, 4)
	e := newEnv(t, l, sim.Options{}, sm.Config{
		AuditPeriod: -1, TrapHold: time.Nanosecond, ViewEvery: time.Hour,
		Health: health.Config{Flapping: health.Rule{Count: 1, Window: time.Hour, Action: health.Ignore}},
	}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	var guid ib.GUID
	for i := range times {
		guid = 0xABCD000000000000 + ib.GUID(i)<<8
		bounce(e, "h1", guid)
		e.steps, e.events = 0, nil
	}
	h := hosts(l)[0]
	g := sm.Grant{GUID: guid + 1, PKey: 0x8001, Place: h.place}
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{g}})
	e.mustSettle(time.Minute)
	if a, ok := find(e.takeEvents(), func(a *sm.MembershipApplied) bool { return a.GUID == g.GUID }); !ok {
		t.Errorf("the grant to the last GUID: %v; problems %q", a, e.problems())
	}
	if n := e.view.Fabric.NumNodes(); n > 4096+20 {
		t.Errorf("%d node slots after %d GUIDs", n, times)
	}
	if bad := inactive(e.view); len(bad) > 0 {
		t.Errorf("not Active: %v", bad)
	}
}

// TestOtherLMC: with more LIDs for each host than before, ranges are aligned and do not overlap. Base LIDs stay where there
// is room.
func TestOtherLMC(t *testing.T) {
	l := tree(t, 8, 4)
	var facts []sm.Fact
	for _, lmc := range []ib.LMC{0, 3, 1} {
		e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1, LMC: lmc}, 1)
		e.facts = facts
		e.start()
		e.mustSettle(30 * time.Second)
		facts = e.facts
		of := make(map[ib.LID]string)
		for _, h := range hosts(l) {
			pi := e.fab.PortInfo(h.node.Name, h.num)
			if pi.LMC != lmc || pi.LID == 0 || pi.LID%(1<<lmc) != 0 {
				t.Errorf("%s has LID %v with LMC %d, want LMC %d", h.node.Name, pi.LID, pi.LMC, lmc)
			}
			for i := range ib.LID(1) << lmc {
				if other, is := of[pi.LID+i]; is {
					t.Errorf("LID %v is %s's and %s's", pi.LID+i, other, h.node.Name)
				}
				of[pi.LID+i] = h.node.Name
			}
		}
		if bad := inactive(e.view); len(bad) > 0 {
			t.Errorf("LMC %d: not Active: %v", lmc, bad)
		}
	}
}
