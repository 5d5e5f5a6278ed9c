package verify

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Guard answers rule 6 for one snapshot of the fabric: which ports must not be disabled, since they carry the Subnet
// Manager's own way, or the last verified way to a switch. A question costs nothing; creating a Guard costs a pass over the
// links between switches. So a Guard is created when the first port of a snapshot is about to be disabled, and again after
// a port was.
type Guard struct {
	f      *topo.Fabric
	sm     topo.PortID
	bridge []bool // by port: the only way to the devices behind it
}

// NewGuard makes a guard. sm is the Subnet Manager's own port. usable reports a
// switch port whose link to another switch is or was verified, those about to be
// disabled included: a way over a link that was never verified counts as none.
func NewGuard(f *topo.Fabric, sm topo.PortID, usable func(topo.PortID) bool) *Guard {
	g := &Guard{f: f, sm: sm, bridge: make([]bool, f.NumPorts())}
	start := f.Port(sm).Node
	if f.Node(start).Type != ib.NodeSwitch {
		at := f.LinkUp(sm)
		if at == topo.None || f.NodeOf(at).Type != ib.NodeSwitch {
			return g
		}
		start = f.Port(at).Node
	}
	w := walk{g: g, usable: usable, order: make([]int32, f.NumNodes()), low: make([]int32, f.NumNodes())}
	w.from(start)
	return g
}

// Protected reports whether a port must not be disabled.
func (g *Guard) Protected(p topo.PortID) bool {
	return p == g.sm || p == g.f.Port(g.sm).Peer || g.bridge[p]
}

// ProtectedAt reports whether a switch port must not be disabled.
func (g *Guard) ProtectedAt(at ib.Place) bool {
	id := g.f.NodeByGUID(at.Switch)
	if id == topo.None {
		return false
	}
	p := g.f.PortOf(id, at.Port)
	return p != topo.None && g.Protected(p)
}

// walk finds bridges in depth first order (Tarjan 1974), without recursion.
type walk struct {
	g          *Guard
	usable     func(topo.PortID) bool
	order, low []int32 // of switches, from 1; 0: not reached
	next       int32
}

// frame is a switch on the way from the start.
type frame struct {
	node topo.NodeID
	in   topo.PortID // port of it that it was entered by, None at the start
	port int         // the next one to examine
}

func (w *walk) from(start topo.NodeID) {
	f := w.g.f
	stack := []frame{{start, topo.None, 0}}
	w.visit(start)
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.port++; top.port > int(f.Node(top.node).NumPorts) {
			done := *top
			if stack = stack[:len(stack)-1]; len(stack) > 0 {
				w.leave(done, stack[len(stack)-1].node)
			}
			continue
		}
		p := f.Node(top.node).FirstPort + topo.PortID(top.port)
		q := f.LinkUp(p)
		if q == topo.None || p == top.in || f.NodeOf(q).Type != ib.NodeSwitch || !w.usable(p) && !w.usable(q) {
			continue
		}
		far := f.Port(q).Node
		if w.order[far] != 0 {
			w.low[top.node] = min(w.low[top.node], w.order[far])
			continue
		}
		w.visit(far)
		stack = append(stack, frame{far, q, 0})
	}
}

func (w *walk) visit(n topo.NodeID) {
	w.next++
	w.order[n], w.low[n] = w.next, w.next
}

// leave goes back from a switch to the one before it: if nothing behind it leads
// further back, the link between the two is the only one.
func (w *walk) leave(done frame, to topo.NodeID) {
	w.low[to] = min(w.low[to], w.low[done.node])
	if w.low[done.node] > w.order[to] {
		w.g.bridge[done.in] = true
		w.g.bridge[w.g.f.LinkUp(done.in)] = true
	}
}
