package dor

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
)

// layering deals pairs of switches to layers.
type layering struct {
	g     *route.Graph
	rows  [][]ib.PortNum // tables by switch
	layer []uint8        // by pair

	// A step is the use of one edge right after another. The steps after edge
	// e begin at first[e], one for each edge of the switch it leads to.
	first []int32
	count []int32 // by step: routes of the layer in hand that make it

	touched []int32 // edges of the pair in hand that others follow
	state   []uint8 // by edge, of the search for circles
	path    []visit // of the search
}

func newLayering(g *route.Graph, t *route.Tables) *layering {
	n := len(g.IDs)
	l := &layering{
		g: g, rows: make([][]ib.PortNum, n), layer: make([]uint8, n*(n-1)/2),
		first: make([]int32, len(g.To)+1), state: make([]uint8, len(g.To)),
	}
	for s, id := range g.IDs {
		l.rows[s] = t.LFT(id)
	}
	for e, to := range g.To {
		l.first[e+1] = l.first[e] + g.Row[to+1] - g.Row[to]
	}
	l.count = make([]int32, l.first[len(g.To)])
	return l
}

// pair numbers two different switches.
func (l *layering) pair(a, b int32) int {
	if a < b {
		a, b = b, a
	}
	return int(a)*(int(a)-1)/2 + int(b)
}

// deal puts each pair into the first of some layers in which no circle closes,
// one layer after the other, and gives how many it took; ok is false if there
// are too few.
func (l *layering) deal(most int) (count int, ok bool) {
	for layer := range uint8(most) {
		if l.fill(layer) == 0 {
			return int(layer) + 1, true
		}
	}
	return most, false
}

// fill takes what is in a layer out, puts back what fits, and moves the rest to
// the next. It gives how many pairs moved.
func (l *layering) fill(layer uint8) (moved int) {
	clear(l.count)
	for a := range int32(len(l.g.IDs)) {
		for b := range a {
			p := l.pair(a, b)
			if l.layer[p] != layer {
				continue
			}
			l.add(a, b, 1)
			if l.circle() {
				l.add(a, b, -1)
				l.layer[p]++
				moved++
			}
		}
	}
	return moved
}

// add counts the steps of all routes between two switches n times, and leaves
// their edges in touched.
func (l *layering) add(a, b int32, n int32) {
	l.touched = l.touched[:0]
	l.addOneWay(a, b, n)
	l.addOneWay(b, a, n)
}

func (l *layering) addOneWay(from, home, n int32) {
	for _, target := range l.g.Targets[home] {
		if l.sends(from, target) {
			l.follow(from, target.LID, n)
		}
	}
}

// sends reports whether a switch, or what is behind it, may send data to a
// LID: switches send none to each other.
func (l *layering) sends(from int32, target route.Target) bool {
	return target.Out != 0 || l.g.Hosts[from] > 0
}

func (l *layering) step(e, next int32) int32 { return l.first[e] + next - l.g.Row[l.g.To[e]] }

// follow counts the steps of a route n times. The routes are known to be free
// of loops.
func (l *layering) follow(s int32, lid ib.LID, n int32) {
	for e := l.g.EdgeAt(s, l.rows[s][lid]); e >= 0; {
		s = l.g.To[e]
		next := l.g.EdgeAt(s, l.rows[s][lid])
		if next < 0 {
			return
		}
		l.count[l.step(e, next)] += n
		l.touched = append(l.touched, e)
		e = next
	}
}
