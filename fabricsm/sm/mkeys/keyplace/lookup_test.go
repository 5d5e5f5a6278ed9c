package keyplace

import (
	"math/rand/v2"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/topo"
)

// plain answers as a Map does, and looks everything up by name each time.
type plain struct{ *Map }

func (m plain) ring(p topo.PortID) *keys.Ring {
	if g := m.topo.GUIDOf(p); g != 0 {
		return m.book.Ring(keys.MKey, g)
	}
	return nil
}

func (m plain) switchPort(node ib.GUID) ib.GUID {
	if guid := m.behind[ib.Place{Switch: node}]; guid != 0 && node != 0 {
		return guid
	}
	return node
}

func (m plain) neighbour() ib.GUID {
	_, port := m.fabric.Root()
	if guid := m.switchPort(m.opt.AttachedTo); guid != 0 {
		return guid
	}
	if r := m.ring(port); r != nil {
		if guid := m.switchPort(r.Record().Place.Switch); guid != 0 {
			return guid
		}
	}
	return m.behind[m.topo.LinkEnd(port)]
}

func (m plain) isWayKnown(id topo.NodeID) bool {
	root, _ := m.fabric.Root()
	if m.topo.Node(id).Type != ib.NodeSwitch {
		return id == root
	}
	for {
		up := m.fabric.Up(id)
		if up == topo.None {
			return id == root
		}
		guid := m.topo.GUIDOf(m.topo.Node(id).FirstPort)
		known := m.law.IsOn()
		if m.Policy() == Seen {
			known = m.behind[m.topo.LinkEnd(up)] == guid || !m.IsKept(guid)
			if m.IsOwnCable(up) {
				known = m.neighbour() == guid || !m.IsKept(guid)
			}
		} else if known && !m.topo.IsExternal(up) {
			known = m.law.Trusts(m.topo.NodeGUID(id))
		}
		if !known {
			return false
		}
		if id = m.topo.Port(up).Node; id == root {
			return true
		}
	}
}

func (m plain) isVerified(p topo.PortID) bool {
	if p == m.fabric.Own() {
		return true
	}
	if tp := m.topo.Port(p); tp.Num != 0 {
		r := m.ring(p)
		if r != nil && m.switches[tp.GUID] && r.Record().Place.IsZero() || tp.Peer != topo.None && !m.isWayKnown(m.topo.Port(tp.Peer).Node) {
			return false
		}
	} else if !m.isWayKnown(tp.Node) {
		return false
	}
	return (m.Policy() == Seen || m.law.IsDeclared(p)) && !m.isDisputed(p)
}

// TestLookupsFollowAllChanges: whatever changes in a fabric, what a map remembers by port is what the tables by name say.
func TestLookupsFollowAllChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		r, m, book := start(t, Options{Policy: Auto, AttachedTo: ib.GUID(random.IntN(2)) * nearGUID})
		guids := []ib.GUID{ownGUID, nearGUID, farGUID, hostGUID, 0x55, 0x66}
		guid := func() ib.GUID { return guids[random.IntN(len(guids))] }
		place := func() ib.Place { return ib.Place{Switch: guid(), Port: ib.PortNum(random.IntN(3))} }
		anyPort := func() topo.PortID { return topo.PortID(random.IntN(r.topo.NumPorts())) }
		known, unknown := 0, 0
		for step := range 1500 {
			switch p := anyPort(); random.IntN(11) {
			case 0:
				m.LoadBehind(place(), guid())
			case 1:
				if peer := r.topo.Peer(p); peer != topo.None {
					m.LoadBehind(r.topo.LinkEnd(p), r.topo.GUIDOf(r.topo.EntryPort(peer)))
				}
			case 2:
				r.topo.Connect(p, anyPort())
			case 3:
				if tp := r.topo.Port(p); p != r.own {
					tp.GUID = guid()
					r.topo.SetPort(p, tp)
				}
			case 4:
				if id := r.topo.NodeOf(p); id != r.topo.NodeOf(r.own) {
					r.topo.RemoveNode(id)
					if random.IntN(2) == 0 {
						r.topo.Forget(id)
					}
				}
			case 5:
				kind, end := ib.NodeSwitch, ib.PortNum(0)
				if random.IntN(3) == 0 {
					kind, end = ib.NodeCA, 1
				}
				if g := guid(); r.topo.NodeByGUID(g) == topo.None || r.topo.NumNodes() < 8 {
					r.add(g, kind, end)
				}
			case 6: // a switch is asked over a port of a node with a lower number, so that no way is a circle
				id := topo.NodeID(1 + random.IntN(r.topo.NumNodes()-1))
				r.up[id] = r.own
				if above := topo.NodeID(random.IntN(int(id))); above > 0 {
					r.up[id] = r.topo.FirstPort(above) + topo.PortID(1+random.IntN(2))
				}
			case 7:
				book.Open(keys.MKey, guid(), ib.Place{})
			case 8:
				if ring := book.Ring(keys.MKey, guid()); ring != nil && ring.Record().Current.IsZero() && ring.Record().Pending.IsZero() {
					if err := ring.Plan(keys.Held{Key: keys.New(1 + random.Uint64()), Epoch: ring.NextEpoch()}); err != nil {
						t.Fatal(err)
					}
					rec := ring.Record()
					ring.Saved()
					ring.Answered(keys.Seen{Key: rec.Pending.Key})
				}
			case 9:
				switch g := guid(); random.IntN(3) {
				case 0:
					book.Move(keys.MKey, g, place())
				case 1:
					book.Move(keys.MKey, g, ib.Place{})
				case 2:
					book.Retire(keys.MKey, g)
				}
			case 10:
				r.declared = random.IntN(4) == 0
				r.challenged[p] = random.IntN(4) == 0
				if random.IntN(20) == 0 {
					fresh, err := keys.NewBook(nil)
					if err != nil {
						t.Fatal(err)
					}
					*book = *fresh
					m.ForgetRings()
				}
			}
			for id := range topo.NodeID(r.topo.NumNodes()) {
				if r.topo.Node(id).Type == ib.NodeSwitch && r.up[id] == 0 {
					r.up[id] = topo.None
				}
			}
			slow := plain{m}
			for id := range topo.NodeID(r.topo.NumNodes()) {
				if got, want := m.IsWayKnown(id), slow.isWayKnown(id); got != want {
					t.Fatalf("seed %d, step %d: the way to node %d is known: %v, want %v", seed, step, id, got, want)
				} else if got {
					known++
				} else if r.topo.IsSwitch(id) {
					unknown++
				}
			}
			for p := range topo.PortID(r.topo.NumPorts()) {
				if got, want := m.IsVerified(p), slow.isVerified(p); got != want {
					t.Fatalf("seed %d, step %d: port %d is verified: %v, want %v", seed, step, p, got, want)
				}
				if m.Ring(p) != slow.ring(p) {
					t.Fatalf("seed %d, step %d: port %d has another ring", seed, step, p)
				}
			}
			if !r.declared && m.Neighbour().GUID != slow.neighbour() {
				t.Fatalf("seed %d, step %d: the neighbour is %v, want %v", seed, step, m.Neighbour(), slow.neighbour())
			}
		}
		if known < 100 || unknown < 100 {
			t.Errorf("seed %d: the way to switches was known %d times, and unknown %d times", seed, known, unknown)
		}
	}
}
