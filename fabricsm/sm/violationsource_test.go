package sm_test

import (
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/violation"
)

// TestStampedBeforePayload: a host writes the LID of another tenant's host into an SMP that
// its leaf refuses, as the LID at which a directed route begins. The accused is the port
// whose adapter stamped the packet, or at which the way ends, and never the one that the
// payload names, which the row says.
func TestStampedBeforePayload(t *testing.T) {
	type try struct {
		name  string
		hops  []ib.PortNum    // of the directed route
		slid  bool            // the LRH has the LID of the sender
		by    violation.Basis // that is wanted; ByNothing: none is accused
		begin uint8           // hop pointer
	}
	for _, tt := range []try{
		{name: "no hops, by LID", slid: true, by: violation.ByLID},
		{name: "no hops, no LID", by: violation.ByNothing},
		{name: "a way that begins at the sender", hops: []ib.PortNum{1}, by: violation.ByWay, begin: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, hs := settledKeyed(t)
			from, victim := &hs[0], &hs[1]
			way := mad.MakeRoute(tt.hops...)
			m := smp(mad.MethodSet, mad.AttrPortInfo, &way, 0)
			m.MAD.SetDrSLID(e.lidOf(victim))
			m.MAD.SetHopPointer(tt.begin)
			if tt.by != violation.ByWay { // to the leaf by LID, where the directed part begins
				m.DLID = e.fab.PortInfo(from.peer, 0).LID
			} else {
				m.MAD.SetDrSLID(ib.PermissiveLID) // begins at the adapter itself
			}
			if tt.slid {
				m.SLID = e.lidOf(from)
			}
			e.forge(from.node.Name, m)
			e.run(3 * time.Second)
			rows := e.listed(violation.BadMKey)
			if len(rows) != 1 {
				t.Fatalf("rows %+v", rows)
			}
			v := rows[0]
			place := from.place
			if tt.by == violation.ByNothing {
				place = ib.Place{}
			}
			if v.Place != place || v.By != tt.by || v.Verdict != violation.Confirmed {
				t.Errorf("accused %v by %v, %v; want %v by %v: %v", v.Place, v.By, v.Verdict, place, tt.by, &v)
			}
			if named := m.MAD.DrSLID() != ib.PermissiveLID; named != (v.Named == e.lidOf(victim)) || named != strings.Contains(v.String(), "names LID") {
				t.Errorf("the row names LID %v: %v", v.Named, &v)
			}
			noSecrets(t, e.takeEvents())
		})
	}
}

// TestStampedBeforeWay: where a device reports the LID of an adapter and a way beside, as
// of an SMP that came by LID and was at its end already, the adapter is the accused, and
// not the port to which the way leads.
func TestStampedBeforeWay(t *testing.T) {
	e, hs := settledKeyed(t)
	from, victim := &hs[0], &hs[1]
	leaf := e.fab.PortInfo(from.peer, 0).LID
	e.forge(from.node.Name, notice(t, leaf, e.view.LID, 9, &mad.Trap256{
		NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, TrapNumber: mad.TrapBadMKey, IssuerLID: leaf},
		Method:       mad.MethodSet, AttributeID: mad.AttrPortInfo, LID: e.lidOf(from), DrSLID: e.lidOf(victim),
		DRNotice: true, DRHopCount: 1, DRReturnPath: [30]ib.PortNum{1: victim.pnum},
	}))
	e.run(time.Second)
	rows := e.listed(violation.BadMKey)
	if len(rows) != 1 || rows[0].Place != from.place || rows[0].By != violation.ByLID || rows[0].Named != e.lidOf(victim) {
		t.Errorf("rows %+v, want one of %v by LID", rows, from.place)
	}
}

// TestWayMayBeMadeUp: a host sends an SMP that is at its end already, with a way that leads
// to another host. The row of that says that the way may be made up, and not that it
// proves anything.
func TestWayMayBeMadeUp(t *testing.T) {
	e, hs := settledKeyed(t)
	from, victim := &hs[0], &hs[1]
	if from.peer != victim.peer {
		t.Fatalf("%s and %s are not at one leaf", from.node.Name, victim.node.Name)
	}
	way := mad.MakeRoute(from.num)
	m := smp(mad.MethodSet, mad.AttrPortInfo, &way, 0)
	m.MAD.SetHopPointer(2)
	m.MAD.ReturnPath()[1] = byte(victim.pnum)
	e.forge(from.node.Name, m)
	e.run(3 * time.Second)
	rows := e.listed(violation.BadMKey)
	if len(rows) != 1 || rows[0].Place != victim.place || rows[0].Verdict != violation.Confirmed {
		t.Fatalf("rows %+v: want one, confirmed, that leads to %v, or nothing is proven", rows, victim.place)
	}
	text := rows[0].String()
	if rows[0].By != violation.ByWay || !strings.Contains(text, "may have made up") || !strings.Contains(text, "whoever did it") || strings.Contains(text, "traced") {
		t.Errorf("by %v: %s", rows[0].By, text)
	}
}
