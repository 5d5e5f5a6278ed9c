package sm_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

func lidsRefused(events []sm.Event) (out []sm.LIDRefused) {
	for _, ev := range events {
		if e, ok := ev.(*sm.LIDRefused); ok {
			out = append(out, *e)
		}
	}
	return out
}

// TestPreferredLIDs checks that a preferred LID comes before the LID that a port shows, and a saved LID before both. A
// preference that contradicts another LID is reported.
func TestPreferredLIDs(t *testing.T) {
	l := tree(t, 8, 8)
	hs := hosts(l)
	l.Find(hs[0].node.Name).Ports[1].LID = 7
	l.Find(hs[1].node.Name).Ports[1].LID = 8
	guid := func(i int) ib.GUID { return hs[i].node.PortGUID(1) }
	e := newEnv(t, l, sim.Options{}, sm.Config{LIDs: sm.LIDConfig{Preferred: []sm.PreferredLID{
		{GUID: guid(0), LID: 100},
		{GUID: guid(1), LID: 101},
		{GUID: guid(2), LID: 100},
		{GUID: guid(3), LID: 200},
		{GUID: 0xDEAD, LID: 102},
		{GUID: 0xBEEF, LID: 0xC000},
		{GUID: guid(5), LID: 300},
	}}}, 1)
	e.facts = []sm.Fact{{Kind: sm.FactLID, GUID: guid(1), LID: 300}}
	e.start()
	e.mustSettle(10 * time.Second)
	for i, want := range map[int]ib.LID{0: 100, 1: 300, 3: 200} {
		if got := e.fab.PortInfo(hs[i].node.Name, 1).LID; got != want {
			t.Errorf("%s has LID %v, want %v", hs[i].node.Name, got, want)
		}
	}
	want := []sm.LIDRefused{
		{GUID: guid(2), LID: 100, Owner: guid(0)}, {GUID: 0xBEEF, LID: 0xC000}, {GUID: guid(5), LID: 300, Owner: guid(1)},
	}
	if d := cmp.Diff(want, lidsRefused(e.takeEvents())); d != "" {
		t.Errorf("refused (-want +got):\n%s", d)
	}
	owned := owners(t, e.facts)
	if owned[0xDEAD] != 102 {
		t.Errorf("the LID of a port that is away was not kept: %v", owned)
	}
	// Once taken, they are kept without the list.
	e.cfg.LIDs.Preferred = nil
	e.start()
	clear(e.smps)
	e.mustSettle(10 * time.Second)
	if n := e.sets(); n != 0 {
		t.Errorf("%d Sets after a restart without the list: %v", n, e.smps)
	}
}

// TestLIDsOnTheWire: without anything saved, ports of a fabric that is in use keep the LIDs they show. If two ports show
// the same LID, one gets another, and that is reported.
func TestLIDsOnTheWire(t *testing.T) {
	l := tree(t, 8, 8)
	hs := hosts(l)
	e := newEnv(t, l, sim.Options{}, sm.Config{LIDs: sm.LIDConfig{Preferred: []sm.PreferredLID{
		{GUID: hs[0].node.PortGUID(1), LID: 40}, {GUID: hs[1].node.PortGUID(1), LID: 41}, {GUID: hs[2].node.PortGUID(1), LID: 42},
	}}}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	all := func() (lids []ib.LID) {
		for _, h := range hs {
			lids = append(lids, e.fab.PortInfo(h.node.Name, 1).LID)
		}
		return lids
	}
	before := all()
	saved := e.facts
	for name, facts := range map[string][]sm.Fact{"with": saved, "without": nil} {
		e.facts, e.cfg.LIDs.Preferred = facts, nil
		e.start()
		e.mustSettle(10 * time.Second)
		if d := cmp.Diff(before, all()); d != "" {
			t.Errorf("LIDs changed by a restart %s what was saved (-before +after):\n%s", name, d)
		}
	}
	if told := lidsRefused(e.takeEvents()); len(told) > 0 {
		t.Errorf("told %v although nothing is wrong", told)
	}

	lies := true
	e.meddle = func(set bool, m *mad.MAD) {
		var pi mad.PortInfo
		if !lies || set || m.Attr() != mad.AttrPortInfo || mad.Decode(m.Data(), &pi) != nil || pi.LID != 42 {
			return
		}
		pi.LID = 40 // another manager wrote it while no manager looked
		if err := mad.Encode(m.Data(), &pi); err != nil {
			t.Fatal(err)
		}
	}
	e.facts = nil
	e.start()
	e.mustSettle(10 * time.Second)
	told := lidsRefused(e.takeEvents())
	if len(told) != 1 || told[0].LID != 40 {
		t.Fatalf("told %v, want that one of two ports cannot have LID 40", told)
	}
	lies = false
	owned := owners(t, e.facts)
	if owned[told[0].Owner] != 40 || owned[told[0].GUID] == 40 || owned[told[0].GUID] == 0 {
		t.Errorf("told %v, LIDs are %v", told, owned)
	}
}
