package sm_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

// TestStolenWhileRebooting: a host shows the GUID of another host while that one reboots. Which came first does not matter:
// the granted place gets its host back.
func TestStolenWhileRebooting(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	hs := hosts(l)
	victim, thief := hs[2], hs[5]
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{victim.grant(0x8001)}})
	e.mustSettle(20 * time.Second)
	e.fab.Unlink(victim.node.Name, victim.num)
	turnInto(e, &thief, func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if r.MAD.Attr() != mad.AttrNodeInfo || len(rest) > 0 {
			return mad.MAD{}, false
		}
		return answer(r, &mad.NodeInfo{
			BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeCA, NumPorts: uint8(victim.node.NumPorts()),
			NodeGUID: victim.node.GUID, PortGUID: victim.node.PortGUID(victim.num), LocalPortNum: victim.num, PartitionCap: 32,
		})
	})
	e.run(100 * time.Millisecond)
	e.fab.Relink(victim.node.Name, victim.num, victim.peer, victim.pnum)
	e.arrive(e.st.Take(nil))
	e.run(time.Minute)
	if pi := e.fab.PortInfo(victim.peer, victim.pnum); pi.PortState != ib.PortActive {
		t.Errorf("the victim's port is %v, want Active", pi.PortState)
	}
	if pi := e.fab.PortInfo(thief.peer, thief.pnum); pi.PortState == ib.PortActive {
		t.Error("the thief's port is Active")
	}
	for _, k := range e.fab.PKeys(thief.peer, thief.pnum) {
		if k.Base() == 1 {
			t.Error("the thief's switch port holds the victim's P_Key")
		}
	}
}

// TestNodeGUIDStolenWhileRebooting: a tenant shows another's node GUID, with its own port GUID, while that one reboots.
// Both have grants at their places, so both are served.
func TestNodeGUIDStolenWhileRebooting(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: time.Minute}, 1)
	hs := hosts(l)
	victim, thief := hs[2], hs[5]
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{victim.grant(0x8001), thief.grant(0x8002)}, Hosts: places(hs)})
	e.mustSettle(20 * time.Second)
	e.fab.Unlink(victim.node.Name, victim.num)
	turnInto(e, &thief, says(mad.NodeInfo{
		NodeType: ib.NodeCA, NumPorts: 7, NodeGUID: victim.node.GUID,
		PortGUID: thief.node.PortGUID(thief.num), LocalPortNum: thief.num, PartitionCap: 32,
	}))
	e.run(100 * time.Millisecond)
	e.fab.Relink(victim.node.Name, victim.num, victim.peer, victim.pnum)
	e.arrive(e.st.Take(nil))
	for range 2 {
		e.run(time.Minute)
		for _, h := range []endPort{victim, thief} {
			if pi := e.fab.PortInfo(h.peer, h.pnum); pi.PortState != ib.PortActive {
				t.Errorf("the port of %s is %v, want Active: %q", h.node.Name, pi.PortState, e.problems())
			}
		}
		// The thief releases the name and takes it again: no link is closed.
		e.hostile[thief.node.Name] = nil
		e.takeEvents()
		e.run(2 * time.Minute)
		for _, ev := range e.takeEvents() {
			if g, ok := ev.(*sm.PortGone); ok && g.GUID == victim.node.PortGUID(victim.num) {
				t.Error("the victim's port went with the thief's lie")
			}
		}
	}
}

// twoPorts is an adapter that says it has two ports and is entered by one.
func twoPorts(node ib.GUID, port ib.GUID, num ib.PortNum, keys *uint16) liar {
	state := map[ib.PortNum]*mad.PortInfo{}
	for n := range ib.PortNum(3) {
		state[n] = &mad.PortInfo{PortState: ib.PortInit, MTUCap: ib.MTU4096, VLCap: 4, LinkWidthActive: 2, LinkSpeedActive: 4}
	}
	return func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		switch r.MAD.Attr() {
		case mad.AttrNodeInfo:
			return says(mad.NodeInfo{NodeType: ib.NodeCA, NumPorts: 2, NodeGUID: node, PortGUID: port, LocalPortNum: num, PartitionCap: *keys})(rest, r)
		case mad.AttrPortInfo:
			return poserPort(state, r)
		default:
			return mad.MAD{}, false
		}
	}
}

// TestSecondPortOfAnother: a tenant claims to be the second port of another's adapter, and then that the adapter has room
// for one P_Key. The other tenant keeps its keys.
func TestSecondPortOfAnother(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: 2 * time.Second}, 1)
	hs := hosts(l)
	victim, thief := hs[2], hs[5]
	keys := uint16(32)
	e.hostile = map[string]liar{victim.node.Name: says(mad.NodeInfo{
		NodeType: ib.NodeCA, NumPorts: 2, NodeGUID: victim.node.GUID, PortGUID: victim.node.PortGUID(1), LocalPortNum: 1, PartitionCap: 32,
	})}
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{victim.grant(0x8001), thief.grant(0x8002)}, Hosts: places(hs)})
	e.mustSettle(20 * time.Second)
	lost := 0
	e.onStep = func() {
		if !slices.Contains(e.fab.PKeys(victim.peer, victim.pnum), 0x8001) {
			lost++
		}
	}
	turnInto(e, &thief, twoPorts(victim.node.GUID, thief.node.PortGUID(1), 2, &keys))
	e.run(10 * time.Second)
	keys = 1
	e.run(20 * time.Second)
	if lost > 0 {
		t.Errorf("the victim's port was without its P_Key at %d steps", lost)
	}
	if pi := e.fab.PortInfo(victim.peer, victim.pnum); pi.PortState != ib.PortActive {
		t.Errorf("the victim's port is %v, want Active: %q", pi.PortState, e.problems())
	}
}

// TestGUIDLeftAtPortWithoutCable: two cables of one tenant show an adapter whose second port has the GUID of a host that is
// away, and then lose that cable. The host gets its place back.
func TestGUIDLeftAtPortWithoutCable(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	hs := hosts(l)
	victim, one, two := hs[2], hs[5], hs[6]
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{victim.grant(0x8001)}, Hosts: places(hs)})
	e.mustSettle(20 * time.Second)
	e.fab.Unlink(victim.node.Name, victim.num)
	keys := uint16(32)
	turnInto(e, &one, twoPorts(0xbad, one.node.PortGUID(1), 1, &keys))
	e.run(time.Second)
	turnInto(e, &two, twoPorts(0xbad, victim.node.PortGUID(1), 2, &keys))
	e.run(5 * time.Second)
	e.fab.Unlink(two.node.Name, two.num)
	e.arrive(e.st.Take(nil))
	e.run(time.Second)
	e.fab.Relink(victim.node.Name, victim.num, victim.peer, victim.pnum)
	e.arrive(e.st.Take(nil))
	e.run(time.Minute)
	if pi := e.fab.PortInfo(victim.peer, victim.pnum); pi.PortState != ib.PortActive {
		t.Errorf("the victim's port is %v, want Active: %q", pi.PortState, e.problems())
	}
}

// TestBlameForSecondPort: a tenant that claims to be the second port of another's adapter answers nonsense there, and sends
// traps. The other tenant is not cut off for it.
func TestBlameForSecondPort(t *testing.T) {
	often := health.Rule{Count: 3, Window: time.Hour, Action: health.Isolate}
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{
		AuditPeriod: 2 * time.Second, Health: health.Config{IllegalAnswer: often, SetErrors: often, Noisy: often},
	}, 1)
	hs := hosts(l)
	victim, thief := hs[2], hs[5]
	keys := uint16(32)
	e.hostile = map[string]liar{victim.node.Name: says(mad.NodeInfo{
		NodeType: ib.NodeCA, NumPorts: 2, NodeGUID: victim.node.GUID, PortGUID: victim.node.PortGUID(1), LocalPortNum: 1, PartitionCap: 32,
	})}
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{victim.grant(0x8001), thief.grant(0x8002)}, Hosts: places(hs)})
	e.mustSettle(20 * time.Second)
	port := twoPorts(victim.node.GUID, thief.node.PortGUID(1), 2, &keys)
	turnInto(e, &thief, func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if r.MAD.Attr() == mad.AttrPKeyTable {
			m := r.MAD
			m.Respond(mad.StatusInvalidField)
			return m, true
		}
		return port(rest, r)
	})
	e.run(time.Minute)
	if pi := e.fab.PortInfo(victim.peer, victim.pnum); pi.PortState != ib.PortActive {
		t.Errorf("the victim's port is %v, want Active: %q", pi.PortState, e.problems())
	}
	if !slices.ContainsFunc(e.takeEvents(), func(ev sm.Event) bool { u, ok := ev.(*health.Unhealthy); return ok && u.Place == thief.place }) {
		t.Error("the thief is not blamed")
	}
}
