package route

import (
	"math/bits"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// laneWalk follows the packets of tables whose lanes depend on ports. A channel
// is one lane of an edge; its number is the edge's times the number of lanes,
// plus the lane.
type laneWalk struct {
	g       *Graph
	t       *Tables
	lanes   int
	in, out []uint8         // by edge: class of the port it comes in by, and leaves by
	level   []uint16        // by switch and lane of the edge it sends by: the service levels that pass, a bit each
	waits   []*dependencies // by lane, then the lane after: edges used one after the other
}

func newLaneWalk(g *Graph, t *Tables) *laneWalk {
	w := &laneWalk{
		g: g, t: t, lanes: t.Layers(), in: make([]uint8, len(g.To)), out: make([]uint8, len(g.To)),
		level: make([]uint16, len(g.IDs)*t.Layers()),
	}
	for id, e := range g.portOut {
		if e >= 0 {
			w.out[e] = t.ports.class[id]
			w.in[e] = t.ports.class[g.f.LinkUp(topo.PortID(id))]
		}
	}
	for range w.lanes * w.lanes {
		w.waits = append(w.waits, newDependencies(g))
	}
	return w
}

// vl returns the lane of packets that come in by a port of a class.
func (w *laneWalk) vl(in uint8, e int32, sl int) ib.VL {
	return w.t.ports.vl[in*w.t.ports.classes+w.out[e]][sl]
}

// account adds the channels that routes to a LID use one after the other.
func (w *laneWalk) account(j *judge, home int32, t Target) {
	clear(w.level)
	id := w.g.IDs[home]
	for i := len(j.order) - 1; i >= 0; i-- {
		s := j.order[i]
		e := j.next[s]
		if e < 0 {
			continue
		}
		mine := w.level[int(s)*w.lanes:][:w.lanes]
		if t.Out != 0 || w.g.Hosts[s] > 0 {
			sl := int(w.t.layerOf(w.g.IDs[s], id))
			w.enter(mine, w.vl(0, e, sl), sl)
		}
		if follow := j.next[w.g.To[e]]; follow >= 0 {
			for vl, levels := range mine {
				w.pass(e, vl, levels, follow)
			}
		}
	}
}

// enter notes that packets of a service level use a lane; VL15 drops them.
func (w *laneWalk) enter(levels []uint16, vl ib.VL, sl int) {
	if int(vl) < len(levels) {
		levels[vl] |= 1 << sl
	}
}

// pass takes packets from a lane of one edge on to the next edge.
func (w *laneWalk) pass(e int32, vl int, levels uint16, follow int32) {
	next := w.level[int(w.g.To[e])*w.lanes:][:w.lanes]
	for l := levels; l != 0; l &= l - 1 {
		sl := bits.TrailingZeros16(l)
		after := w.vl(w.in[e], follow, sl)
		if int(after) < w.lanes {
			w.enter(next, after, sl)
			w.waits[vl*w.lanes+int(after)].set(e, follow)
		}
	}
}

// each calls visit for every channel that is used right after one.
func (w *laneWalk) each(channel int32, visit func(int32)) {
	e, vl := channel/int32(w.lanes), int(channel)%w.lanes
	for after := range w.lanes {
		w.waits[vl*w.lanes+after].each(e, func(next int32) { visit(next*int32(w.lanes) + int32(after)) })
	}
}

// laneLoop searches for a cycle in the results of all judges.
func (r *Report) laneLoop(judges []*judge, rows [][]ib.PortNum) {
	w := judges[0].byPort
	for _, j := range judges[1:] {
		for i, d := range j.byPort.waits {
			w.waits[i].merge(d)
		}
	}
	c := circles{n: len(w.g.To) * w.lanes, each: w.each}
	circle := c.find()
	if circle == nil {
		return
	}
	d := w.waits[0]
	for i, c := range circle {
		e, next := c/int32(w.lanes), circle[(i+1)%len(circle)]/int32(w.lanes)
		link := w.g.channel(d.source(e), e)
		link.LID = d.reason(e, next, rows)
		r.CreditLoop = append(r.CreditLoop, link)
	}
	r.CreditLoopVL = ib.VL(circle[0] % int32(w.lanes))
}

// circles finds a cycle in a graph, from a function that returns the nodes after a node.
type circles struct {
	n    int
	each func(node int32, visit func(next int32))
}

// find returns a shortest cycle through one of the nodes that lie on cycles, in order, nil if there is none.
func (c circles) find() []int32 {
	waiting := make([]int32, c.n)
	for x := range int32(c.n) {
		c.each(x, func(next int32) { waiting[next]++ })
	}
	var free []int32
	for x, n := range waiting {
		if n == 0 {
			free = append(free, int32(x))
		}
	}
	left := c.n
	for ; len(free) > 0; left-- {
		x := free[len(free)-1]
		free = free[:len(free)-1]
		c.each(x, func(next int32) {
			if waiting[next]--; waiting[next] == 0 {
				free = append(free, next)
			}
		})
	}
	if left == 0 {
		return nil
	}
	return c.through(c.onCircle(waiting))
}

// onCircle walks backwards from a node that waits, until it returns.
func (c circles) onCircle(waiting []int32) int32 {
	before, start := make([]int32, c.n), int32(-1)
	for x := int32(c.n) - 1; x >= 0; x-- {
		if waiting[x] == 0 {
			continue
		}
		start = x
		c.each(x, func(next int32) {
			if waiting[next] > 0 {
				before[next] = x
			}
		})
	}
	seen := make([]bool, c.n)
	for !seen[start] {
		seen[start] = true
		start = before[start]
	}
	return start
}

// through returns a shortest cycle through a node.
func (c circles) through(start int32) []int32 {
	from := make([]int32, c.n)
	for i := range from {
		from[i] = -1
	}
	for queue := []int32{start}; len(queue) > 0 && from[start] < 0; queue = queue[1:] {
		c.each(queue[0], func(next int32) {
			if from[next] < 0 {
				from[next] = queue[0]
				queue = append(queue, next)
			}
		})
	}
	circle := []int32{start}
	for x := from[start]; x != start; x = from[x] {
		circle = append(circle, x)
	}
	for i, k := 1, len(circle)-1; i < k; i, k = i+1, k-1 {
		circle[i], circle[k] = circle[k], circle[i]
	}
	return circle
}
