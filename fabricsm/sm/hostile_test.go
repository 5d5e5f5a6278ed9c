package sm_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// liar answers a request in place of a node. rest is what is left of the
// directed route behind the node; false lets the node itself answer.
type liar func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool)

// lie gives the answer of the first liar on the way of a request.
func (e *env) lie(r *sm.Request) (mad.MAD, bool) {
	route := r.MAD.Route()
	at := e.list.Find("sm")
	for i := 0; len(e.hostile) > 0 && at != nil; i++ {
		if f := e.hostile[at.Name]; f != nil {
			var rest []ib.PortNum
			for j := i; j < route.Len(); j++ {
				rest = append(rest, route.At(j))
			}
			return f(rest, r)
		}
		if i == route.Len() {
			break
		}
		at = e.list.Find(at.Ports[route.At(i)].Peer)
	}
	return mad.MAD{}, false
}

// answer is a well-formed answer with data.
func answer[T any](r *sm.Request, data *T) (mad.MAD, bool) {
	m := r.MAD
	m.Respond(mad.StatusOK)
	if err := mad.Encode(m.Data(), data); err != nil {
		panic(err)
	}
	return m, true
}

// turnInto has a host's adapter go away and come back as f.
func turnInto(e *env, h *endPort, f liar) {
	e.fab.Unlink(h.node.Name, h.num)
	e.arrive(e.st.Take(nil))
	e.run(100 * time.Millisecond)
	if e.hostile == nil {
		e.hostile = map[string]liar{}
	}
	e.hostile[h.node.Name] = f
	e.fab.Relink(h.node.Name, h.num, h.peer, h.pnum)
	e.arrive(e.st.Take(nil))
}

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

func places(hs []endPort) (out []ib.Place) {
	for _, h := range hs {
		out = append(out, h.place)
	}
	return out
}

// wantShut wants a switch port that passes nothing unchecked.
func wantShut(t *testing.T, e *env, h *endPort) {
	t.Helper()
	pi := e.fab.PortInfo(h.peer, h.pnum)
	if pi.PortState == ib.PortActive && !(pi.PartitionEnforcementInbound && pi.PartitionEnforcementOutbound) {
		t.Errorf("%s port %d is Active and checks no P_Keys", h.peer, h.pnum)
	}
}

// A host that says it is a switch would get a port that checks no P_Keys.
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

// A switch of no use must not stop the routing of all others.
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

// Two hosts pretend that their leaves are cabled to each other.
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

// A host that never answers twice the same is written to a bounded number of
// times, and the fabric settles all the same.
func TestAnswersThatNeverHold(t *testing.T) {
	l := tree(t, 4, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	h := hosts(l)[2]
	flip := uint8(0)
	e.hostile = map[string]liar{h.node.Name: func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if len(rest) > 0 || r.MAD.Attr() != mad.AttrPKeyTable || r.MAD.Method() != mad.MethodGet {
			return mad.MAD{}, false
		}
		flip++
		table := mad.PKeyTable{}
		table.PKey[0], table.PKey[1] = ib.DefaultPKeyLimited, ib.PKey(0x8100+uint16(flip))
		return answer(r, &table)
	}}
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{h.grant(0x8001)}})
	e.run(10 * time.Second)
	const most = 2000
	if n := e.smps["Set P_KeyTable"] + e.smps["Get P_KeyTable"]; n > most {
		t.Errorf("%d requests about P_Keys in ten seconds, want at most %d: %v", n, most, e.smps)
	}
	if !e.settle(20 * time.Second) {
		t.Errorf("one host keeps the fabric from settling: %v", e.smps)
	}
}

// A host shows another's GUID while that one reboots. Who came first does not
// matter: the granted place gets its host back.
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

// A device that claims a P_Key table of 65535 entries is not read to its end.
func TestClaimedTableIsBounded(t *testing.T) {
	l := tree(t, 4, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	h := hosts(l)[2]
	e.hostile = map[string]liar{h.node.Name: func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if len(rest) > 0 {
			return mad.MAD{}, false
		}
		switch r.MAD.Attr() {
		case mad.AttrNodeInfo:
			return answer(r, &mad.NodeInfo{
				BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeCA, NumPorts: uint8(h.node.NumPorts()),
				NodeGUID: h.node.GUID, PortGUID: h.node.PortGUID(h.num), LocalPortNum: h.num, PartitionCap: 65535,
			})
		case mad.AttrPKeyTable:
			m := r.MAD
			m.Respond(mad.StatusOK)
			return m, true
		default:
			return mad.MAD{}, false
		}
	}}
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{h.grant(0x8001)}})
	e.run(10 * time.Second)
	const most = 1000 // 32 blocks read and written a few times, and the honest devices
	if n := e.smps["Set P_KeyTable"] + e.smps["Get P_KeyTable"]; n == 0 || n > most {
		t.Errorf("%d requests about P_Keys, want 1 to %d: %v", n, most, e.smps)
	}
}

// says has a node answer NodeInfo of its choice, and the rest by itself.
func says(ni mad.NodeInfo) liar {
	ni.BaseVersion, ni.ClassVersion = 1, 1
	return func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if r.MAD.Attr() != mad.AttrNodeInfo || len(rest) > 0 {
			return mad.MAD{}, false
		}
		return answer(r, &ni)
	}
}

// A tenant shows another's node GUID, with its own port GUID, while that one
// reboots. Both have grants at their places, so both are served.
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
		// The thief lets go of the name and takes it again: nobody's link goes.
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

// A host that is asked first shows the GUID of a switch as its node's or its
// port's: the switch is in the fabric all the same, with all behind it.
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

// A host says that it has the highest LID there is. It gets the next one: tables
// up to the highest would not fit every switch, and take long to be written.
func TestHostClaimsHighLID(t *testing.T) {
	for _, when := range []string{"from the start", "under a new GUID"} {
		l := tree(t, 8, 8)
		e := newEnv(t, l, sim.Options{LoseSilently: true, LinearCap: 1024}, sm.Config{AuditPeriod: -1}, 1)
		hs := hosts(l)
		thief, late := hs[5], hs[2]
		state := map[ib.PortNum]*mad.PortInfo{}
		lies := func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
			switch r.MAD.Attr() {
			case mad.AttrNodeInfo:
				return says(mad.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 0xbad1, PortGUID: 0xbad2, LocalPortNum: 1, PartitionCap: 32})(rest, r)
			case mad.AttrPortInfo:
				m, _ := poserPort(state, r)
				var pi mad.PortInfo
				if err := mad.Decode(m.Data(), &pi); err != nil {
					t.Fatal(err)
				}
				pi.LID = ib.MaxUnicastLID
				return answer(r, &pi)
			default:
				return mad.MAD{}, false
			}
		}
		if when == "from the start" {
			e.hostile = map[string]liar{thief.node.Name: lies}
		}
		e.start()
		e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{thief.grant(0x8002)}, Hosts: places(hs)})
		e.run(10 * time.Second)
		if when != "from the start" {
			turnInto(e, &thief, lies)
			e.run(10 * time.Second)
		}
		e.fab.Unlink(late.node.Name, late.num)
		e.arrive(e.st.Take(nil))
		e.run(time.Second)
		e.fab.Relink(late.node.Name, late.num, late.peer, late.pnum)
		e.arrive(e.st.Take(nil))
		e.run(10 * time.Second)
		if top := e.view.Tables.MaxLID; top > 100 {
			t.Errorf("%s: switches hold tables up to LID %d", when, top)
		}
		if pi := e.fab.PortInfo(late.peer, late.pnum); pi.PortState != ib.PortActive {
			t.Errorf("%s: the port of a host that came later is %v, want Active: %q", when, pi.PortState, e.problems())
		}
	}
}

// Switches refuse more blocks of their tables than may be out to one of them: they
// are asked again after pauses, not at once.
func TestManyBlocksRefused(t *testing.T) {
	l := tree(t, 8, 8)
	h := hosts(l)[3]
	e := newEnv(t, l, sim.Options{LinearCap: 1024}, sm.Config{
		AuditPeriod: -1, LIDs: sm.LIDConfig{Preferred: []sm.PreferredLID{{GUID: h.node.PortGUID(h.num), LID: 5000}}},
	}, 1)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.run(10 * time.Second)
	const most = 6 * 80 * 6 // switches, blocks, and tries with growing pauses
	if n := e.smps["Set LinearForwardingTable"]; n > most {
		t.Errorf("%d Sets of tables, want at most %d", n, most)
	}
	for _, o := range hosts(l) {
		if pi := e.fab.PortInfo(o.peer, o.pnum); o.node != h.node && pi.PortState != ib.PortActive {
			t.Errorf("%s is %v, want Active", o.node.Name, pi.PortState)
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

// A tenant says that it is the second port of another's adapter, and then that
// the adapter has room for one P_Key: the other keeps its keys.
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

// Two cables of one tenant show an adapter whose second port has the GUID of a
// host that is away, and then lose that cable. The host gets its place back.
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

// A host comes back under ever new GUIDs: tables do not grow with them.
func TestEverNewGUIDsAtOnePlace(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	hs := hosts(l)
	h := hs[5]
	e.start()
	e.want(sm.Intent{Revision: 1, Hosts: places(hs)})
	e.mustSettle(20 * time.Second)
	before := e.view.Tables.MaxLID
	for i := range ib.GUID(100) {
		turnInto(e, &h, says(mad.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 0xbad, PortGUID: 0xbad0000 + i, LocalPortNum: 1, PartitionCap: 32}))
		e.run(8 * time.Second)
	}
	if top := e.view.Tables.MaxLID; top > before+20 {
		t.Errorf("tables reach LID %d, want at most 20 more than %d", top, before)
	}
	owned := map[ib.GUID]ib.LID{}
	for _, f := range e.facts {
		if owned[f.GUID] = f.LID; f.LID == 0 {
			delete(owned, f.GUID)
		}
	}
	if len(owned) > 12+20 {
		t.Errorf("%d GUIDs own LIDs", len(owned))
	}
}

// A tenant that says it is the second port of another's adapter answers nonsense
// there, and sends traps: not the other is cut off for it.
func TestBlameForSecondPort(t *testing.T) {
	often := sm.HealthRule{Count: 3, Window: time.Hour, Action: sm.Isolate}
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{
		AuditPeriod: 2 * time.Second, Health: sm.HealthConfig{IllegalAnswer: often, SetErrors: often, Noisy: often},
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
	if !slices.ContainsFunc(e.takeEvents(), func(ev sm.Event) bool { u, ok := ev.(*sm.Unhealthy); return ok && u.Place == thief.place }) {
		t.Error("the thief is not blamed")
	}
}

// What a device calls itself cannot steer a terminal.
func TestHostileNames(t *testing.T) {
	l := tree(t, 2, 4)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	h := hosts(l)[0]
	e.hostile = map[string]liar{h.node.Name: func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if len(rest) > 0 || r.MAD.Attr() != mad.AttrNodeDescription {
			return mad.MAD{}, false
		}
		m := r.MAD
		m.Respond(mad.StatusOK)
		clear(m.Data())
		copy(m.Data(), "\x1b]0;a\a\u202eb\u2028c\u200b\u009bd\xffé\x00rest")
		return m, true
	}}
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.run(10 * time.Second)
	f := e.view.Fabric
	if name := f.NodeOf(f.PortByGUID(h.node.PortGUID(h.num))).Description; name != "?]0;a??b?c??d?é" {
		t.Errorf("its name is %q", name)
	}
}
