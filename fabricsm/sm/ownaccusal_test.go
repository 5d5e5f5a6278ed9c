package sm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/violation"
)

// TestRepressAccusesNobody: an adapter with another M_Key, set by its host, refuses the answer to its trap, and reports
// that in another trap. That one is not answered, as this would never end. It does not accuse the port of the subnet
// manager.
func TestRepressAccusesNobody(t *testing.T) {
	e, hs := settledKeyed(t)
	h := &hs[0]
	e.refuse(h, e.lidOf(h), 2)
	e.refuse(h, e.lidOf(h), 2) // which ends that it obeys the key before, too
	answered := 0
	e.logAnswer = func(*sm.Response) { answered++ }
	if err := e.fab.SetNodeDescription(h.node.Name, "another"); err != nil {
		t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
	e.run(5 * time.Second)
	if answered == 0 || answered > 12 {
		t.Errorf("%d traps were answered in 5 s, want those of the change alone", answered)
	}
	if rows := e.listed(violation.BadMKey); len(rows) != 0 {
		t.Errorf("accused: %v", &rows[0])
	}
	if rows := e.listed(violation.OwnMKey); len(rows) == 0 {
		t.Error("no trap told of the answer, so nothing is proven")
	}
	for _, ev := range e.takeEvents() {
		if r, ok := ev.(*violation.TrapReceived); ok && r.Place == h.place && r.GUID != h.node.PortGUID(h.num) {
			t.Errorf("it names port %v at the place of another: %v", r.GUID, r)
		}
	}
}

// TestNoisyIsAClaim: traps in the name of a switch do not have it called unhealthy as a
// fact.
func TestNoisyIsAClaim(t *testing.T) {
	u := &health.Unhealthy{Place: ib.Place{Switch: 7}, Condition: health.Noisy, Count: 600, Window: time.Minute, Action: health.Report}
	if text := u.String(); !strings.Contains(text, "is said to be") || !strings.Contains(text, "any host can send") {
		t.Error(text)
	}
}

// TestRefusedCommandsHideNoRogue: after 300 refused commands of a host it is reported when
// that host becomes a master of the highest priority.
func TestRefusedCommandsHideNoRogue(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{SMKey: rightKey, LIDPeriod: -1}, 1)
	hs := hosts(l)
	at, _ := e.fab.Cable("sm", 1)
	i := slices.IndexFunc(hs, func(h endPort) bool { return h.peer == at.Node })
	if i < 0 {
		t.Fatal("no host is at the switch of the subnet manager")
	}
	h := &hs[i]
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(time.Minute)
	way := mad.MakeRoute(h.num, at.Port)
	for i := range 300 {
		m := smp(mad.MethodSet, mad.AttrSMInfo, &way, 0)
		m.MAD.SetMod(uint32(mad.SMInfoDisable))
		m.MAD.SetTID(ib.TID(i + 1))
		if err := mad.Encode(m.MAD.Data(), &mad.SMInfo{GUID: h.node.PortGUID(h.num), SMState: ib.SMMaster}); err != nil {
			t.Fatal(err)
		}
		e.forge(h.node.Name, m)
	}
	e.run(2 * time.Second)
	if rows := e.listed(violation.BadSMKey); len(rows) != 1 || rows[0].Place != h.place || rows[0].Count != 300 {
		t.Fatalf("refused commands: %+v", rows)
	}
	e.takeEvents()
	e.addRogue(h.node.Name, mad.SMInfo{Priority: 15, SMState: ib.SMMaster})
	e.arrive(e.st.Take(nil))
	e.run(5 * time.Second)
	if _, told := find(e.takeEvents(), func(f *sm.ForeignSM) bool { return f.Place == h.place }); !told {
		t.Error("the rogue master is not told of")
	}
}

// TestStrayAnswerHasAPlace: an answer to nothing that was asked, over a directed route that switches wrote, is listed with the
// place of its sender. One whose return path its sender wrote, as that of answers is, accuses no port by it.
func TestStrayAnswerHasAPlace(t *testing.T) {
	e, hs := settledKeyed(t)
	at, _ := e.fab.Cable("sm", 1)
	i := slices.IndexFunc(hs, func(h endPort) bool { return h.peer == at.Node })
	if i < 0 {
		t.Fatal("no host is at the switch of the subnet manager")
	}
	h := &hs[i]
	way := mad.MakeRoute(h.num, at.Port)
	for n := range 3 {
		m := smp(mad.MethodGetResp, mad.AttrPortInfo, &way, 0)
		m.MAD.SetTID(ib.TID(0x7000 + n))
		m.MAD.ReturnPath()[1], m.MAD.ReturnPath()[2] = byte(h.pnum), 1 // as its switch and our adapter write them
		e.step(&sm.Received{LID: ib.PermissiveLID, MAD: m.MAD})
		m.MAD.SetReturning(true) // as answers come, whose return path the sender wrote
		e.step(&sm.Received{LID: ib.PermissiveLID, MAD: m.MAD})
	}
	e.run(2 * time.Second)
	rows := e.listed(violation.StrayMAD)
	i = slices.IndexFunc(rows, func(v violation.Violation) bool { return v.Place == h.place })
	if len(rows) != 2 || i < 0 || rows[i].Count != 3 || rows[i].By != violation.ByWay || rows[1-i].Count != 3 || rows[1-i].Place != (ib.Place{}) {
		t.Errorf("rows %+v, want one with 3 answers from %v, and one with 3 from nowhere", rows, h.place)
	}
	ev, told := find(e.takeEvents(), func(s *sm.StrayAnswer) bool { return s.Place == h.place })
	if !told || ev.GUID != h.node.PortGUID(h.num) {
		t.Errorf("told %+v, want one with the place of the sender", ev)
	}
}
