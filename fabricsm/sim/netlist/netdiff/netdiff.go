// Package netdiff compares two descriptions of a fabric: which nodes and cables are gone, new, elsewhere, or slower. Nodes
// are identified by GUID, cables by the ports at their ends.
package netdiff

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
)

// Kind is the kind of a difference.
type Kind uint8

// Kinds, in the order in which changes are listed.
const (
	Gone Kind = iota
	New
	Moved   // a cable's end is plugged in elsewhere
	Slower  // a link runs at a lower rate
	Faster  // a link runs at a higher rate
	Renamed // a node's description
	Readdressed
)

var kindNames = [...]string{"gone", "new", "moved", "slower", "faster", "renamed", "lid"}

// String names the kind in a word.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Change is one difference.
type Change struct {
	Kind   Kind   `json:"kind"`
	What   string `json:"what"` // "switch", "CA", "router" or "link"
	GUID   string `json:"guid,omitempty"`
	Name   string `json:"name"` // of the node, or "leaf1/19 - spine1/1"
	Detail string `json:"detail,omitempty"`
}

// Options select the properties to compare besides nodes, cables and rates.
type Options struct {
	Names  bool // descriptions
	LIDs   bool // LIDs that both sides have
	Faster bool // links that are faster; a plan seldom says how fast they will be
}

// Compare returns the differences of now from old, by kind and then by GUID and port. The result is empty if there are
// none.
func Compare(old, now *netlist.Netlist, o Options) []Change {
	d := differ{Options: o, old: index(old), now: index(now)}
	d.nodes()
	d.cables()
	slices.SortStableFunc(d.changes, func(a, b Change) int { return cmp.Compare(a.Kind, b.Kind) })
	return d.changes
}

// side is one of the two fabrics.
type side struct {
	nodes map[ib.GUID]*netlist.Node
	guids []ib.GUID // sorted
	named map[string]*netlist.Node
}

// end is a port at the end of a cable.
type end struct {
	node ib.GUID
	port ib.PortNum
}

func compareEnds(a, b end) int {
	return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.port, b.port))
}

func index(l *netlist.Netlist) side {
	s := side{nodes: make(map[ib.GUID]*netlist.Node, len(l.Nodes)), named: make(map[string]*netlist.Node, len(l.Nodes))}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		s.nodes[n.GUID], s.named[n.Name] = n, n
		s.guids = append(s.guids, n.GUID)
	}
	slices.Sort(s.guids)
	return s
}

// peer returns the other end of the cable of a port.
func (s *side) peer(e end) (end, bool) {
	n := s.nodes[e.node]
	if n == nil || int(e.port) >= len(n.Ports) || n.Ports[e.port].Peer == "" {
		return end{}, false
	}
	p := &n.Ports[e.port]
	far := s.named[p.Peer]
	if far == nil {
		return end{}, false
	}
	return end{far.GUID, p.PeerPort}, true
}

// name names an end as people do.
func (s *side) name(e end) string { return fmt.Sprintf("%s/%d", nodeName(s.nodes[e.node]), e.port) }

func nodeName(n *netlist.Node) string {
	if n.Description == "" || n.Description == n.Name && len(n.Name) > 2 && n.Name[1] == '-' {
		return n.GUID.String()
	}
	return n.Description
}

type differ struct {
	Options
	old, now side
	changes  []Change
}

func (d *differ) add(k Kind, n *netlist.Node, format string, args ...any) {
	d.changes = append(d.changes, Change{Kind: k, What: n.Type.String(), GUID: n.GUID.String(), Name: nodeName(n), Detail: fmt.Sprintf(format, args...)})
}

func (d *differ) nodes() {
	for _, g := range d.old.guids {
		was, is := d.old.nodes[g], d.now.nodes[g]
		if is == nil {
			d.add(Gone, was, "%s", d.old.at("was at", was))
			continue
		}
		if d.Names && was.Description != is.Description {
			d.add(Renamed, is, "was %q", was.Description)
		}
		if d.LIDs {
			d.lids(was, is)
		}
	}
	for _, g := range d.now.guids {
		if d.old.nodes[g] == nil {
			is := d.now.nodes[g]
			d.add(New, is, "%s", d.now.at("at", is))
		}
	}
}

// at describes where a node is cabled, by its first cable; for a switch it returns the empty string.
func (s *side) at(word string, n *netlist.Node) string {
	if n.Type == ib.NodeSwitch {
		return ""
	}
	for i := 1; i < len(n.Ports); i++ {
		if far, ok := s.peer(end{n.GUID, ib.PortNum(i)}); ok {
			return word + " " + s.name(far)
		}
	}
	return ""
}

func (d *differ) lids(was, is *netlist.Node) {
	for i := 0; i < len(was.Ports) && i < len(is.Ports); i++ {
		a, b := was.Ports[i].LID, is.Ports[i].LID
		if a != 0 && b != 0 && a != b {
			d.add(Readdressed, is, "port %d has LID %v, had %v", i, b, a)
		}
	}
}

// cables compares every cable of either side once, at its lower end. Cables of nodes that are gone or new are reported with
// the node.
func (d *differ) cables() {
	for _, g := range d.old.guids {
		n := d.old.nodes[g]
		for i := 1; i < len(n.Ports); i++ {
			e := end{g, ib.PortNum(i)}
			far, ok := d.old.peer(e)
			if !ok || compareEnds(far, e) < 0 || d.now.nodes[g] == nil || d.now.nodes[far.node] == nil {
				continue
			}
			d.cable(e, far)
		}
	}
	for _, g := range d.now.guids {
		n := d.now.nodes[g]
		for i := 1; i < len(n.Ports); i++ {
			e := end{g, ib.PortNum(i)}
			far, ok := d.now.peer(e)
			if !ok || compareEnds(far, e) < 0 || d.old.nodes[g] == nil || d.old.nodes[far.node] == nil {
				continue
			}
			_, had := d.old.peer(e)
			_, farHad := d.old.peer(far)
			if !had && !farHad {
				d.link(New, &d.now, e, far, "")
			}
		}
	}
}

// cable compares a cable of the old side with the new side.
func (d *differ) cable(a, b end) {
	nowB, okA := d.now.peer(a)
	nowA, okB := d.now.peer(b)
	switch {
	case okA && nowB == b:
		d.rate(a, b)
	case okA && okB: // both ends are plugged in elsewhere
		d.moved(a, b, nowB)
		d.moved(b, a, nowA)
	case okA:
		d.moved(a, b, nowB)
	case okB:
		d.moved(b, a, nowA)
	default:
		d.link(Gone, &d.old, a, b, "")
	}
}

func (d *differ) moved(e, from, to end) {
	n := d.now.nodes[e.node]
	if n.Type == ib.NodeSwitch && d.now.nodes[to.node].Type != ib.NodeSwitch {
		return // reported for the host
	}
	d.changes = append(d.changes, Change{
		Kind: Moved, What: n.Type.String(), GUID: n.GUID.String(), Name: d.now.name(e),
		Detail: fmt.Sprintf("from %s to %s", d.old.name(from), d.now.name(to)),
	})
}

func (d *differ) rate(a, b end) {
	was, is := d.old.link(a, b), d.now.link(a, b)
	before, after := was.rate(), is.rate()
	switch {
	case before == 0 || after == 0 || before == after:
	case after < before:
		d.link(Slower, &d.now, a, b, fmt.Sprintf("%v, was %v", is, was))
	case d.Faster:
		d.link(Faster, &d.now, a, b, fmt.Sprintf("%v, was %v", is, was))
	}
}

func (d *differ) link(k Kind, s *side, a, b end, detail string) {
	d.changes = append(d.changes, Change{Kind: k, What: "link", Name: s.name(a) + " - " + s.name(b), Detail: detail})
}

// speed is the speed of a link between two ports: the best that both offer.
type speed struct {
	width ib.LinkWidth
	lane  ib.Speed
}

func (s *side) link(a, b end) speed {
	x, y := s.nodes[a.node].Ports[a.port].Link, s.nodes[b.node].Ports[b.port].Link
	return speed{(x.Width & y.Width).Widest(), ib.Fastest(x.Speed&y.Speed, x.SpeedExt&y.SpeedExt, x.SpeedExt2&y.SpeedExt2)}
}

func (l speed) rate() int { return l.width.Lanes() * l.lane.LaneRate() }

// String returns the link as ibnetdiscover prints it: "4xEDR".
func (l speed) String() string { return l.width.String() + l.lane.String() }
