// Package trace follows packets through forwarding tables: which way they take,
// and how many others take a link.
package trace

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// Path is the way from one end port to another. Err says why packets do not
// arrive; Hops then end where they are lost.
type Path struct {
	SL   ib.SL
	Hops []Hop
	Err  error
}

// Hop is a node on a path.
type Hop struct {
	Node topo.NodeID
	In   ib.PortNum // 0: the path begins here
	Out  ib.PortNum // 0: the path ends here
	VL   ib.VL      // on the link that leaves by Out
}

// Errors of paths. Wrong entries have other errors.
var (
	ErrNoTables = errors.New("there are no forwarding tables yet")
	ErrNoLID    = errors.New("the port has no LID yet")
	ErrNoCable  = errors.New("the port has no link")
)

// Follow returns the path between two end ports, as the tables have it. It passes every switch at most once.
func Follow(f *topo.Fabric, t *route.Tables, from, to topo.PortID) Path {
	var p Path
	switch {
	case t == nil:
		p.Err = ErrNoTables
		return p
	case f.Port(from).LID == 0 || f.Port(to).LID == 0:
		p.Err = ErrNoLID
		return p
	}
	p.SL = t.SL(f.Port(from).LID, f.Port(to).LID)
	w := walk{f: f, t: t, vl: t.SLtoVL()[p.SL], lid: f.Port(to).LID, to: to, path: &p}
	p.Err = w.run(from)
	return p
}

type walk struct {
	f    *topo.Fabric
	t    *route.Tables
	vl   ib.VL
	lid  ib.LID
	to   topo.PortID
	path *Path
}

func (w *walk) run(from topo.PortID) error {
	at := w.f.Port(from)
	node, in := at.Node, ib.PortNum(0)
	if at.Num != 0 && from != w.to {
		peer := w.leave(node, in, at.Num)
		if peer == topo.None {
			return ErrNoCable
		}
		node, in = w.f.Port(peer).Node, w.f.Port(peer).Num
	}
	for range len(w.f.Switches()) + 2 {
		if node == w.f.Port(w.to).Node {
			w.arrive(node, in)
			return nil
		}
		n := w.f.Node(node)
		if n.Type != ib.NodeSwitch {
			w.arrive(node, in)
			return fmt.Errorf("%v does not belong to node %v, which does not forward", w.lid, n.GUID)
		}
		out, err := w.egress(node)
		if err != nil {
			w.arrive(node, in)
			return err
		}
		peer := w.leave(node, in, out)
		if peer == topo.None {
			return fmt.Errorf("switch %v sends LID %v to its port %d, which has no link", n.GUID, w.lid, out)
		}
		node, in = w.f.Port(peer).Node, w.f.Port(peer).Num
	}
	return fmt.Errorf("packets to LID %v go round in circles", w.lid)
}

func (w *walk) arrive(node topo.NodeID, in ib.PortNum) {
	w.path.Hops = append(w.path.Hops, Hop{Node: node, In: in, VL: w.vl})
}

// leave adds a hop and returns the other end of the link it goes out by.
func (w *walk) leave(node topo.NodeID, in, out ib.PortNum) topo.PortID {
	w.path.Hops = append(w.path.Hops, Hop{Node: node, In: in, Out: out, VL: w.vl})
	return w.f.LinkUp(w.f.PortOf(node, out))
}

// egress returns the port by which a switch sends the LID.
func (w *walk) egress(node topo.NodeID) (ib.PortNum, error) {
	n := w.f.Node(node)
	row := w.t.LFT(node)
	switch {
	case row == nil:
		return 0, fmt.Errorf("switch %v has no forwarding table", n.GUID)
	case int(w.lid) >= len(row) || row[w.lid] == ib.NoPort:
		return 0, fmt.Errorf("switch %v drops packets to LID %v: it has no route", n.GUID, w.lid)
	case row[w.lid] == 0:
		return 0, fmt.Errorf("switch %v takes LID %v for its own", n.GUID, w.lid)
	case uint8(row[w.lid]) > n.NumPorts:
		return 0, fmt.Errorf("switch %v sends LID %v to port %d, which it does not have", n.GUID, w.lid, row[w.lid])
	}
	return row[w.lid], nil
}
