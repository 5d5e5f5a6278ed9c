// Package layered assigns routes to virtual lanes so that no lane has a credit loop.
//
// Each pair of switches goes to the first layer in which no cycle closes, as in layered shortest path routing (LASH). A
// pair is both directions together, as an answer comes back with the service level of the request.
package layered

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// Lanes returns how many virtual lanes routes may be assigned to: at most wanted (at least 1), [route.MaxLayers], and the
// lanes of every link between switches. narrow is the port that has fewest if links are the limit, and None otherwise.
// Ports that have not reported their number of lanes do not count.
func Lanes(f *topo.Fabric, wanted int) (most int, narrow topo.PortID) {
	most, narrow = max(1, min(wanted, route.MaxLayers)), topo.None
	for _, id := range f.Switches() {
		n := f.Node(id)
		for i := 1; i <= int(n.NumPorts); i++ {
			port := n.FirstPort + topo.PortID(i)
			peer := f.LinkUp(port)
			if peer == topo.None || f.NodeOf(peer).Type != ib.NodeSwitch || f.Port(peer).Node == id {
				continue
			}
			if c := f.Port(port).VLCap; c != 0 && c.Count() < most {
				most, narrow = max(1, c.Count()), port
			}
		}
	}
	return most, narrow
}

// Deal sets the layers of tables that one lane cannot hold, at most as many as [Lanes] allows. Tables without a cycle are
// left in one layer: their senders may then use any service level. Otherwise all lanes are used, with about the same number
// of routes in each. Pairs that prev (which may be nil) has in a layer stay there as far as that is free of cycles, so that
// connections keep their service level. The error says that the lanes are too few.
func Deal(f *topo.Fabric, t, prev *route.Tables, wanted int) error {
	return deal(f, t, prev, wanted, (*dealer).balance)
}

// Fit is like [Deal], but uses no more lanes than are needed: for routes of
// which only some, that few send along, need a second lane.
func Fit(f *topo.Fabric, t, prev *route.Tables, wanted int) error {
	return deal(f, t, prev, wanted, func(_ *dealer, used int) int { return used })
}

func deal(f *topo.Fabric, t, prev *route.Tables, wanted int, spread func(d *dealer, used int) int) error {
	if route.Check(f, t).CreditLoop == nil {
		return nil
	}
	g, err := route.NewGraph(f, prev)
	if err != nil {
		return err
	}
	most, narrow := Lanes(f, wanted)
	d := newDealer(g, t, most)
	if prev != nil && prev.Engine == t.Engine && prev.Layers() > 1 && prev.Layers() <= most {
		d.begin(prev)
		if d.deal() {
			d.publish(t, max(d.used(), prev.Layers()))
			return nil
		}
		clear(d.layer)
	}
	if d.deal() {
		d.publish(t, spread(d, d.used()))
		return nil
	}
	if narrow != topo.None {
		return fmt.Errorf("these routes need more virtual lanes than the %d that switch %v port %d carries", most, f.NodeOf(narrow).GUID, f.Port(narrow).Num)
	}
	return fmt.Errorf("these routes need more than %d virtual lanes; allow more, or use updn", most)
}

// dealer assigns pairs of switches to layers.
type dealer struct {
	g       *route.Graph
	rows    [][]ib.PortNum   // tables by switch
	targets [][]route.Target // by switch: LIDs behind it, one for each set of routes
	most    int
	layer   []uint8 // by pair

	// A step is the use of one edge right after another. The steps after edge
	// e begin at first[e], one for each edge of the switch it leads to.
	first   []int32
	count   []int32 // by step: routes of the layer in hand that make it
	from    []int32 // by edge: the switch that it leaves
	reverse []int32 // by edge: the other direction of its link

	order *order
	added []int32 // steps of the pair in hand
	shut  []bool  // by step: it closes a cycle in the present layer

	failed struct{ e, after int32 } // the last step that closed a cycle
}

func newDealer(g *route.Graph, t *route.Tables, most int) *dealer {
	n := len(g.IDs)
	d := &dealer{
		g: g, most: most, rows: make([][]ib.PortNum, n), layer: make([]uint8, n*(n-1)/2),
		first: make([]int32, len(g.To)+1), from: make([]int32, len(g.To)), reverse: make([]int32, len(g.To)),
	}
	for s, id := range g.IDs {
		d.rows[s] = t.LFT(id)
		for e := g.Row[s]; e < g.Row[s+1]; e++ {
			d.from[e], d.reverse[e] = int32(s), g.Reverse(int32(s), e)
		}
	}
	for e, to := range g.To {
		d.first[e+1] = d.first[e] + g.Row[to+1] - g.Row[to]
	}
	for s := range int32(n) {
		d.targets = append(d.targets, d.distinct(s))
	}
	d.count = make([]int32, d.first[len(g.To)])
	d.shut = make([]bool, len(d.count))
	d.order = newOrder(d)
	return d
}

// pair numbers two different switches.
func pair(a, b int32) int {
	if a < b {
		a, b = b, a
	}
	return int(a)*(int(a)-1)/2 + int(b)
}

// begin puts the pairs where other tables have them.
func (d *dealer) begin(prev *route.Tables) {
	for a, x := range d.g.IDs {
		for b, y := range d.g.IDs[:a] {
			d.layer[pair(int32(a), int32(b))] = uint8(prev.PairSL(x, y))
		}
	}
}

// deal moves all pairs that close cycles from each layer in turn into the next. It reports whether the layers were enough.
// If the remaining layers would each have to take more than twice as much as one took, it stops: later layers take less
// rather than more.
func (d *dealer) deal() bool {
	for layer := range d.most {
		stayed, moved := d.fill(uint8(layer))
		if moved > 2*stayed*(d.most-1-layer) {
			return false
		}
	}
	return true
}

// used returns how many layers have pairs, counting from the first.
func (d *dealer) used() int {
	most := uint8(0)
	for _, l := range d.layer {
		most = max(most, l)
	}
	return int(most) + 1
}

func (d *dealer) publish(t *route.Tables, count int) {
	t.SetLayers(d.g, count, func(a, b int32) uint8 { return d.layer[pair(a, b)] })
}
