package minhop

import (
	"container/heap"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/nexthop"
	"portcullis/fabricsm/topo"
)

// Weight is the cost of a switch port when packets leave by it: it counts as so many hops, 1 to [MaxWeight]. It is a line
// of OpenSM's hop_weights_file.
type Weight struct {
	Switch ib.GUID // node GUID
	Port   ib.PortNum
	Hops   int
}

// MaxWeight bounds a weight.
const MaxWeight = 255

// costs returns the cost of every edge.
func (e Engine) costs(f *topo.Fabric, g *route.Graph) []int32 {
	costs := make([]int32, len(g.To))
	for i := range costs {
		costs[i] = 1
	}
	for _, w := range e.Weights {
		id := f.NodeByGUID(w.Switch)
		if id == topo.None || g.Num[id] < 0 {
			continue
		}
		if edge := g.EdgeAt(g.Num[id], w.Port); edge >= 0 {
			costs[edge] = int32(min(max(1, w.Hops), MaxWeight))
		}
	}
	return costs
}

// cheapest allows the links that ways with the least sum of weights begin with.
func cheapest(g *route.Graph, costs []int32) nexthop.Rule {
	far := make([]int32, len(g.IDs))
	done := make([]bool, len(g.IDs))
	q := &queue{}
	return func(dest int32, c *nexthop.Choices) {
		for s := range far {
			far[s], done[s] = -1, false
		}
		far[dest] = 0
		heap.Push(q, place{0, dest})
		for q.Len() > 0 {
			at := heap.Pop(q).(place)
			if done[at.sw] {
				continue
			}
			done[at.sw] = true
			c.Order = append(c.Order, at.sw)
			for e := g.Row[at.sw]; e < g.Row[at.sw+1]; e++ {
				from := g.To[e]
				sum := at.far + costs[g.Reverse(at.sw, e)] // packets come the other way
				if !done[from] && (far[from] < 0 || sum < far[from]) {
					far[from] = sum
					heap.Push(q, place{sum, from})
				}
			}
		}
		c.Row = append(c.Row, 0)
		for _, s := range c.Order[1:] {
			for e := g.Row[s]; e < g.Row[s+1]; e++ {
				if to := g.To[e]; far[to] >= 0 && far[to]+costs[e] == far[s] {
					c.Edge = append(c.Edge, e)
				}
			}
			c.Row = append(c.Row, int32(len(c.Edge)))
		}
	}
}

// place is a switch and how far it is from the destination.
type place struct{ far, sw int32 }

// queue returns the nearest switch first, among equally near ones the first.
type queue []place

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].far < q[j].far || q[i].far == q[j].far && q[i].sw < q[j].sw
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(place)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
