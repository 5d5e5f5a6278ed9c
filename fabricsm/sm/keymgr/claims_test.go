package keymgr_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
)

// tale is a trap, made up in the name of h2, of a wrong VS_Key that a LID showed.
func (e *env) tale(from string, by ib.LID) {
	e.t.Helper()
	m := sim.Forged{SLID: e.Fabric.PortInfo("h2", 1).LID, DLID: e.Fabric.PortInfo("sm", 1).LID, SQP: 1, DQP: 1, PKey: ib.DefaultPKeyLimited}
	m.MAD.SetHeader(mad.Header{Class: mad.ClassVendorVS, ClassVersion: 1, Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: ib.TID(e.rng.Uint32())})
	if err := mad.Encode(m.MAD[32:], &mad.NoticeKeyVS{SLID: by, Method: mad.MethodSet, AttributeID: mad.VSAttrKeyInfo}); err != nil {
		e.t.Fatal(err)
	}
	if err := e.Fabric.InjectMAD(sim.Endpoint{Node: from, Port: 1}, m); err != nil {
		e.t.Fatal(err)
	}
	e.Collect()
}

// verdicts returns the core's list of wrong VS_Keys at h2, by the LID of the source.
func (e *env) verdicts() map[ib.LID]violation.Verdict {
	out := make(map[ib.LID]violation.Verdict)
	for _, row := range e.View().Violations.Rows {
		if row.Kind == violation.BadVSKey && row.Reporter == e.GUID("h2", 1) {
			out[row.LID] = row.Verdict
		}
	}
	return out
}

// TestLateTraps: a device sends a trap a second. A trap for a violation that was counted and cleared before is true. One
// more than was counted is not.
func TestLateTraps(t *testing.T) {
	e := newEnv(t, single(t, 5, 6), sim.Modern(), 1)
	e.start()
	e.settle(time.Minute)
	for _, h := range []struct {
		node string
		port ib.PortNum
	}{{"h1", 2}, {"h3", 4}} {
		e.open(h.node, h.port)
	}
	e.takeEvents()
	victim := e.Fabric.PortInfo("h2", 1).LID
	for _, h := range []string{"h1", "h3"} { // the second trap waits behind the first
		e.attack(h, victim, mad.ClassVendorVS, 0xbad)
	}
	e.Run(8 * time.Second)
	h1, h3 := e.Fabric.PortInfo("h1", 1).LID, e.Fabric.PortInfo("h3", 1).LID
	for lid, v := range e.verdicts() {
		if v != violation.Confirmed {
			t.Errorf("what LID %v did is %v", lid, v)
		}
	}
	if got := e.verdicts(); len(got) != 2 {
		t.Errorf("listed %v, want LIDs %v and %v", got, h1, h3)
	}
	if got := eventsOf[*sm.ClassKeyFalseTrap](e.told()); len(got) != 0 {
		t.Errorf("a true trap is not believed: %v", got)
	}
	e.tale("h4", e.Fabric.PortInfo("sm", 1).LID+9)
	e.Run(3 * time.Second)
	if got := eventsOf[*sm.ClassKeyFalseTrap](e.told()); len(got) != 1 {
		t.Errorf("a trap of what nobody counted: %v", got)
	}
}

// TestMixedTraps: if traps name different sources before the device was asked, its counters prove none of them.
func TestMixedTraps(t *testing.T) {
	e := newEnv(t, single(t, 5, 6), sim.Modern(), 1)
	e.start()
	e.settle(time.Minute)
	e.open("h1", 2)
	e.takeEvents()
	victim, innocent := e.Fabric.PortInfo("h2", 1).LID, e.Fabric.PortInfo("h3", 1).LID
	e.attack("h1", victim, mad.ClassVendorVS, 0xbad)
	e.tale("h4", innocent)
	e.Run(3 * time.Second)
	got := eventsOf[*sm.ClassKeyViolation](e.told())
	if len(got) != 1 || got[0].Kind != keys.VSKey || got[0].Count != 1 || got[0].Told {
		t.Errorf("told %+v, want one violation of somebody", got)
	}
	for lid, v := range e.verdicts() {
		if v != violation.Claimed {
			t.Errorf("what LID %v did is %v", lid, v)
		}
	}
	if len(e.verdicts()) != 2 {
		t.Errorf("listed %v, want both that were named", e.verdicts())
	}
}
