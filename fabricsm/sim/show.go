package sim

import (
	"fmt"
	"io"

	"portcullis/fabricsm/ib"
)

// Attached lists the nodes that stations sit at, by slot; a subnet manager's is
// marked.
func (f *Fabric) Attached() (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for slot, s := range f.stations {
		if s == nil {
			continue
		}
		line := fmt.Sprintf("%d %s port %d", slot, s.at.node.name, s.at.num)
		if s.asSM {
			line += " SM"
		}
		lines = append(lines, line)
	}
	return lines
}

// Dump writes a node and its ports, or with name "" all of them, a line each.
func (f *Fabric) Dump(w io.Writer, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	nodes := f.nodes
	if name != "" {
		n, err := f.find(name)
		if err != nil {
			return fmt.Errorf("dump: %w", err)
		}
		nodes = []*node{n}
	}
	for _, n := range nodes {
		if _, err := fmt.Fprintf(w, "%v %q guid %v, %d ports, description %q\n", n.typ, n.name, n.guid, len(n.ports)-1, n.description.String()); err != nil {
			return fmt.Errorf("dump: %w", err)
		}
		for _, p := range n.ports {
			if p == nil || p.cable == nil && p.num != 0 {
				continue
			}
			if _, err := fmt.Fprintln(w, p.line()); err != nil {
				return fmt.Errorf("dump: %w", err)
			}
		}
	}
	return nil
}

func (p *port) line() string {
	s := fmt.Sprintf("[%d]", p.num)
	if p.cable != nil {
		s += fmt.Sprintf(" %q[%d]", p.cable.node.name, p.cable.num)
	}
	if p.isEnd() {
		s += fmt.Sprintf(" lid %d lmc %d", p.info.LID, p.info.LMC)
	}
	return s + fmt.Sprintf(" %v/%v", p.info.PortState, p.info.PortPhysicalState)
}

// Route returns the ports by which packets to LID to leave the nodes on their way from the port with LID from. If the way
// does not reach its end, the error says where it stops, and the partial way is returned.
func (f *Fabric) Route(from, to ib.LID) (way []Endpoint, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.byLID(from)
	if at == nil {
		return nil, fmt.Errorf("route: no port has LID %d", from)
	}
	for range maxHops {
		if at.endPort().owns(to) {
			return append(way, at.endPort().endpoint()), nil
		}
		out := at
		if at.node.sw != nil {
			if out = at.node.forward(to); out == nil {
				return way, fmt.Errorf("route: %s has no port for LID %d", at.node.name, to)
			}
		} else if len(way) > 0 {
			return way, fmt.Errorf("route: %s port %d does not have LID %d", at.node.name, at.num, to)
		}
		way = append(way, out.endpoint())
		if out.peer == nil {
			return way, fmt.Errorf("route: %s port %d has no link", out.node.name, out.num)
		}
		at = out.peer
	}
	return way, fmt.Errorf("route: packets to LID %d go in circles", to)
}

func (f *network) byLID(lid ib.LID) *port {
	for _, n := range f.nodes {
		for _, p := range n.ports {
			if p != nil && p.isEnd() && p.owns(lid) {
				return p
			}
		}
	}
	return nil
}
