package sm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// behind sends a Set from the subnet manager's node that the core knows nothing
// of, as root on that node or a switch's console could.
func behind(e *env, attr mad.AttrID, mod uint32, v func(data []byte) error, hops ...ib.PortNum) {
	e.t.Helper()
	st, err := e.fab.Station("sm", false)
	if err != nil {
		e.t.Fatal(err)
	}
	defer st.Close()
	route := mad.MakeRoute(hops...)
	p := transport.Packet{LID: ib.PermissiveLID}
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodSet, Attr: attr, Mod: mod, TID: 1}, &route, ib.MKey{})
	if err := v(p.MAD.Data()); err != nil {
		e.t.Fatal(err)
	}
	if back := st.Exchange([]transport.Packet{p}, nil); len(back) != 1 || back[0].MAD.Status() != mad.StatusOK {
		e.t.Fatalf("Set %v behind the core's back: %d answers", attr, len(back))
	}
}

// withKeys returns what encodes the first P_Keys of a block.
func withKeys(k ...ib.PKey) func([]byte) error {
	var table mad.PKeyTable
	copy(table.PKey[:], k)
	return func(b []byte) error { return mad.Encode(b, &table) }
}

// withPortInfo returns what encodes PortInfo of a port with a change.
func withPortInfo(e *env, change func(*mad.PortInfo), node string, num ib.PortNum) func([]byte) error {
	pi := e.fab.PortInfo(node, num)
	pi.PortState, pi.PortPhysicalState = ib.PortNop, ib.PhysNop
	pi.LinkWidthEnabled, pi.LinkSpeedEnabled, pi.LinkSpeedExtEnabled, pi.LinkSpeedExtEnabled2 = 0, 0, 0, 0
	change(&pi)
	return func(b []byte) error { return mad.Encode(b, &pi) }
}

// TestAuditRepairs changes devices behind the core's back; the audit finds each
// change within its period and repairs it. P_Keys that no membership explains are reported.
func TestAuditRepairs(t *testing.T) {
	const period = 20 * time.Second
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: period}, 1)
	e.start()
	h := near(t, e)
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{h.grant(0x8001)}})
	e.mustSettle(10 * time.Second)
	portInfo := func(change func(*mad.PortInfo), node string, num ib.PortNum) func([]byte) error {
		return withPortInfo(e, change, node, num)
	}
	gate := func() []ib.PKey { return tenants(e.fab.PKeys(h.peer, h.pnum)) }
	hca := func() []ib.PKey { return tenants(e.fab.PKeys(h.node.Name, h.num)) }
	one := func(k []ib.PKey) bool { return len(k) == 1 && k[0] == 0x8001 }
	bits := func() bool {
		pi := e.fab.PortInfo(h.peer, h.pnum)
		return pi.PartitionEnforcementInbound && pi.PartitionEnforcementOutbound
	}
	for _, tt := range []struct {
		name  string
		do    func()
		right func() bool

		foreign string // what is reported of P_Keys, as "table P_Keys"
	}{
		{"a key is added at the switch port", func() {
			behind(e, mad.AttrPKeyTable, mad.PKeyTableMod(h.pnum, 0), withKeys(0x7FFF, 0x8001, 0x8666), 1)
		}, func() bool { return one(gate()) }, "switch [0x8666]"},
		{"a key is added in the second block of the switch port", func() {
			behind(e, mad.AttrPKeyTable, mad.PKeyTableMod(h.pnum, 1), withKeys(0x8666), 1)
		}, func() bool { return one(gate()) }, "switch [0x8666]"},
		{"a key is taken from the switch port", func() {
			behind(e, mad.AttrPKeyTable, mad.PKeyTableMod(h.pnum, 0), withKeys(0x7FFF), 1)
		}, func() bool { return one(gate()) }, ""},
		{"a key is added in the HCA", func() {
			behind(e, mad.AttrPKeyTable, mad.PKeyTableMod(0, 0), withKeys(0x7FFF, 0x8001, 0x8666), 1, h.pnum)
		}, func() bool { return one(hca()) }, "adapter [0x8666]"},
		{"enforcement is switched off", func() {
			behind(e, mad.AttrPortInfo, mad.PortInfoMod(h.pnum, 0), portInfo(func(pi *mad.PortInfo) {
				pi.PartitionEnforcementInbound, pi.PartitionEnforcementOutbound = false, false
			}, h.peer, h.pnum), 1)
		}, bits, ""},
		{"the HCA is told of another master", func() {
			behind(e, mad.AttrPortInfo, mad.PortInfoMod(h.num, 0), portInfo(func(pi *mad.PortInfo) {
				pi.MasterSMLID = 0x4444
			}, h.node.Name, h.num), 1, h.pnum)
		}, func() bool { return e.fab.PortInfo(h.node.Name, h.num).MasterSMLID == e.view.LID }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e.t = t
			e.takeEvents()
			tt.do()
			if tt.right() {
				t.Fatal("the change had no effect")
			}
			e.run(period + 2*time.Second)
			if !tt.right() {
				t.Errorf("not repaired after %v: switch port %v, HCA %v, enforces %v", period, gate(), hca(), bits())
			}
			before := e.sets()
			e.run(2 * period)
			if told := foreign(e, h); told != tt.foreign {
				t.Errorf("reported %q of foreign P_Keys, want %q", told, tt.foreign)
			}
			if n := e.sets() - before; n != 0 {
				t.Errorf("%d writes although all is right", n)
			}
		})
	}
}

// TestSuspectedIsRepaired changes devices behind the core's back; a place that is suspected is read and repaired at once, without the
// audit, and no other place is.
func TestSuspectedIsRepaired(t *testing.T) {
	e := newEnv(t, tree(t, 8, 8), sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	h := near(t, e)
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{h.grant(0x8001)}})
	e.mustSettle(10 * time.Second)
	change := func() {
		behind(e, mad.AttrPKeyTable, mad.PKeyTableMod(h.pnum, 0), withKeys(0x7FFF, 0x8001, 0x8666), 1)
		behind(e, mad.AttrPKeyTable, mad.PKeyTableMod(0, 0), withKeys(0x7FFF, 0x8666), 1, h.pnum)
		behind(e, mad.AttrPortInfo, mad.PortInfoMod(h.pnum, 0), withPortInfo(e, func(pi *mad.PortInfo) {
			pi.PartitionEnforcementInbound, pi.PartitionEnforcementOutbound = false, false
		}, h.peer, h.pnum), 1)
	}
	isRight := func() bool {
		gate, hca, pi := tenants(e.fab.PKeys(h.peer, h.pnum)), tenants(e.fab.PKeys(h.node.Name, h.num)), e.fab.PortInfo(h.peer, h.pnum)
		return slices.Equal(gate, []ib.PKey{0x8001}) && slices.Equal(hca, gate) && pi.PartitionEnforcementInbound && pi.PartitionEnforcementOutbound
	}
	change()
	others := make([]ib.Place, sm.MaxSuspected, sm.MaxSuspected+1)
	for i := range others {
		others[i] = ib.Place{Switch: h.place.Switch + ib.GUID(i), Port: 250}
	}
	for _, places := range [][]ib.Place{{{Switch: h.place.Switch, Port: h.place.Port + 1}, {}, {Switch: h.place.Switch}}, append(others, h.place)} {
		e.step(&sm.Suspected{Places: places})
		e.run(5 * time.Second)
		if isRight() {
			t.Fatalf("repaired although other places are suspected: %v", places[:2])
		}
	}
	e.step(&sm.Suspected{Places: []ib.Place{h.place}})
	e.run(2 * time.Second)
	if !isRight() {
		t.Errorf("not repaired: switch port %v, HCA %v", e.fab.PKeys(h.peer, h.pnum), e.fab.PKeys(h.node.Name, h.num))
	}
	before := e.sets()
	e.step(&sm.Suspected{Places: []ib.Place{h.place}})
	e.run(2 * time.Second)
	if n := e.sets() - before; n != 0 {
		t.Errorf("%d writes although all is right", n)
	}
	change()
	e.step(&sm.Mandate{Held: false})
	e.run(time.Second)
	e.step(&sm.Suspected{Places: []ib.Place{h.place}})
	e.run(2 * time.Second)
	if isRight() {
		t.Error("repaired by an instance that may not write")
	}
}

// foreign returns what was reported of P_Keys at a host's port that no membership explains, and takes all events.
func foreign(e *env, h *endPort) string {
	var told []string
	for _, ev := range e.takeEvents() {
		f, ok := ev.(*sm.ForeignPKeys)
		switch {
		case !ok:
		case f.GUID != h.node.PortGUID(h.num) || f.Place != h.place:
			e.t.Errorf("reported of another port: %v", f)
		case f.Adapter:
			told = append(told, fmt.Sprint("adapter ", f.PKeys))
		default:
			told = append(told, fmt.Sprint("switch ", f.PKeys))
		}
	}
	return strings.Join(told, ", ")
}

// near returns a host on the switch that the subnet manager is attached to.
func near(t *testing.T, e *env) *endPort {
	t.Helper()
	for _, h := range hosts(e.list) {
		if h.peer == e.list.Find("sm").Ports[1].Peer {
			return &h
		}
	}
	t.Fatal("the subnet manager's switch has no host")
	return nil
}
