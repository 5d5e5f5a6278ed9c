package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// poser is an adapter that poses as a switch of four ports, all but the one it
// is entered by Down. It takes every Set.
func poser(linearCap uint16) liar {
	state := map[ib.PortNum]*mad.PortInfo{}
	return func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if len(rest) > 0 {
			return mad.MAD{}, false
		}
		switch r.MAD.Attr() {
		case mad.AttrNodeInfo:
			return answer(r, &mad.NodeInfo{
				BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeSwitch, NumPorts: 4,
				NodeGUID: 0xbad0001, PortGUID: 0xbad0001, PartitionCap: 32, LocalPortNum: 1,
			})
		case mad.AttrSwitchInfo:
			return answer(r, &mad.SwitchInfo{LinearFDBCap: linearCap})
		case mad.AttrPortInfo:
			return poserPort(state, r)
		default:
			m := r.MAD
			m.Respond(mad.StatusOK)
			return m, true
		}
	}
}

func poserPort(state map[ib.PortNum]*mad.PortInfo, r *sm.Request) (mad.MAD, bool) {
	num := ib.PortNum(r.MAD.Mod())
	pi := state[num]
	if pi == nil {
		pi = &mad.PortInfo{PortState: ib.PortDown, MTUCap: ib.MTU4096, VLCap: 4, LinkWidthActive: 2, LinkSpeedActive: 4}
		switch num {
		case 0:
			pi.PortState = ib.PortActive
		case 1:
			pi.PortState = ib.PortInit
		}
		state[num] = pi
	}
	if r.MAD.Method() == mad.MethodSet {
		was := pi.PortState
		if err := mad.Decode(r.MAD.Data(), pi); err != nil {
			panic(err)
		}
		if pi.PortState == ib.PortNop {
			pi.PortState = was
		}
	}
	return answer(r, pi)
}

// TestHostPosesAsSwitch: a host that poses as a switch must not get a port that checks no P_Keys.
func TestHostPosesAsSwitch(t *testing.T) {
	t.Run("from the start", func(t *testing.T) {
		l := tree(t, 8, 8)
		e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
		h := hosts(l)[3]
		e.hostile = map[string]liar{h.node.Name: poser(49152)}
		e.start()
		e.settle(10 * time.Second)
		e.want(sm.Intent{Revision: 1, Hosts: places(hosts(l))})
		e.run(10 * time.Second)
		wantShut(t, e, &h)
	})
	t.Run("before an intent says where hosts are", func(t *testing.T) {
		l := tree(t, 8, 8)
		e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1, IntentWait: time.Minute}, 1)
		h := hosts(l)[3]
		e.hostile = map[string]liar{h.node.Name: poser(49152)}
		e.onStep = func() { wantShut(t, e, &h) }
		e.start()
		e.run(10 * time.Second)
		e.want(sm.Intent{Revision: 1, Hosts: places(hosts(l))})
		e.run(10 * time.Second)
		for _, o := range hosts(l) {
			if pi := e.fab.PortInfo(o.peer, o.pnum); o.node != h.node && pi.PortState != ib.PortActive {
				t.Errorf("%s is %v, want Active", o.node.Name, pi.PortState)
			}
		}
	})
	t.Run("after it was admitted", func(t *testing.T) {
		l := tree(t, 8, 8)
		e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
		h := hosts(l)[3]
		e.start()
		e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{h.grant(0x8001)}})
		e.mustSettle(20 * time.Second)
		turnInto(e, &h, poser(49152))
		e.run(5 * time.Second)
		wantShut(t, e, &h)
	})
}

// TestPosedSwitchDoesNotStopRouting: a switch of no use must not stop the routing of all others.
func TestPosedSwitchDoesNotStopRouting(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	bad := hosts(l)[3]
	e.hostile = map[string]liar{bad.node.Name: poser(1)}
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.settle(20 * time.Second)
	for _, h := range hosts(l) {
		if pi := e.fab.PortInfo(h.node.Name, h.num); h.node != bad.node && pi.PortState != ib.PortActive {
			t.Errorf("%s is %v, want Active", h.node.Name, pi.PortState)
		}
	}
}

// TestHostsPoseAsTrunk: two hosts pretend that their leaves are cabled to each other.
func TestHostsPoseAsTrunk(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	hs := hosts(l)
	a, b := hs[1], hs[5]
	if a.peer == b.peer {
		t.Fatal("both hosts are on one leaf")
	}
	leaf := l.Find(b.peer)
	silent := func([]ib.PortNum, *sm.Request) (mad.MAD, bool) { return mad.MAD{}, true }
	e.hostile = map[string]liar{b.node.Name: silent}
	e.start()
	e.want(sm.Intent{Revision: 1, Hosts: places(hs)})
	e.run(10 * time.Second)
	turnInto(e, &a, func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if r.MAD.Attr() != mad.AttrNodeInfo || len(rest) > 0 {
			return mad.MAD{}, true
		}
		return answer(r, &mad.NodeInfo{
			BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeSwitch, NumPorts: uint8(leaf.NumPorts()),
			NodeGUID: leaf.GUID, PortGUID: leaf.GUID, LocalPortNum: b.pnum, PartitionCap: 32,
		})
	})
	e.run(30 * time.Second)
	wantShut(t, e, &a)
	wantShut(t, e, &b)
	f := e.view.Fabric
	lid := f.Port(f.PortByGUID(hs[6].node.PortGUID(hs[6].num))).LID
	if out := e.view.Tables.LFT(f.NodeByGUID(l.Find(a.peer).GUID))[lid]; out == a.pnum {
		t.Errorf("%s sends what is for %s to the port of %s", a.peer, hs[6].node.Name, a.node.Name)
	}
}

// TestHostShowsGUIDOfSwitch: a host that is asked first shows the GUID of a switch as its node's or its port's. The switch
// is in the fabric all the same, with all behind it.
func TestHostShowsGUIDOfSwitch(t *testing.T) {
	for _, what := range []string{"node GUID", "port GUID"} {
		l := tree(t, 8, 8)
		e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
		hs := hosts(l)
		var thief, far *endPort
		for i := range hs {
			if hs[i].peer == l.Find("sm").Ports[1].Peer {
				thief = &hs[i]
			} else {
				far = &hs[i]
			}
		}
		ni := mad.NodeInfo{
			NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: thief.node.GUID, PortGUID: thief.node.PortGUID(thief.num),
			LocalPortNum: thief.num, PartitionCap: 32,
		}
		if what == "node GUID" {
			ni.NodeGUID = far.place.Switch
		} else {
			ni.PortGUID = far.place.Switch
		}
		e.hostile = map[string]liar{thief.node.Name: says(ni)}
		e.start()
		e.want(sm.Intent{Revision: 1, Hosts: places(hs), Grants: []sm.Grant{thief.grant(0x8001)}})
		e.run(time.Minute)
		for _, h := range hs {
			if pi := e.fab.PortInfo(h.peer, h.pnum); h.node != thief.node && pi.PortState != ib.PortActive {
				t.Errorf("%s: the port of %s at %s is %v, want Active", what, h.node.Name, h.peer, pi.PortState)
			}
		}
	}
}
