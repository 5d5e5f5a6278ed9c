package nexthop

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
)

// gain is how many times its own traffic a route must find less of on a link
// that is new before it moves there: moving costs packets out of order, and
// small differences level out by themselves.
const gain = 4

type spreader struct {
	g       *route.Graph
	t, prev *route.Tables
	choices *Choices // towards the destination in hand

	fresh   []bool         // by edge: prev did not know the link
	movable bool           // some choice towards the destination in hand is fresh
	allowed []int32        // by edge: the destination that it was last allowed for
	have    [][]ib.PortNum // by switch: its entries before anything was decided
	batch   *batch         // last decisions that were not handed over for writing
	pick    []int32        // by position in choices.Order: edge
	cost    []int64        // by switch: load of the route to the destination
	flow    []int64        // by switch: CA ports whose packets pass
	load    []int32        // by edge; two parts of 49151 LIDs make at most 2^30 routes
	kept    []bool         // by LID: every entry was kept
	round   int            // counts the LIDs that were routed
	bests   []best         // by class of the choices
	floors  []floor        // by switch
	trails  trails
	several bool    // ports have several LIDs
	turns   []int32 // by LID, see Share
	ignored []bool  // by LID, see Share
}

func newSpreader(g *route.Graph, t, prev *route.Tables) *spreader {
	n := len(g.IDs)
	s := &spreader{
		g: g, t: t, prev: prev,
		allowed: make([]int32, len(g.To)), have: make([][]ib.PortNum, n), batch: newBatch(n), pick: make([]int32, n),
		cost: make([]int64, n), flow: make([]int64, n), load: make([]int32, len(g.To)),
		kept: make([]bool, int(g.MaxLID)+1), floors: make([]floor, n),
	}
	for e := range s.allowed {
		s.allowed[e] = -1
	}
	for _, targets := range g.Targets {
		for _, t := range targets {
			s.several = s.several || t.Path > 0
		}
	}
	if s.several {
		s.trails = newTrails(g)
	}
	for sw, id := range g.IDs {
		s.have[sw] = t.LFT(id)
	}
	return s
}

// markFresh finds the edges that prev did not know.
func (s *spreader) markFresh() {
	s.fresh = make([]bool, len(s.g.To))
	for sw := range int32(len(s.g.IDs)) {
		for e := s.g.Row[sw]; e < s.g.Row[sw+1]; e++ {
			s.fresh[e] = !s.prev.KnewLink(s.g, sw, e)
		}
	}
}

// use takes the choices for the next destination.
func (s *spreader) use(dest int32, c *Choices) {
	s.choices, s.movable = c, false
	if more := c.classes - len(s.bests); more > 0 {
		s.bests = append(s.bests, make([]best, more)...)
	}
	if s.prev == nil {
		return
	}
	for _, e := range c.Edge {
		s.allowed[e] = dest
		s.movable = s.movable || s.fresh[e]
	}
}

// gather adds some LIDs to the batch, with the entries that they have.
func (s *spreader) gather(lids []route.Target) {
	b := s.batch
	first := len(b.lids)
	b.lids = append(b.lids, lids...)
	for sw, row := range s.have {
		for k, t := range lids {
			b.column(first + k)[sw] = row[t.LID]
		}
	}
}

// keep finds the LIDs behind a switch whose routes are all still allowed, and
// counts their load.
func (s *spreader) keep(dest int32) {
	eachChunk(s.g.Targets[dest], func(lids []route.Target) {
		s.batch.lids = s.batch.lids[:0]
		s.gather(lids)
		for k, t := range lids {
			s.kept[t.LID] = !s.movable && s.stillRight(dest, t, s.batch.column(k))
			if s.kept[t.LID] {
				s.account(t)
			}
		}
	})
}

// stillRight reports whether every entry for a LID is allowed, and leaves the
// edges in pick.
func (s *spreader) stillRight(dest int32, t route.Target, ports []ib.PortNum) bool {
	if ports[dest] != t.Out {
		return false
	}
	reached := len(s.choices.Order)
	for i, sw := range s.choices.Order {
		if i == 0 {
			continue
		}
		if s.pick[i] = s.keptEdge(dest, sw, ports[sw]); s.pick[i] < 0 {
			return false
		}
	}
	if reached == len(ports) {
		return true
	}
	set := 0
	for _, p := range ports {
		if p != ib.NoPort {
			set++
		}
	}
	if t.Out == ib.NoPort {
		set++
	}
	return set == reached
}

// keptEdge returns the edge of an entry if it is allowed, else -1.
func (s *spreader) keptEdge(dest, sw int32, port ib.PortNum) int32 {
	if e := s.g.EdgeAt(sw, port); e >= 0 && s.allowed[e] == dest {
		return e
	}
	return -1
}

// fill routes some LIDs behind a switch. Batches that are full are exchanged
// for empty ones.
func (s *spreader) fill(dest int32, open []route.Target, exchange func(*batch) *batch) {
	eachChunk(open, func(lids []route.Target) {
		if len(s.batch.lids)+len(lids) > chunk {
			s.batch = exchange(s.batch)
		}
		first := len(s.batch.lids)
		if s.prev != nil {
			s.gather(lids)
		} else {
			s.batch.lids = append(s.batch.lids, lids...)
		}
		for k, t := range lids {
			if s.prev == nil && !s.several {
				s.routeFirst(dest, t, s.batch.column(first+k))
			} else {
				s.routeOne(dest, t, s.batch.column(first+k))
			}
		}
	})
}

// routeFirst is routeOne where there are no entries yet.
func (s *spreader) routeFirst(dest int32, t route.Target, ports []ib.PortNum) {
	c := s.choices
	s.cost[dest] = 0
	s.round++
	if len(c.Order) < len(ports) {
		for sw := range ports {
			ports[sw] = ib.NoPort
		}
	}
	ports[dest] = t.Out
	cost, pick, out := s.cost, s.pick[:len(c.steps)], s.g.Port
	for i := 1; i < len(c.steps); i++ {
		st := &c.steps[i]
		e := st.first
		switch {
		case st.n == 1:
			cost[st.sw] = cost[st.to] + int64(s.load[e])
		case st.class == noClass:
			e = s.cheapestOf(st.sw, c.Edge[c.Row[i]:c.Row[i+1]])
		default:
			e = s.cheapestIn(st.class, st.sw, run{st.first, st.n})
		}
		pick[i] = e
		ports[st.sw] = out[e]
	}
	s.account(t)
}

// routeOne decides the route of every switch to one LID. ports has the present
// entries and receives the new ones.
func (s *spreader) routeOne(dest int32, t route.Target, ports []ib.PortNum) {
	c := s.choices
	s.cost[dest] = 0
	s.round++
	if s.movable {
		s.presentFlow(dest, ports)
	}
	for i := 1; i < len(c.Order); i++ {
		sw := c.Order[i]
		e := int32(-1)
		if s.prev != nil {
			e = s.keptEdge(dest, sw, ports[sw])
		}
		if e >= 0 {
			e = s.stayOrMove(i, e)
		} else {
			e = s.cheapest(i)
			if s.several && s.g.Hosts[sw] > 0 {
				e = s.apart(i, t, e)
			}
		}
		s.pick[i] = e
	}
	for sw := range ports {
		ports[sw] = ib.NoPort
	}
	ports[dest] = t.Out
	for i := 1; i < len(c.Order); i++ {
		ports[c.Order[i]] = s.g.Port[s.pick[i]]
	}
	s.account(t)
}

// presentFlow sets flow to what passes each switch as long as all stays.
func (s *spreader) presentFlow(dest int32, ports []ib.PortNum) {
	copy(s.flow, s.g.Hosts)
	for i := len(s.choices.Order) - 1; i > 0; i-- {
		sw := s.choices.Order[i]
		if e := s.keptEdge(dest, sw, ports[sw]); e >= 0 {
			s.flow[s.g.To[e]] += s.flow[sw]
		}
	}
}

// stayOrMove returns the present next hop of the i-th switch, or a new link where the route meets clearly less load, and
// sets the switch's cost.
func (s *spreader) stayOrMove(i int, present int32) int32 {
	sw, edge := s.choices.Order[i], present
	cost := s.cost[s.g.To[present]] + int64(s.load[present])
	if s.movable {
		best := cost - gain*s.flow[sw]
		for _, e := range s.choices.Edge[s.choices.Row[i]:s.choices.Row[i+1]] {
			if c := s.cost[s.g.To[e]] + int64(s.load[e]); s.fresh[e] && c < best {
				edge, cost, best = e, c, c
			}
		}
	}
	s.cost[sw] = cost
	return edge
}

// account adds the load of the picked routes to a LID. Routes to switches carry management only and do not count.
func (s *spreader) account(t route.Target) {
	if t.Out == 0 || s.ignored != nil && s.ignored[t.LID] {
		return
	}
	copy(s.flow, s.g.Hosts)
	for i := len(s.choices.Order) - 1; i > 0; i-- {
		n := s.flow[s.choices.Order[i]]
		if n == 0 {
			continue
		}
		e := s.pick[i]
		s.load[e] += int32(n)
		s.flow[s.g.To[e]] += n
	}
}

func eachChunk(lids []route.Target, visit func([]route.Target)) {
	for len(lids) > 0 {
		n := min(chunk, len(lids))
		visit(lids[:n])
		lids = lids[n:]
	}
}
