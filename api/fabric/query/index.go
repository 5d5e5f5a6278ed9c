package query

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topo"
)

// index is a view with what makes it quick to ask. The maps are made by the
// first question that needs them.
type index struct {
	*sm.View
	hostOf map[ib.GUID]string // inventory's names by node GUID

	once     *sync.Once
	names    map[string][]topo.NodeID // by description
	ofHost   map[string][]topo.NodeID
	atPlace  map[ib.Place][]string // what is wrong there
	ofGUID   map[ib.GUID][]string  // what is wrong with a node or port
	nowhere  []string              // what is wrong with the fabric as a whole
	silent   map[ib.GUID]bool      // nodes that do not answer
	twinned  map[ib.GUID]bool      // node GUIDs that several nodes show
	complete bool                  // settled, so that what is not active is wrong
}

func newIndex(v *sm.View, hosts map[ib.GUID]string) *index {
	return &index{View: v, hostOf: hosts, once: new(sync.Once)}
}

// ready makes the maps.
func (x *index) ready() *index {
	x.once.Do(func() {
		x.complete = x.Settled
		x.names, x.ofHost, x.twinned = map[string][]topo.NodeID{}, map[string][]topo.NodeID{}, map[ib.GUID]bool{}
		last := ib.GUID(0)
		for _, id := range x.Fabric.ByGUID() {
			n := x.Fabric.Node(id)
			if n.GUID == last {
				x.twinned[n.GUID] = true
			}
			last = n.GUID
			if d := n.Description; d != "" {
				x.names[d] = append(x.names[d], id)
			}
			if h := x.hostOf[n.GUID]; h != "" {
				x.ofHost[h] = append(x.ofHost[h], id)
			}
		}
		x.faults()
	})
	return x
}

func (x *index) faults() {
	x.atPlace, x.ofGUID, x.silent = map[ib.Place][]string{}, map[ib.GUID][]string{}, map[ib.GUID]bool{}
	for _, f := range x.Faults {
		if f.Kind == fault.NodeSilent {
			x.silent[f.GUID] = true
		}
		switch {
		case f.Kind == fault.LinkSlow: // seen in the port itself, see degraded
		case !f.Place.IsZero():
			x.atPlace[f.Place] = append(x.atPlace[f.Place], f.Text)
		case f.GUID != 0:
			x.ofGUID[f.GUID] = append(x.ofGUID[f.GUID], f.Text)
		default:
			x.nowhere = append(x.nowhere, f.Text)
		}
	}
}

// name returns the word by which people know a node: its description, if no other node has it and it cannot be taken for
// something else, or the GUID.
func (x *index) name(id topo.NodeID) string {
	n := x.Fabric.Node(id)
	if d := n.Description; d != "" && len(x.names[d]) == 1 && !confusing(d) {
		return d
	}
	return n.GUID.String()
}

// confusing reports a description that reads like a GUID, a LID or a port.
func confusing(d string) bool {
	return strings.HasPrefix(d, "0x") || strings.ContainsRune(d, '/') || strings.Trim(d, "0123456789") == "" || d != strings.TrimSpace(d)
}

func (x *index) portName(id topo.PortID) *v1.PortName {
	p, n := x.Fabric.Port(id), x.Fabric.NodeOf(id)
	return &v1.PortName{Node: n.GUID, Num: p.Num, Name: x.name(p.Node), Type: n.Type.String(), Host: x.hostOf[n.GUID]}
}

// problem says what is wrong with a port, as far as this fabric shows.
func (x *index) problem(id topo.PortID) string {
	f := x.Fabric
	p, n := f.Port(id), f.NodeOf(id)
	var all []string
	switch {
	case n.Type != ib.NodeSwitch:
		if pl := f.PlaceOf(id); !pl.IsZero() {
			all = append(all, x.atPlace[pl]...)
		}
		all = append(all, x.ofGUID[p.GUID]...)
	case p.Num != 0:
		all = append(all, x.atPlace[ib.Place{Switch: n.GUID, Port: p.Num}]...)
	}
	if p.Num == 0 || n.Type != ib.NodeSwitch {
		all = append(all, x.ofGUID[n.GUID]...)
	}
	if len(all) == 0 {
		if own := x.ownProblem(id); own != "" {
			all = append(all, own)
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "; ")
}

// ownProblem finds a problem that was not reported.
func (x *index) ownProblem(id topo.PortID) string {
	f := x.Fabric
	p := f.Port(id)
	switch {
	case p.Num == 0 || !x.complete || p.State == ib.PortNop || p.State == ib.PortDown:
		return ""
	case p.Peer == topo.None:
		return "the link is up, and nothing is known behind it"
	case p.State != ib.PortActive && p.State != ib.PortActiveDefer:
		return fmt.Sprintf("the link is up and the port is not active, but %v", p.State)
	}
	if q := f.Port(p.Peer); q.State != ib.PortNop && p.NeighborMTU != q.NeighborMTU {
		return fmt.Sprintf("MTU %v here and %v at the other end", p.NeighborMTU, q.NeighborMTU)
	}
	return ""
}

// degraded returns the width and speed that both ends of a link offer if it runs at less, otherwise "". A mode that one end
// has disabled is not counted: that is on purpose.
func (x *index) degraded(id topo.PortID) string {
	f := x.Fabric
	p := f.Port(id)
	if f.LinkUp(id) == topo.None {
		return ""
	}
	q := f.Port(p.Peer)
	width := (p.WidthOffered & q.WidthOffered).Widest()
	speed := min(p.SpeedOffered, q.SpeedOffered)
	if have := p.Rate(); have == 0 || width.Lanes()*speed.LaneRate() <= have {
		return ""
	}
	return fmt.Sprintf("%v %v", width, speed)
}

func speedName(s ib.Speed) string {
	if s == 0 {
		return ""
	}
	return s.String()
}

func widthName(w ib.LinkWidth) string {
	if w == 0 {
		return ""
	}
	return w.String()
}
