package work

import "portcullis/fabricsm/topo"

// Life is what work depends on of a node.
type Life struct {
	Epoch    uint32 // counts lives of its slot
	IsAlive  bool
	IsSilent bool // it does not answer
}

// Lives says how nodes are.
type Lives interface {
	Life(topo.NodeID) Life
	NodeOf(topo.PortID) topo.NodeID
}

// nodeOf returns the node that work is about, itself or through its port.
func nodeOf(l Lives, x Ref) topo.NodeID {
	if x.Class.IsOnNode() {
		return x.Node()
	}
	return l.NodeOf(x.Port())
}

// EpochOf returns the life of the node that work is about, 0 for work.Root, which has none.
func EpochOf(l Lives, x Ref) uint32 {
	if x.Class == Root {
		return 0
	}
	return l.Life(nodeOf(l, x)).Epoch
}

// IsCurrent reports whether what a request was about is still there.
func IsCurrent(l Lives, r *Request) bool {
	return r.Ref.Class == Root || l.Life(nodeOf(l, r.Ref)).Epoch == r.Epoch
}

// TargetOf returns the node that a piece of work is to ask, None if it is not known yet. Work on nodes that are gone or
// silent is dropped: all work of a node is marked when it comes back.
func TargetOf(l Lives, x Ref) (id topo.NodeID, ok bool) {
	if x.Class == Root || x.Class == Probe {
		return topo.None, true
	}
	id = nodeOf(l, x)
	is := l.Life(id)
	return id, is.IsAlive && !is.IsSilent
}
