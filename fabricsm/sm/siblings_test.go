package sm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// managedBy starts a core on the adapter of another node with the same facts, and returns
// which Sets it sends until the fabric is settled.
func (e *env) managedBy(node string, siblings ...sm.Sibling) map[string]int {
	e.t.Helper()
	e.cfg.Siblings = siblings
	before := make(map[string]int)
	for kind, n := range e.smps {
		before[kind] = n
	}
	e.moveTo(node)
	e.mustSettle(10 * time.Second)
	sets := make(map[string]int)
	for kind, n := range e.smps {
		if d := n - before[kind]; d > 0 && strings.HasPrefix(kind, "Set ") {
			sets[kind] = d
		}
	}
	return sets
}

// siblingAt returns the port of a node with its place.
func siblingAt(l *netlist.Netlist, node string) sm.Sibling {
	p := l.Find(node).Ports[1]
	return sm.Sibling{GUID: l.Find(node).PortGUID(1), Place: ib.Place{Switch: l.Find(p.Peer).GUID, Port: p.PeerPort}}
}

// TestSiblingTakesOver: an instance that takes over from a sibling, with its facts, writes
// where the Subnet Manager is and nothing else: no LID, no route, no P_Key, and no host is
// asked to register again. A forged GUID of a sibling, at another place, gets no full
// membership.
func TestSiblingTakesOver(t *testing.T) {
	l := tree(t, 16, 8)
	hs := hosts(l)
	first, second := hs[0].node.Name, hs[9].node.Name
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	both := []sm.Sibling{siblingAt(l, first), siblingAt(l, second)}
	e.managedBy(first, both...)
	e.managedBy(second, both...)

	asked := countRenewals(e)
	lids, before := e.shownLIDs(l), e.fab.PKeyTable(second, 1)
	sets := e.managedBy(first, both...)
	for kind := range sets {
		if kind != "Set PortInfo" {
			t.Errorf("%d times %s, want only PortInfo, which says where the SM is", sets[kind], kind)
		}
	}
	if n := sets["Set PortInfo"]; n == 0 || n > len(l.Nodes) {
		t.Errorf("%d Sets of PortInfo for %d nodes", n, len(l.Nodes))
	}
	if len(asked) > 0 {
		t.Errorf("clients were asked to register again: %v", asked)
	}
	for name, lid := range e.shownLIDs(l) {
		if lid != lids[name] {
			t.Errorf("the LID of %s went from %d to %d", name, lids[name], lid)
		}
	}
	if now := e.fab.PKeyTable(second, 1); now[0] != before[0] || !hasFull(now) {
		t.Errorf("P_Keys of the sibling that was master: %v, before %v", now, before)
	}

	// Without the word that they are siblings, each of these happens.
	sets = e.managedBy(second)
	if sets["Set P_KeyTable"] == 0 || len(asked) == 0 {
		t.Errorf("a stranger's port keeps its P_Keys (%v), or clients are not asked (%v)", sets, asked)
	}
	wrong := both[0]
	wrong.Place.Port++
	e.managedBy(second, wrong)
	if hasFull(e.fab.PKeyTable(first, 1)) {
		t.Errorf("a sibling's GUID at another place is a full member of the default partition")
	}
}

// TestSuccessionOfMKeys: an instance that takes over changes the M_Keys of devices at once,
// switches first. After ten seconds no device obeys the instance before it.
func TestSuccessionOfMKeys(t *testing.T) {
	l := tree(t, 16, 8)
	cfg := keyed(t)
	cfg.MKey.Rotation = keys.DefaultRotation()
	e := newEnv(t, l, dual, cfg, 1)
	e.start()
	e.mustSettle(time.Minute)
	before := e.mkeysNow()
	e.cfg.MKey.Rotation.Succeeds = true
	var order []ib.GUID
	e.onStep = func() {
		for guid, k := range e.mkeysNow() {
			if k != before[guid] && !slices.Contains(order, guid) {
				order = append(order, guid)
			}
		}
	}
	began := e.now
	e.managedBy(hosts(l)[9].node.Name)
	for len(order) < len(before) && e.now.Sub(began) < time.Minute {
		e.run(100 * time.Millisecond)
	}
	e.run(keys.SuccessionGrace + time.Second)
	if took := e.now.Sub(began); len(order) < len(before) || took > 30*time.Second {
		t.Fatalf("%d of %d devices have new keys after %v", len(order), len(before), took)
	}
	adapters := false
	for _, guid := range order {
		n := nodeOf(l, guid)
		if n.Type != ib.NodeSwitch {
			adapters = true
		} else if adapters {
			t.Errorf("switch %s got its key after an adapter", n.Name)
		}
	}
	for guid, old := range before {
		rec := e.keys[guid]
		if !rec.Previous.IsZero() || rec.Current.Key.M() == old {
			t.Errorf("%v obeys the key of the instance before", guid)
		}
	}
	e.checkKeys()
}

// nodeOf returns the node of an end port.
func nodeOf(l *netlist.Netlist, guid ib.GUID) *netlist.Node {
	for _, p := range managementPorts(l) {
		if p.guid == guid {
			return l.Find(p.node)
		}
	}
	return nil
}

func hasFull(table []ib.PKey) bool {
	for _, k := range table {
		if k == ib.DefaultPKeyFull {
			return true
		}
	}
	return false
}

// TestLatePacketOfTheInstanceBefore: an instance that led before is stopped between its look at the lease and a packet, and
// sends it after the next one has read back that a P_Key is gone. The removal is reported only when no device obeys
// such a packet, of tables that were read after that.
func TestLatePacketOfTheInstanceBefore(t *testing.T) {
	l := tree(t, 16, 8)
	hs := hosts(l)
	first, second, far := hs[0].node.Name, hs[9].node.Name, hs[5]
	at := siblingAt(l, far.node.Name)
	p := l.Find(far.node.Name).Ports[1]
	cfg := keyed(t)
	cfg.MKey.Rotation = keys.DefaultRotation()
	cfg.AuditPeriod = -1
	e := newEnv(t, l, dual, cfg, 1)
	e.start()
	g := sm.Grant{GUID: at.GUID, PKey: 0x8011, Place: at.Place}
	e.want(sm.Intent{Revision: 10, Grants: []sm.Grant{g}})
	e.mustSettle(time.Minute)
	holds := func() bool { return slices.Contains(e.fab.PKeyTable(p.Peer, p.PeerPort), g.PKey) }
	if !holds() {
		t.Fatal("the switch port does not have the P_Key")
	}
	old, table := e.mkeysNow()[at.Place.Switch], e.fab.PKeyTable(p.Peer, p.PeerPort)

	e.cfg.MKey.Rotation.Succeeds = true
	e.managedBy(second)
	e.takeEvents()
	e.want(sm.Intent{Revision: 20, Absent: []sm.Grant{g}})
	e.mustSettle(time.Minute)
	if holds() {
		t.Fatal("the switch port still has the P_Key")
	}
	removed := func() bool {
		_, ok := find(e.takeEvents(), func(r *sm.MembershipRemoved) bool { return r.GUID == g.GUID })
		return ok
	}
	if removed() {
		t.Error("the removal is reported before devices drop the keys of the instance before")
	}
	setPKeys(e, first, at.Place, old, table)
	if !holds() {
		t.Fatal("the late packet was refused, so this test shows nothing")
	}
	began := e.now
	for !removed() {
		if e.run(100 * time.Millisecond); e.now.Sub(began) > 2*keys.SuccessionGrace {
			t.Fatal("the removal is never reported")
		}
	}
	if holds() {
		t.Error("the removal is reported of a switch port that has the P_Key")
	}
	if setPKeys(e, first, at.Place, old, table); holds() {
		t.Error("the switch obeys the instance before after the removal was reported")
	}
}

// setPKeys has a node send a Set of the P_Key table of a switch port, under an M_Key of that switch.
func setPKeys(e *env, from string, at ib.Place, key ib.MKey, table []ib.PKey) {
	e.t.Helper()
	var lid ib.LID
	for _, p := range managementPorts(e.list) {
		if p.guid == at.Switch {
			lid = e.fab.PortInfo(p.node, p.num).LID
		}
	}
	late := &sim.Forged{SLID: e.fab.PortInfo(from, 1).LID, DLID: lid}
	mad.NewSMP(&late.MAD, mad.Header{Method: mad.MethodSet, Attr: mad.AttrPKeyTable, Mod: mad.PKeyTableMod(at.Port, 0), TID: 7}, nil, key)
	var block mad.PKeyTable
	copy(block.PKey[:], table)
	if err := mad.Encode(late.MAD.Data(), &block); err != nil {
		e.t.Fatal(err)
	}
	e.forge(from, late)
}
