package dump

import (
	"bufio"
	"fmt"
	"io"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// FDBs writes opensm.fdbs: for every switch and LID the egress port, the hops
// to the LID's port that way (the switch's own LIDs are 0 hops away), and
// whether fewer would do. Errors are those of [route.NewGraph] and of the
// writer.
func FDBs(w io.Writer, f *topo.Fabric, t *route.Tables) error {
	g, err := route.NewGraph(f, nil)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	h := newHops(g, t)
	for s := range int32(len(g.IDs)) {
		fmt.Fprintf(b, "dump_ucast_routes: Switch %v\nLID    : Port : Hops : Optimal\n", g.GUID(s))
		h.start(s)
		row := t.LFT(g.IDs[s])
		for l := 1; l <= int(t.MaxLID) && l < len(row); l++ {
			h.line(b, s, ib.LID(l), row[l])
		}
	}
	return b.Flush()
}

// hops counts how far LIDs are, from one switch at a time.
type hops struct {
	g    *route.Graph
	t    *route.Tables
	last []int32 // by LID: 1 for ports cabled to its home switch, 0 for that switch
	dist []int32 // by switch: links between it and the start at best, -1
}

func newHops(g *route.Graph, t *route.Tables) *hops {
	h := &hops{g: g, t: t, last: make([]int32, int(t.MaxLID)+1), dist: make([]int32, len(g.IDs))}
	for _, targets := range g.Targets {
		for _, target := range targets {
			if target.Out != 0 && target.LID <= t.MaxLID {
				h.last[target.LID] = 1
			}
		}
	}
	return h
}

// start measures the distance to all switches.
func (h *hops) start(s int32) {
	for i := range h.dist {
		h.dist[i] = -1
	}
	h.dist[s] = 0
	queue := []int32{s}
	for i := 0; i < len(queue); i++ {
		u := queue[i]
		for _, v := range h.g.To[h.g.Row[u]:h.g.Row[u+1]] {
			if h.dist[v] < 0 {
				h.dist[v] = h.dist[u] + 1
				queue = append(queue, v)
			}
		}
	}
}

func (h *hops) line(w io.Writer, s int32, lid ib.LID, port ib.PortNum) {
	n := h.follow(s, lid)
	if port == ib.NoPort || n < 0 {
		fmt.Fprintf(w, "0x%04X : UNREACHABLE\n", uint16(lid))
		return
	}
	n += h.last[lid]
	optimal := "yes"
	home := h.t.Home(lid)
	if best := h.dist[h.g.Num[home]] + h.last[lid]; best < n {
		optimal = fmt.Sprintf("No %d hop path possible", best)
	}
	fmt.Fprintf(w, "0x%04X : %03d  : %02d   : %s\n", uint16(lid), port, n, optimal)
}

// follow returns the number of links between switches on the route from a switch to a LID, -1 if the route does not arrive.
func (h *hops) follow(s int32, lid ib.LID) int32 {
	home := h.t.Home(lid)
	for n := range int32(len(h.g.IDs)) {
		if h.g.IDs[s] == home {
			return n
		}
		row := h.t.LFT(h.g.IDs[s])
		if int(lid) >= len(row) {
			return -1
		}
		e := h.g.EdgeAt(s, row[lid])
		if e < 0 {
			return -1
		}
		s = h.g.To[e]
	}
	return -1
}

// LFTs writes opensm-lfts.dump, which OpenSM reads back with its file engine:
// for every switch and LID the egress port and whose LID it is. Errors are
// those of the writer.
func LFTs(w io.Writer, f *topo.Fabric, t *route.Tables) error { return LFTsOf(w, f, t, f.Switches()) }

// LFTsOf is LFTs for some switches.
func LFTsOf(w io.Writer, f *topo.Fabric, t *route.Tables, switches []topo.NodeID) error {
	b := bufio.NewWriterSize(w, 1<<16)
	whose := ownerTexts(f, t)
	var line []byte
	for _, id := range switches {
		n := f.Node(id)
		fmt.Fprintf(b, "Unicast lids [0-%d] of switch Lid %v guid %v ('%s'):\n", t.MaxLID, f.Port(n.FirstPort).LID, n.GUID, printable(n.Description))
		row := t.LFT(id)
		for l := 0; l <= int(t.MaxLID) && l < len(row); l++ {
			if row[l] <= ib.PortNum(n.NumPorts) {
				line = append(append(appendEntry(line[:0], ib.LID(l), row[l]), whose[l]...), '\n')
				if _, err := b.Write(line); err != nil {
					return err
				}
			}
		}
		fmt.Fprintf(b, "%d lids dumped\n", t.MaxLID)
	}
	return b.Flush()
}

// ownerTexts returns the text for the owner of every LID. A dump has a line for each switch and LID, millions for a large
// fabric, so shared text is made once.
func ownerTexts(f *topo.Fabric, t *route.Tables) []string {
	owner := owners(f)
	texts := make([]string, int(t.MaxLID)+1)
	for l := range texts {
		texts[l] = describe(f, owner[ib.LID(l)])
	}
	return texts
}

// appendEntry appends "0x0012 034 # ".
func appendEntry(b []byte, lid ib.LID, port ib.PortNum) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '0', 'x', hex[lid>>12], hex[lid>>8&15], hex[lid>>4&15], hex[lid&15], ' ')
	return append(b, '0'+byte(port/100), '0'+byte(port/10%10), '0'+byte(port%10), ' ', '#', ' ')
}

// owners returns the end port of every LID, one more than its id; 0 for no owner.
func owners(f *topo.Fabric) map[ib.LID]topo.PortID {
	owner := make(map[ib.LID]topo.PortID)
	for _, id := range f.EndPorts() {
		p := f.Port(id)
		for i := range ib.LID(1) << p.LMC {
			if p.LID != 0 {
				owner[p.LID+i] = id + 1
			}
		}
	}
	return owner
}

func describe(f *topo.Fabric, owner topo.PortID) string {
	if owner == 0 {
		return "unknown node and type"
	}
	id := owner - 1
	n, kind := f.NodeOf(id), "Channel Adapter"
	switch n.Type {
	case ib.NodeSwitch:
		kind = "Switch"
	case ib.NodeRouter:
		kind = "Router"
	case ib.NodeCA:
	}
	return fmt.Sprintf("%s portguid %v: '%s'", kind, f.Port(id).GUID, printable(n.Description))
}
