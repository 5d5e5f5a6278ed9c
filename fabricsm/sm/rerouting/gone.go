package rerouting

import (
	"portcullis/fabricsm/sm/subtree"
	"portcullis/fabricsm/topo"
)

// gone are the nodes that went, whose slots are kept so that ids stay. Their number is bounded, as a device behind a
// port may come back under ever new GUIDs.
type gone struct {
	nodes []topo.NodeID // the first that went first
	size  int           // see subtree.Size
}

// maxGone is the size of the nodes that are gone and have a slot.
const maxGone = 4096

// Gone takes that a node went, and frees the slots of nodes that went long ago.
func (r *Routing) Gone(id topo.NodeID) {
	t := &r.gone
	t.nodes = append(t.nodes, id)
	t.size += subtree.Size(r.topo.Node(id).NumPorts)
	for tries := 4; t.size > maxGone && tries > 0 && !r.running; tries-- {
		oldest := t.nodes[0]
		t.nodes = t.nodes[1:]
		switch {
		case r.topo.Node(oldest).Type != 0: // it came back
		case r.tables.LFT(oldest) != nil:
			t.nodes = append(t.nodes, oldest) // the next tables are made from these
			continue
		default:
			r.topo.Forget(oldest)
		}
		t.size -= subtree.Size(r.topo.Node(oldest).NumPorts)
	}
}
