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
)

// find returns the first event of a kind that ok accepts.
func find[E sm.Event](events []sm.Event, ok func(E) bool) (found E, is bool) {
	for _, ev := range events {
		if e, match := ev.(E); match && ok(e) {
			return e, true
		}
	}
	return found, false
}

// TestVerifiedGrantIsQuick: a grant that comes after a first bring-up, when the
// enforcement bits are known only from the answers to Sets, is applied at once.
func TestVerifiedGrantIsQuick(t *testing.T) {
	l := tree(t, 16, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{Enforcement: sm.Verified}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	for _, h := range hosts(l)[:4] {
		e.takeEvents()
		g := h.grant(0x8001)
		begin := e.now
		e.want(sm.Intent{Revision: e.intent.Revision + 1, Grants: append(e.intent.Grants, g)})
		e.mustSettle(5 * time.Millisecond)
		if _, ok := find(e.takeEvents(), func(a *sm.MembershipApplied) bool { return a.GUID == g.GUID }); !ok {
			t.Errorf("the grant to %s is not applied after %v", h.node.Name, e.now.Sub(begin))
		}
		if pi := e.fab.PortInfo(h.peer, h.pnum); !pi.PartitionEnforcementInbound || !pi.PartitionEnforcementOutbound {
			t.Errorf("%v does not enforce", h.place)
		}
	}
}

// dropBits makes every switch seem to forget the enforcement bits.
func dropBits(m *mad.MAD) {
	var pi mad.PortInfo
	if m.Attr() != mad.AttrPortInfo || mad.Decode(m.Data(), &pi) != nil {
		return
	}
	pi.PartitionEnforcementInbound, pi.PartitionEnforcementOutbound = false, false
	if err := mad.Encode(m.Data(), &pi); err != nil {
		panic(err)
	}
}

// TestVerifiedRefusesForgetfulSwitches: one that shows in its answer to the Set
// that it did not keep the bits, and one that only a Get finds out.
func TestVerifiedRefusesForgetfulSwitches(t *testing.T) {
	for name, meddle := range map[string]func(set bool, m *mad.MAD){
		"forgets":            func(_ bool, m *mad.MAD) { dropBits(m) },
		"says it keeps them": func(set bool, m *mad.MAD) { dropBitsUnless(set, m) },
	} {
		t.Run(name, func(t *testing.T) {
			l := tree(t, 8, 8)
			e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
			e.meddle = meddle
			e.start()
			e.mustSettle(10 * time.Second)
			h := hosts(l)[0]
			g := h.grant(0x8001)
			e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{g}})
			e.mustSettle(time.Second)
			events := e.takeEvents()
			if r, ok := find(events, func(r *sm.MembershipRefused) bool { return r.GUID == g.GUID }); !ok || !strings.Contains(r.Reason, "does not keep") {
				t.Errorf("refused: %v", r)
			}
			if a, ok := find(events, func(*sm.MembershipApplied) bool { return true }); ok {
				t.Errorf("applied: %v", a)
			}
			if ce, ok := find(events, func(ce *sm.CannotEnforce) bool { return ce.GUID == h.place.Switch }); !ok {
				t.Errorf("not told that %v cannot enforce: %v", h.place.Switch, ce)
			}
			if k := tenants(e.fab.PKeys(h.node.Name, 1)); len(k) != 0 {
				t.Errorf("the HCA holds %v", k)
			}
			before := e.sets()
			e.run(10 * time.Second)
			if n := e.sets() - before; n != 0 {
				t.Errorf("%d writes on a settled fabric", n)
			}
		})
	}
}

func dropBitsUnless(set bool, m *mad.MAD) {
	if !set {
		dropBits(m)
	}
}

// TestSwitchWithoutTables checks that the limits of a switch without P_Key tables are reported before anything is granted
// there.
func TestSwitchWithoutTables(t *testing.T) {
	for _, mode := range []sm.Enforcement{sm.Verified, sm.Accepted} {
		t.Run(mode.String(), func(t *testing.T) {
			l := tree(t, 8, 8)
			e := newEnv(t, l, sim.Options{}, sm.Config{Enforcement: mode}, 1)
			e.meddle = noTables
			e.start()
			e.mustSettle(10 * time.Second)
			h := hosts(l)[0]
			g := h.grant(0x8001)
			if ce, ok := find(e.takeEvents(), func(ce *sm.CannotEnforce) bool { return ce.GUID == h.place.Switch }); !ok {
				t.Errorf("not told: %v", ce)
			}
			e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{g}})
			e.mustSettle(time.Second)
			if r, ok := find(e.takeEvents(), func(r *sm.MembershipRefused) bool { return r.GUID == g.GUID }); !ok || !strings.Contains(r.Reason, "cannot enforce") {
				t.Errorf("refused: %v", r)
			}
			if k := tenants(e.fab.PKeys(h.node.Name, 1)); len(k) != 0 {
				t.Errorf("the HCA holds %v", k)
			}
		})
	}
}

// noTables makes every switch one without P_Key tables.
func noTables(_ bool, m *mad.MAD) {
	var si mad.SwitchInfo
	if m.Attr() != mad.AttrSwitchInfo || mad.Decode(m.Data(), &si) != nil {
		return
	}
	si.PartitionEnforcementCap, si.InboundEnforcementCap, si.OutboundEnforcementCap = 0, false, false
	if err := mad.Encode(m.Data(), &si); err != nil {
		panic(err)
	}
}

// cut pulls the cable of a host.
func cut(e *env, host string) {
	e.t.Helper()
	if err := e.fab.Unlink(host, 1); err != nil {
		e.t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
}

// TestRemovalWithoutTables: on a switch without P_Key tables the HCA is all that
// can prove a removal, so a silent one is waited for.
func TestRemovalWithoutTables(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{Enforcement: sm.Accepted, RetryMax: time.Second}, 1)
	e.start()
	h := hosts(l)[0]
	g := h.grant(0x8001)
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{g}})
	e.mustSettle(10 * time.Second)
	if !slices.Contains(e.fab.PKeys(h.node.Name, 1), ib.PKey(0x8001)) {
		t.Fatal("the HCA does not hold the key")
	}
	// The switch is now one without tables, and the HCA holds its tongue.
	e.meddle = noTables
	if err := e.fab.SetFault(h.node.Name, sim.Fault{Silent: true}); err != nil {
		t.Fatal(err)
	}
	cut(e, hosts(l)[1].node.Name) // makes the core ask the switch again for its capabilities
	e.run(time.Second)
	e.takeEvents()
	e.want(sm.Intent{Revision: 2, Absent: []sm.Grant{g}})
	e.run(20 * time.Second)
	removed := func() (*sm.MembershipRemoved, bool) {
		return find(e.takeEvents(), func(r *sm.MembershipRemoved) bool { return r.GUID == g.GUID })
	}
	if r, ok := removed(); ok {
		t.Errorf("%v, though the HCA still holds %v", r, e.fab.PKeys(h.node.Name, 1))
	}
	if err := e.fab.SetFault(h.node.Name, sim.Fault{}); err != nil {
		t.Fatal(err)
	}
	e.run(20 * time.Second)
	if r, ok := removed(); !ok || !r.HCAProven || len(tenants(e.fab.PKeys(h.node.Name, 1))) != 0 {
		t.Errorf("after it speaks: %v, the HCA holds %v", r, e.fab.PKeys(h.node.Name, 1))
	}
}
