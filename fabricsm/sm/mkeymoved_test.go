package sm_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/sham"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/mkeys/keyimport"
)

// moveTo has the subnet manager start on the adapter of another node, with what was saved.
func (e *env) moveTo(node string) {
	e.t.Helper()
	e.st.SetIsSM(false)
	e.st.Close()
	st, err := e.fab.Station(node, true)
	if err != nil {
		e.t.Fatal(err)
	}
	e.st, e.cfg.PortGUID = st, st.GUID()
	e.start()
}

// written is what a subnet manager has written to devices, by what and where.
type written map[string]string

// written reads the LIDs, M_Keys, routes and P_Keys of all devices, but for the P_Keys of
// the adapters that a subnet manager runs on: it is a full member of the default partition.
func (e *env) written(managers ...endPort) written {
	out := make(written)
	for _, p := range managementPorts(e.list) {
		pi := e.fab.PortInfo(p.node, p.num)
		out[fmt.Sprintf("LID of %s/%d", p.node, p.num)] = fmt.Sprint(pi.LID)
		out[fmt.Sprintf("M_Key of %s/%d", p.node, p.num)] = fmt.Sprintf("%x, level %d", pi.MKey.Reveal(), pi.MKeyProtectBits)
	}
	for i := range e.list.Nodes {
		n := &e.list.Nodes[i]
		for num := 1; num < len(n.Ports); num++ {
			at := fmt.Sprintf("%s/%d", n.Name, num)
			if !slices.ContainsFunc(managers, func(m endPort) bool {
				return at == fmt.Sprintf("%s/%d", m.node.Name, m.num) || at == fmt.Sprintf("%s/%d", m.peer, m.pnum)
			}) {
				out["P_Keys of "+at] = fmt.Sprint(e.fab.PKeyTable(n.Name, ib.PortNum(num)))
			}
		}
		for lid := ib.LID(1); n.Type == ib.NodeSwitch && lid < 64; lid++ {
			out[fmt.Sprintf("route of %s to %d", n.Name, lid)] = fmt.Sprint(e.fab.Egress(n.Name, lid))
		}
	}
	return out
}

// ownEnd returns the port of the node "sm".
func (e *env) ownEnd() endPort {
	n := e.list.Find("sm")
	return endPort{node: n, num: 1, peer: n.Ports[1].Peer, pnum: n.Ports[1].PeerPort}
}

// elsewhere returns the last host that is not on the switch of the node "sm".
func (e *env) elsewhere() endPort {
	hs := slices.DeleteFunc(hosts(e.list), func(h endPort) bool { return h.peer == e.ownEnd().peer })
	if len(hs) == 0 {
		e.t.Fatal("every host is on the switch of the subnet manager")
	}
	return hs[len(hs)-1]
}

// unmoved fails the test where the subnet manager, on the adapter of a node, has changed
// devices, or has not brought the fabric under management.
func (e *env) unmoved(node string, before written, managers ...endPort) {
	e.t.Helper()
	if d := cmp.Diff(before, e.written(managers...)); d != "" {
		e.t.Errorf("on %s: devices were changed (-before +after):\n%s", node, d)
	}
	e.checkKeys()
	if p := e.problems(); len(p) > 0 {
		e.t.Errorf("on %s: problems %q", node, p)
	}
	for _, set := range []string{"Set LinearForwardingTable", "Set MulticastForwardingTable", "Set SLtoVLMappingTable"} {
		if e.smps[set] > 0 {
			e.t.Errorf("on %s: %d times %s", node, e.smps[set], set)
		}
	}
	if n := e.smps["Set P_KeyTable"]; n > 4 {
		e.t.Errorf("on %s: %d Sets of P_Key tables, want at most one for each port of the two cables", node, n)
	}
	if n := e.view.Fabric.NumNodes(); n != len(e.list.Nodes) {
		e.t.Errorf("on %s: %d nodes are seen, want %d", node, n, len(e.list.Nodes))
	}
	for _, p := range managementPorts(e.list) {
		if n := e.fab.PortInfo(p.node, p.num).MKeyViolations; n != 0 {
			e.t.Errorf("on %s: %s/%d counted %d SMPs with a wrong key", node, p.node, p.num, n)
		}
	}
}

// TestManagerMoves: started on the adapter of another host, with what was saved, the
// subnet manager has the fabric at once. It changes no LID, route or M_Key, and no P_Key
// but those of the two adapters that change their role; and so on the way back.
func TestManagerMoves(t *testing.T) {
	l := tree(t, 12, 8)
	for name, cfg := range keyPlaces(t, l) {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			home, away := e.ownEnd(), e.elsewhere()
			in := sm.Intent{Revision: 1, Grants: []sm.Grant{hosts(l)[2].grant(0x8001), hosts(l)[5].grant(0x8002)}}
			e.start()
			e.want(in)
			e.mustSettle(time.Minute)
			e.checkKeys()
			for _, node := range []string{away.node.Name, "sm", away.node.Name} {
				before := e.written(home, away)
				clear(e.smps)
				e.moveTo(node)
				e.want(in)
				e.mustSettle(time.Minute)
				e.unmoved(node, before, home, away)
			}
		})
	}
}

// TestManagerMovesByExport: the keys and neighbours of an export are enough to have the
// fabric from another adapter with no other state. Devices stay on their keys, and do so
// once the import is taken away.
func TestManagerMovesByExport(t *testing.T) {
	l := tree(t, 12, 8)
	for name, cfg := range keyPlaces(t, l) {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			home, away := e.ownEnd(), e.elsewhere()
			in := sm.Intent{Revision: 1, Grants: []sm.Grant{hosts(l)[2].grant(0x8001)}}
			e.start()
			e.want(in)
			e.mustSettle(time.Minute)
			before := e.written(home, away)
			e.facts, e.keys = nil, make(map[ib.GUID]keys.Record)
			e.cfg.MKey.Source = ours(t, nil).Source
			for _, left := range []*keyimport.Keys{{Keys: imported(e.mkeysNow()), Behind: neighbours(l), Keep: true}, nil} {
				e.cfg.MKey.Import = left
				clear(e.smps)
				e.moveTo(away.node.Name)
				e.want(in)
				e.mustSettle(time.Minute)
				e.unmoved(away.node.Name, before, home, away)
			}
		})
	}
}

// TestManagerOnAnAdapterNeverSeen: where neither state nor topology says which switch the
// adapter is cabled to, no key is shown, and the problem names the setting and the
// switches to choose from. With the setting, or a declared place, the fabric is managed.
func TestManagerOnAnAdapterNeverSeen(t *testing.T) {
	l := tree(t, 12, 8)
	for _, tt := range []struct {
		name, places string
		attached     bool
		problem      string
	}{
		{name: "nothing says where it is", places: "seen", problem: "nothing says which switch it is cabled to"},
		{name: "the operator says it", places: "seen", attached: true},
		{name: "the topology says it", places: "declared, enforce"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEnv(t, l, sim.Options{LoseSilently: true}, keyPlaces(t, l)[tt.places], 1)
			home, away := e.ownEnd(), e.elsewhere()
			e.fab.Unlink(away.node.Name, 1)
			e.start()
			e.want(sm.Intent{Revision: 1})
			e.mustSettle(time.Minute)
			rest := func() written {
				w := e.written(home, away)
				maps.DeleteFunc(w, func(k, _ string) bool { return strings.HasSuffix(k, " of "+away.node.Name+"/1") })
				return w
			}
			before := rest()
			if err := e.fab.Relink(away.node.Name, 1, away.peer, away.pnum); err != nil {
				t.Fatal(err)
			}
			if tt.attached {
				e.cfg.MKey.AttachedTo = l.Find(away.peer).GUID
			}
			e.moveTo(away.node.Name)
			e.want(sm.Intent{Revision: 1})
			if tt.problem != "" {
				e.run(10 * time.Second)
				said := fmt.Sprint(e.problems())
				for _, want := range []string{tt.problem, "fabric.attached_to", l.Find(away.peer).GUID.String(), "the own port of the subnet manager, " + away.node.PortGUID(away.num).String()} {
					if !strings.Contains(said, want) {
						t.Errorf("problems %s do not say %s", said, want)
					}
				}
				if strings.Contains(said, ib.Place{}.String()) {
					t.Errorf("problems %s name a place that is none", said)
				}
				return
			}
			e.mustSettle(time.Minute)
			// The route to the adapter, which was away, is the one thing that is new.
			after := rest()
			maps.DeleteFunc(after, func(k, v string) bool {
				return strings.HasPrefix(k, "route ") && before[k] == "0" || strings.HasPrefix(k, "route ") && before[k] == "255"
			})
			for k, v := range after {
				if before[k] != v {
					t.Errorf("%s is %s, was %s", k, v, before[k])
				}
			}
			e.checkKeys()
			if p := e.problems(); len(p) > 0 {
				t.Errorf("problems %q", p)
			}
		})
	}
}

// TestNoKeyForPosersAtOwnCable: the state is started on an adapter that was never seen,
// and is cabled to a host that shows switches of the fabric: it is sent no key of theirs.
func TestNoKeyForPosersAtOwnCable(t *testing.T) {
	for _, weak := range []bool{false, true} {
		t.Run(fmt.Sprintf("any neighbour is believed: %v", weak), func(t *testing.T) {
			l := tree(t, 12, 8)
			hs := hosts(l)
			a, b := hs[len(hs)-1], hs[len(hs)-2]
			for _, h := range []endPort{a, b} {
				l.Find(h.peer).Ports[h.pnum].Peer = ""
			}
			a.node.Ports[1].Peer, a.node.Ports[1].PeerPort = b.node.Name, 1
			b.node.Ports[1].Peer, b.node.Ports[1].PeerPort = a.node.Name, 1
			cfg := keyed(t)
			cfg.Growth = sm.DefaultConfig().Growth
			if weak {
				cfg.Controls.Keys = anyNeighbour{}
			}
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			e.start()
			e.mustSettle(time.Minute)
			names := make(map[ib.MKey]string)
			for _, p := range managementPorts(l) {
				names[e.fab.PortInfo(p.node, p.num).MKey] = p.node
			}
			delete(names, ib.MKey{})
			shown := make(map[string]bool)
			e.logSend = func(r *sm.Request) {
				if name := names[r.MAD.MKey()]; name != "" {
					shown[name] = true
				}
			}
			real := switchGUIDs(l)
			if err := e.fab.Pretend(b.node.Name, &sham.Sham{Ports: 3, GUID: func(path []ib.PortNum, _ int) ib.GUID {
				if len(path)%2 == 0 {
					return real[len(path)/2%len(real)]
				}
				return sham.GUID(path)
			}}); err != nil {
				t.Fatal(err)
			}
			e.moveTo(a.node.Name)
			e.run(20 * time.Second)
			if e.fab.Pretended(b.node.Name) == 0 {
				t.Error("the host was asked nothing")
			}
			if (len(shown) > 0) != weak {
				t.Errorf("it was sent the keys of %v", slices.Sorted(maps.Keys(shown)))
			}
		})
	}
}

// anyNeighbour takes the device behind our own port for the switch that it claims to be.
type anyNeighbour struct{ controls.Strict }

// ProvesNeighbour implements controls.Keys.
func (anyNeighbour) ProvesNeighbour() bool { return false }
