package sm_test

import (
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/topospec"
)

// watchKeys fails the test when a key of one device is shown to another one. That other one is the device at the end of the
// directed route, as cables really are, or an adapter on the way, which forwards nothing. Where places are those seen,
// switches may be shown keys of one another: a device that shows a GUID is trusted.
func (e *env) watchKeys() {
	told := make(map[string]bool)
	e.logSend = func(r *sm.Request) {
		key := r.MAD.MKey()
		if key.IsZero() {
			return
		}
		at := e.reached(&r.MAD)
		if at == "" || e.cfg.MKey.Places == keyplace.Seen && e.list.Find(at).Type == ib.NodeSwitch {
			return
		}
		for _, p := range managementPorts(e.list) {
			rec := e.keys[p.guid]
			for _, h := range []keys.Held{rec.Current, rec.Pending, rec.Previous} {
				if text := fmt.Sprintf("the key of %s was shown to %s", p.node, at); h.Key.M() == key && p.node != at && !told[text] {
					told[text] = true
					e.t.Errorf("%s, by %v %v at %v", text, r.MAD.Method(), r.MAD.Attr(), e.now.Sub(epoch))
				}
			}
		}
	}
}

// reached returns the node at which a directed route ends, "" for none.
func (e *env) reached(m *mad.MAD) string {
	route := m.Route()
	at := "sm"
	for i := range route.Len() {
		if i > 0 && e.list.Find(at).Type != ib.NodeSwitch {
			return at
		}
		end, ok := e.fab.Cable(at, route.At(i))
		if !ok {
			return ""
		}
		at = end.Node
	}
	return at
}

// places of keys, with what each needs.
func keyPlaces(t *testing.T, l *netlist.Netlist) map[string]sm.Config {
	out := make(map[string]sm.Config)
	out["seen"] = keyed(t)
	for mode := topospec.Observe; mode <= topospec.Enforce; mode++ {
		cfg := keyed(t)
		cfg.MKey.Places = keyplace.Declared
		cfg.Topology = sm.TopologyConfig{Spec: law(t, l), Mode: mode}
		out[fmt.Sprintf("declared, %v", mode)] = cfg
	}
	return out
}

// TestSwitchKeyIsNotForAdapters: after a restart, a host shows the port GUID of a switch before the switch is found. The
// key of a switch, which is bound to no place, is not shown to the host.
func TestSwitchKeyIsNotForAdapters(t *testing.T) {
	l := tree(t, 4, 4)
	for name, cfg := range keyPlaces(t, l) {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			e.watchKeys()
			e.start()
			e.mustSettle(time.Minute)
			sm1, _ := e.fab.Cable("sm", 1)
			for _, h := range hosts(l) {
				if h.peer != sm1.Node {
					continue
				}
				for i := range l.Nodes {
					if s := &l.Nodes[i]; s.Type == ib.NodeSwitch && s.Name != h.peer {
						if err := e.fab.Lie(h.node.Name, h.num, mad.NodeInfo{
							BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeCA, NumPorts: uint8(len(h.node.Ports) - 1),
							NodeGUID: h.node.GUID, PortGUID: s.GUID, SystemImageGUID: h.node.GUID, PartitionCap: 128,
						}); err != nil {
							t.Fatal(err)
						}
						e.start()
						e.run(5 * time.Second)
					}
				}
			}
		})
	}
}

// TestSwitchKeyIsNotForPosers: a host shows that it is a switch of the fabric,
// before that one is found after a restart.
func TestSwitchKeyIsNotForPosers(t *testing.T) {
	l := tree(t, 4, 4)
	for name, cfg := range keyPlaces(t, l) {
		t.Run(name, func(t *testing.T) {
			for _, port := range []ib.PortNum{1, 2, 3, 4} {
				e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
				e.watchKeys()
				e.start()
				e.mustSettle(time.Minute)
				sm1, _ := e.fab.Cable("sm", 1)
				for _, h := range hosts(l) {
					if h.peer != sm1.Node {
						continue
					}
					for i := range l.Nodes {
						if s := &l.Nodes[i]; s.Type == ib.NodeSwitch && s.Name != h.peer {
							e.hostile = map[string]liar{h.node.Name: posesAs(s, port)}
							e.start()
							e.run(5 * time.Second)
							e.hostile = nil
							e.start()
							e.mustSettle(2 * time.Minute)
							e.checkKeys()
						}
					}
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// posesAs is an adapter that poses as a switch there is, entered by a port.
func posesAs(s *netlist.Node, port ib.PortNum) liar {
	state := map[ib.PortNum]*mad.PortInfo{}
	for n := range ib.PortNum(uint8(len(s.Ports))) {
		pi := &mad.PortInfo{PortState: ib.PortInit, PortPhysicalState: ib.PhysLinkUp, MTUCap: ib.MTU4096, VLCap: 4, LinkWidthActive: 2, LinkSpeedActive: 4}
		if n == 0 {
			pi.PortState = ib.PortActive
		}
		state[n] = pi
	}
	return func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if len(rest) > 0 {
			return mad.MAD{}, true // nothing comes back
		}
		switch r.MAD.Attr() {
		case mad.AttrNodeInfo:
			return answer(r, &mad.NodeInfo{
				BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeSwitch, NumPorts: uint8(len(s.Ports) - 1),
				NodeGUID: s.GUID, PortGUID: s.GUID, SystemImageGUID: s.GUID, PartitionCap: 32, LocalPortNum: port,
			})
		case mad.AttrSwitchInfo:
			return answer(r, &mad.SwitchInfo{LinearFDBCap: 49152, PartitionEnforcementCap: 32})
		case mad.AttrPortInfo:
			return poserPort(state, r)
		default:
			m := r.MAD
			m.Respond(mad.StatusOK)
			return m, true
		}
	}
}

// TestRotationDespiteHosts: a host that does not answer a request, or answers it with an error, does not keep other devices
// from getting new keys.
func TestRotationDespiteHosts(t *testing.T) {
	for _, tt := range []struct {
		name string
		on   func(m *mad.MAD, rotating bool) (answered, silent bool)
	}{
		{"it refuses to be read while keys change", func(m *mad.MAD, rotating bool) (bool, bool) {
			return rotating && m.Attr() == mad.AttrPortInfo && m.Method() == mad.MethodGet, false
		}},
		{"it refuses whatever is asked while keys change", func(_ *mad.MAD, rotating bool) (bool, bool) { return rotating, false }},
		{"it is silent when asked whether it holds two keys", func(m *mad.MAD, _ bool) (bool, bool) {
			return false, m.Attr() == mad.AttrMlnxExtendedPortInfo
		}},
		{"it falls silent when it is asked for its name", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := tree(t, 6, 4)
			cfg := rotating(t)
			cfg.PerTarget = 1
			e := newEnv(t, l, dual, cfg, 1)
			bad := hosts(l)[1]
			turn, quiet := false, false
			on := tt.on
			if on == nil {
				on = func(m *mad.MAD, _ bool) (bool, bool) {
					quiet = quiet || m.Attr() == mad.AttrNodeDescription
					return false, quiet
				}
			}
			e.hostile = map[string]liar{bad.node.Name: func(_ []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
				answered, silent := on(&r.MAD, turn)
				if !answered && !silent {
					return mad.MAD{}, false
				}
				m := r.MAD
				if m.Respond(mad.StatusUnsupportedMethodAttr); silent {
					m = mad.MAD{}
				}
				return m, true
			}}
			e.start()
			e.settle(20 * time.Second)
			e.run(55*time.Second - e.now.Sub(epoch))
			turn = true
			e.run(4 * time.Minute)
			for guid, rec := range e.keys {
				if guid != bad.node.PortGUID(1) && rec.Current.Epoch < 3 {
					t.Errorf("%v is on epoch %d after four periods", guid, rec.Current.Epoch)
				}
			}
		})
	}
}

// TestKeysOfGUIDsWithoutEnd: a host that shows another GUID each time it is asked
// does not have keys and records made without end.
func TestKeysOfGUIDsWithoutEnd(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 4})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, keyed(t), 1)
	e.start()
	e.mustSettle(time.Minute)
	h := hosts(l)[1]
	for i := range 100 {
		e.fab.Unlink(h.node.Name, 1)
		e.arrive(e.st.Take(nil))
		e.run(2 * time.Second)
		if err := e.fab.SetGUIDs(h.node.Name, ib.GUID(0x10000+16*i), ib.GUID(0x10000+16*i)); err != nil {
			t.Fatal(err)
		}
		e.fab.Reboot(h.node.Name)
		e.fab.Relink(h.node.Name, 1, h.peer, h.pnum)
		e.arrive(e.st.Take(nil))
		e.run(4 * time.Second)
	}
	if n := len(e.keys); n > 40 {
		t.Errorf("%d devices have keys in a fabric of 5", n)
	}
}

// TestEachShownKeyIsRenewed: two adapters were assigned keys at one place, one after the other. A device that is silent
// when asked under the first key has seen that, too.
func TestEachShownKeyIsRenewed(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 6})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, keyed(t), 1)
	h := hosts(l)[0]
	e.start()
	e.mustSettle(time.Minute)
	replug := func(change func()) {
		e.fab.Unlink(h.node.Name, 1)
		e.run(3 * time.Second)
		change()
		if err := e.fab.Relink(h.node.Name, 1, h.peer, h.pnum); err != nil {
			t.Fatal(err)
		}
		e.run(3 * time.Second)
	}
	replug(func() {
		if err := e.fab.SetGUIDs(h.node.Name, 0x77770000, 0x77770000); err != nil {
			t.Fatal(err)
		}
		e.fab.Reboot(h.node.Name)
	})
	shown := make(map[ib.MKey]bool)
	replug(func() {
		e.hostile = map[string]liar{h.node.Name: func(_ []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
			if !r.MAD.MKey().IsZero() {
				shown[r.MAD.MKey()] = true
			}
			if r.MAD.Attr() != mad.AttrNodeInfo || len(shown) < 2 {
				return mad.MAD{}, true
			}
			return answer(r, &mad.NodeInfo{
				BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 0x66660000, PortGUID: 0x66660001, PartitionCap: 32, LocalPortNum: 1,
			})
		}}
	})
	exposed := make(map[ib.GUID]bool)
	for _, ev := range e.takeEvents() {
		if x, ok := ev.(*keyevent.KeyExposed); ok {
			exposed[x.GUID] = true
		}
	}
	for guid, rec := range e.keys {
		if shown[rec.Current.Key.M()] && !exposed[guid] {
			t.Errorf("the key of %v was shown to somebody else, and nobody noticed", guid)
		}
	}
	if len(shown) < 2 {
		t.Errorf("%d keys were tried, want those of two adapters", len(shown))
	}
}
