package tree_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/tree"
	"portcullis/fabricsm/topo"
)

// fabric is switches of 8 ports; our own switch is the first.
type fabric struct {
	topo     topo.Builder
	tree     *tree.Tree
	root     topo.NodeID
	rerouted map[topo.NodeID]topo.PortID
	dropped  []topo.NodeID
}

func newFabric(t *testing.T) *fabric {
	t.Helper()
	f := &fabric{root: topo.None, rerouted: make(map[topo.NodeID]topo.PortID)}
	f.tree = tree.New(f, &f.topo)
	f.root = f.add(topo.None, ib.NodeSwitch)
	return f
}

func (f *fabric) Root() (topo.NodeID, topo.PortID) {
	if f.root == topo.None {
		return topo.None, topo.None
	}
	return f.root, f.topo.PortOf(f.root, 0)
}

func (f *fabric) IsAlive(id topo.NodeID) bool                   { return f.topo.Node(id).Type != 0 }
func (f *fabric) Rerouted(id topo.NodeID, up topo.PortID)       { f.rerouted[id] = up }
func (f *fabric) port(id topo.NodeID, n ib.PortNum) topo.PortID { return f.topo.PortOf(id, n) }

func (f *fabric) Drop(id topo.NodeID) {
	f.dropped = append(f.dropped, id)
	f.topo.RemoveNode(id)
	f.tree.Remove(id)
}

// add adds a node behind a port, with a cable to its port 1.
func (f *fabric) add(p topo.PortID, kind ib.NodeType) topo.NodeID {
	id := f.topo.AddNode(topo.Node{GUID: ib.GUID(1 + f.topo.NumNodes()), Type: kind, NumPorts: 8})
	f.tree.Extend(f.topo.NumNodes())
	f.tree.Add(id, p)
	if p != topo.None {
		f.connect(p, f.port(id, 1))
	}
	return id
}

func (f *fabric) connect(p, q topo.PortID) {
	f.topo.Connect(p, q)
	f.tree.Linked(p, q)
}

// pull takes the cable of a port away.
func (f *fabric) pull(p topo.PortID) {
	q := f.topo.Peer(p)
	f.topo.Disconnect(p)
	f.tree.Unlinked(p, q)
}

func (f *fabric) wantHops(t *testing.T, id topo.NodeID, want int) {
	t.Helper()
	if hops, route := f.tree.Hops(id), f.tree.RouteTo(id).Len(); hops != want || route != want {
		t.Errorf("node %d is asked over %d links by a route of %d, want %d", id, hops, route, want)
	}
}

// TestUnlinked: of a chain of two switches, both with a host, that has a second cable to us at its end or not.
func TestUnlinked(t *testing.T) {
	for _, second := range []bool{false, true} {
		f := newFabric(t)
		near := f.add(f.port(f.root, 1), ib.NodeSwitch)
		far := f.add(f.port(near, 2), ib.NodeSwitch)
		hosts := []topo.NodeID{f.add(f.port(near, 3), ib.NodeCA), f.add(f.port(far, 3), ib.NodeCA)}
		f.wantHops(t, far, 2)
		f.wantHops(t, hosts[1], 3)
		if second {
			f.connect(f.port(far, 4), f.port(f.root, 4))
		}
		f.pull(f.port(f.root, 1))
		if !second {
			if len(f.dropped) != 4 {
				t.Errorf("dropped %v, want all but our own switch", f.dropped)
			}
			continue
		}
		if len(f.dropped) != 0 {
			t.Errorf("dropped %v, want none", f.dropped)
		}
		f.wantHops(t, far, 1)
		f.wantHops(t, near, 2)
		f.wantHops(t, hosts[0], 3)
		f.wantHops(t, hosts[1], 2)
		if up := f.rerouted[near]; up != f.port(far, 1) {
			t.Errorf("the near switch is asked over port %d, want the far switch", up)
		}
	}
}

// TestUseOther checks that another route to a node does not lead through the node itself.
func TestUseOther(t *testing.T) {
	f := newFabric(t)
	near := f.add(f.port(f.root, 1), ib.NodeSwitch)
	far := f.add(f.port(near, 2), ib.NodeSwitch)
	f.tree.UseOther(near)
	if up := f.tree.Up(near); up != f.port(f.root, 1) {
		t.Errorf("the near switch is asked over port %d, want the root", up)
	}
	f.connect(f.port(f.root, 5), f.port(far, 5))
	f.tree.UseOther(far)
	f.wantHops(t, far, 1)
	f.tree.UseOther(near)
	f.wantHops(t, near, 2)
}
