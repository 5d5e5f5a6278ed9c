package nexthop

import (
	"runtime"
	"sync"

	"portcullis/fabricsm/route"
)

// lookahead is how many destinations' choices are prepared before they are
// needed.
const lookahead = 4

// ask fills in the choices towards a destination.
func ask(rule Rule, dest int32, c *Choices) {
	c.Reset()
	rule(dest, c)
}

// classify numbers the classes of all choices.
func (c *Choices) classify(k *classes) {
	c.class, c.steps = append(c.class[:0], noClass), append(c.steps[:0], step{})
	for i := 1; i < len(c.Order); i++ {
		sw, edges := c.Order[i], c.Edge[c.Row[i]:c.Row[i+1]]
		class := k.class(sw, edges)
		c.class = append(c.class, class)
		c.steps = append(c.steps, step{sw: sw, first: edges[0], n: int32(len(edges)), to: k.g.To[edges[0]], class: class})
	}
	c.classes = len(k.reps)
}

// keepAll finds the entries that stay. Each core checks a range of destinations; their loads are added up.
func (s *spreader) keepAll(newRule func() Rule) {
	s.markFresh()
	n := len(s.g.IDs)
	cores := max(1, min(runtime.GOMAXPROCS(0), n/16))
	parts := make([]*spreader, cores)
	var wg sync.WaitGroup
	for i := range parts {
		part := newSpreader(s.g, s.t, s.prev)
		part.fresh, part.ignored = s.fresh, s.ignored
		part.kept = s.kept // by LID, and every LID has one destination
		parts[i] = part
		wg.Go(func() {
			rule, c := newRule(), &Choices{}
			for dest := int32(i * n / cores); dest < int32((i+1)*n/cores); dest++ {
				ask(rule, dest, c)
				part.use(dest, c)
				part.keep(dest)
			}
		})
	}
	wg.Wait()
	for _, part := range parts {
		for e, load := range part.load {
			s.load[e] += load
		}
	}
}

// fillAll routes the LIDs that were not kept, one destination after the other since each decision counts for the next.
// Other cores prepare the choices and write the decisions.
func (s *spreader) fillAll(newRule func() Rule) {
	first, rest := s.inTurn(s.open())
	open := append(first, rest...)
	ready, free := make(chan *Choices, lookahead), make(chan *Choices, lookahead)
	for range lookahead {
		free <- &Choices{}
	}
	full, empty := make(chan *batch, 1), make(chan *batch, 2)
	empty <- newBatch(len(s.g.IDs))
	var wg sync.WaitGroup
	wg.Go(func() {
		rule, k := newRule(), newClasses(s.g)
		for _, o := range open {
			c := <-free
			ask(rule, o.dest, c)
			c.classify(k)
			ready <- c
		}
	})
	wg.Go(func() {
		for b := range full {
			b.write(s.g, s.t, s.prev)
			empty <- b
		}
	})
	exchange := func(b *batch) *batch {
		full <- b
		return <-empty
	}
	for _, o := range open {
		c := <-ready
		s.use(o.dest, c)
		s.fill(o.dest, o.lids, exchange)
		free <- c
	}
	full <- s.batch
	close(full)
	wg.Wait()
}

// open returns the destinations with LIDs that were not wholly kept, and these LIDs.
func (s *spreader) open() (open []turn) {
	for dest, targets := range s.g.Targets {
		var lids []route.Target
		for _, t := range targets {
			if !s.kept[t.LID] {
				lids = append(lids, t)
			}
		}
		if len(lids) > 0 {
			open = append(open, turn{int32(dest), lids})
		}
	}
	return open
}
