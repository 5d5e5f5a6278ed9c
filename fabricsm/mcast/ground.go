package mcast

import (
	"errors"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// Ground defines which links lead up for all trees. Any number of trees in which each switch has at most one neighbour
// above it closes no cycle of waiting links, neither alone nor with the unicast routes it was made for. It is immutable.
type Ground struct {
	// SL is the service level that multicast packets must have for that to be
	// true, and VL the virtual lane they are on: 0 and 0, or else those that no
	// unicast route uses and that have to be programmed.
	SL ib.SL
	VL ib.VL
	// Islands has the choices for each island, in the order of the lowest GUID.
	Islands []Island

	f *topo.Fabric
	g *route.Graph

	island  []int32 // by switch: number of its island
	ceiling ib.LID  // lowest multicast LID that some switch has no room for
	upRow   []int32 // ways up of switch s: upRow[s] to upRow[s+1]
	upEdge  []int32 // edges, in the order of ports
	back    []ib.PortNum
	top     []int32 // by switch: its number among those without a way up, -1
	tops    []int32 // the switches without a way up
	within  within
}

// Island says what trees of an island grow on.
type Island struct {
	Switches int
	Order    string // name of the order of switches in which links lead up
	Tops     int    // switches without a way up, each a possible root
	// Whole: one root is above all switches that have hosts, so that no group
	// of hosts is too wide.
	Whole bool
}

// ErrNoSafeTree means that no trees could be proven to close no cycle of waiting links with the unicast routes.
var ErrNoSafeTree = errors.New("no multicast tree is free of credit loops together with the unicast routes")

// NewGround chooses which links lead up in a fabric whose unicast tables were
// judged in report. For each island the first of these is taken that is proven
// to go with the routes, first among those in which one root is above all
// switches with hosts:
//
//   - nearer to the hosts is down, as in a fat tree: many roots;
//   - farther from one switch is down, for up to 16 different ones;
//   - one spanning tree alone, for the same.
//
// A virtual lane that no unicast route uses needs no such proof. Multicast goes
// there, if all links between switches have one more lane than the tables have
// layers, when there are several layers or when nothing was proven. Without
// either the error is an ErrNoSafeTree, and trees grow on no link of that island.
func NewGround(f *topo.Fabric, t *route.Tables, report *route.Report) (*Ground, error) {
	layers := t.Layers()
	own, level := hasLanes(f, layers+1), freeLevel(t)
	own = own && level != 0
	if shared := len(report.Waits) > 0; shared && (layers == 1 || !own) {
		b := newGroundBuilder(f, report.Waits[0].Graph(), &report.Waits[0])
		if err := b.choose(); err == nil || !own {
			return b.ground(0, 0), err
		}
	} else if !own {
		return nil, fmt.Errorf("the unicast routes use all virtual lanes: %w", ErrNoSafeTree)
	}
	g, err := route.NewGraph(f, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoSafeTree, err)
	}
	b := newGroundBuilder(f, g, nil)
	err = b.choose()
	return b.ground(level, ib.VL(layers)), err
}

// freeLevel returns the lowest service level except 0 that no unicast route uses, 0 if there is none.
func freeLevel(t *route.Tables) ib.SL {
	if t.Layers() == 1 {
		return 1
	}
	for sl, vl := range t.SLtoVL() {
		if vl == ib.VL15 {
			return ib.SL(sl)
		}
	}
	return 0
}

// hasLanes reports whether all links between switches have the given number of virtual lanes. Ports that have not reported
// their number count as enough.
func hasLanes(f *topo.Fabric, lanes int) bool {
	for _, id := range f.Switches() {
		n := f.Node(id)
		for i := 1; i <= int(n.NumPorts); i++ {
			p := n.FirstPort + topo.PortID(i)
			peer := f.LinkUp(p)
			if peer == topo.None || f.NodeOf(peer).Type != ib.NodeSwitch {
				continue
			}
			if c := f.Port(p).VLCap; c != 0 && c.Count() < lanes {
				return false
			}
		}
	}
	return lanes <= route.MaxLayers
}

// Ceiling returns the lowest multicast LID that cannot be used in a fabric: the first that is beyond the table of some
// switch. Switches without a table do not count: no tree uses them.
func Ceiling(f *topo.Fabric) ib.LID {
	room := int(ib.MaxMulticastLID) - int(ib.MinMulticastLID) + 1
	for _, id := range f.Switches() {
		if c := int(f.Node(id).MulticastFDBCap); c > 0 {
			room = min(room, c)
		}
	}
	return ib.MinMulticastLID + ib.LID(room)
}

// Fabric returns the fabric of the ground.
func (gr *Ground) Fabric() *topo.Fabric { return gr.f }

// ground makes the ground of what leads up by now.
func (b *groundBuilder) ground(sl ib.SL, vl ib.VL) *Ground {
	g := b.g
	n := len(g.IDs)
	gr := &Ground{SL: sl, VL: vl, Islands: b.report, f: b.f, g: g, upRow: make([]int32, 1, n+1), back: make([]ib.PortNum, len(g.To)), top: make([]int32, n), island: make([]int32, n)}
	for i, island := range b.island {
		for _, s := range island {
			gr.island[s] = int32(i)
		}
	}
	gr.ceiling = Ceiling(b.f)
	for s := range int32(n) {
		for e := g.Row[s]; e < g.Row[s+1]; e++ {
			gr.back[e] = b.f.Port(b.f.LinkUp(b.f.PortOf(g.IDs[s], g.Port[e]))).Num
			if b.up[e] {
				gr.upEdge = append(gr.upEdge, e)
			}
		}
		gr.upRow = append(gr.upRow, int32(len(gr.upEdge)))
		gr.top[s] = -1
		if gr.upRow[s] == gr.upRow[s+1] {
			gr.top[s] = int32(len(gr.tops))
			gr.tops = append(gr.tops, s)
		}
	}
	gr.within = newWithin(g, gr.upRow, gr.upEdge, gr.tops)
	return gr
}

// ups returns the edges that lead up from a switch.
func (gr *Ground) ups(s int32) []int32 { return gr.upEdge[gr.upRow[s]:gr.upRow[s+1]] }

// within says which tops are at most a number of links above a switch.
type within struct {
	words int
	by    [][]uint64 // by links: a set of tops for each switch, words each
}

func newWithin(g *route.Graph, upRow, upEdge, tops []int32) within {
	n := len(g.IDs)
	w := within{words: (len(tops) + 63) / 64}
	first := make([]uint64, n*w.words)
	for i, s := range tops {
		first[int(s)*w.words+i/64] |= 1 << (i % 64)
	}
	w.by = append(w.by, first)
	for changed := true; changed; {
		changed = false
		last := w.by[len(w.by)-1]
		next := slices.Clone(last)
		for s := range n {
			row := next[s*w.words : (s+1)*w.words]
			for _, e := range upEdge[upRow[s]:upRow[s+1]] {
				to := int(g.To[e])
				for i, set := range last[to*w.words : (to+1)*w.words] {
					changed = changed || set&^row[i] != 0
					row[i] |= set
				}
			}
		}
		if changed {
			w.by = append(w.by, next)
		}
	}
	return w
}

// of returns the tops that are at most the given number of links above a switch.
func (w *within) of(links int, s int32) []uint64 {
	return w.by[links][int(s)*w.words : (int(s)+1)*w.words]
}

// has reports whether a top is at most some links above a switch.
func (w *within) has(links int, s, top int32) bool {
	return w.by[links][int(s)*w.words+int(top)/64]&(1<<(top%64)) != 0
}
