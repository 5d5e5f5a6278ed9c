package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

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

// TestHostileNames checks that the name that a device reports of itself cannot steer a terminal.
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
