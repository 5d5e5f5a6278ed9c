package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/portset"
)

// forgetful answers as a host's adapter of some make that keeps none of the
// error thresholds.
func forgetful(e *env, h *endPort, as *endPort, ni mad.NodeInfo) liar {
	return func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if len(rest) > 0 {
			return mad.MAD{}, false
		}
		switch r.MAD.Attr() {
		case mad.AttrNodeInfo:
			ni.BaseVersion, ni.ClassVersion, ni.NodeType, ni.NumPorts = 1, 1, ib.NodeCA, uint8(as.node.NumPorts())
			ni.NodeGUID, ni.PortGUID, ni.LocalPortNum, ni.PartitionCap = as.node.GUID, as.node.PortGUID(as.num), as.num, 32
			return answer(r, &ni)
		case mad.AttrPortInfo:
			// As the adapter has it, but for the thresholds.
			pi := e.fab.PortInfo(h.node.Name, h.num)
			pi.LocalPhyErrors, pi.OverrunErrors = 1, 1
			if r.MAD.Method() == mad.MethodSet {
				var set mad.PortInfo
				if err := mad.Decode(r.MAD.Data(), &set); err != nil {
					panic(err)
				}
				set.LocalPhyErrors, set.OverrunErrors = 1, 1
				if set.PortState == ib.PortNop {
					set.PortState = pi.PortState
				}
				pi = set
			}
			return answer(r, &pi)
		default:
			return mad.MAD{}, false
		}
	}
}

// TestFieldsNotKeptOfALiar: fields that a host under a tenant's GUID does not keep are recorded for the place of that host,
// not for the tenant.
func TestFieldsNotKeptOfALiar(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	hs := hosts(l)
	victim, bad := hs[2], hs[5]
	e.fab.Unlink(victim.node.Name, victim.num)
	e.hostile = map[string]liar{bad.node.Name: forgetful(e, &bad, &victim, mad.NodeInfo{VendorID: 0x2c9, DeviceID: 4129, Revision: 7})}
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.run(10 * time.Second)
	if _, ok := find(e.takeEvents(), func(f *sm.FieldsNotKept) bool { return f.GUID == victim.node.GUID }); !ok {
		t.Fatal("the liar was not caught forgetting, so this test shows nothing")
	}
	for _, f := range e.facts {
		if f.Kind == sm.FactNotKept && (f.Place != bad.place || f.Model == "") {
			t.Errorf("saved %+v, want it for the liar's place and make alone", f)
		}
	}
}

// TestFieldsNotKeptByAnotherMake: a switch is not denied tenants because another make of switch under its GUID did not keep
// some fields.
func TestFieldsNotKeptByAnotherMake(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	h := hosts(l)[2]
	e.facts = []sm.Fact{{
		Kind: sm.FactNotKept, GUID: h.place.Switch, Model: "000001/0002/3/4",
		NotKept: portset.EnforcementInbound | portset.EnforcementOutbound,
	}}
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{h.grant(0x8001)}})
	e.mustSettle(20 * time.Second)
	if _, ok := find(e.takeEvents(), func(m *sm.MembershipApplied) bool { return m.GUID == h.node.PortGUID(h.num) }); !ok {
		t.Errorf("the grant is not applied; problems %q", e.problems())
	}
}

// TestFieldsNotKeptSurviveARestart: a settled fabric with a device that does not
// keep something costs no Set after a restart.
func TestFieldsNotKeptSurviveARestart(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	h := hosts(l)[5]
	ni := mad.NodeInfo{VendorID: 0x2c9, DeviceID: 4129, Revision: 7}
	state := forgetful(e, &h, &h, ni)
	var kept *mad.PortInfo
	e.hostile = map[string]liar{h.node.Name: func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if kept != nil && len(rest) == 0 && r.MAD.Attr() == mad.AttrPortInfo && r.MAD.Method() == mad.MethodGet {
			return answer(r, kept)
		}
		m, ok := state(rest, r)
		if ok && r.MAD.Attr() == mad.AttrPortInfo {
			kept = &mad.PortInfo{}
			if err := mad.Decode(m.Data(), kept); err != nil {
				panic(err)
			}
		}
		return m, ok
	}}
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(20 * time.Second)
	before := e.sets()
	e.start()
	e.want(e.intent)
	e.mustSettle(20 * time.Second)
	if n := e.sets() - before; n != 0 {
		t.Errorf("%d Sets after a restart on a settled fabric: %v", n, e.smps)
	}
}
