package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"portcullis/fabricsm/sim"
)

const (
	// count is how often the Sets of each instance are counted.
	count = 20 * time.Millisecond
	// ask is how often each instance is asked which one leads.
	ask = 200 * time.Millisecond
	// turn is the least time between two changes of the instance that writes. No lease ends
	// so soon, and no fault begins so soon after the last.
	turn = 500 * time.Millisecond
)

// writers judges by the Sets that devices took that one instance writes at a time.
type writers struct {
	totals  map[string]uint64 // by node, at the last count; nil before the first
	writer  string            // node that wrote last
	changed time.Time         // when it began, after another one; zero for the first
}

// note takes a count. It returns an error when the instance that writes changes twice
// within a turn: two of them write.
func (w *writers) note(now time.Time, totals map[string]uint64) error {
	if w.totals == nil {
		w.totals = totals
		return nil
	}
	var grew []string
	for node, n := range totals {
		if n > w.totals[node] {
			grew = append(grew, node)
		}
	}
	was := w.totals
	w.totals = totals
	slices.Sort(grew)
	if i := slices.Index(grew, w.writer); i > 0 { // it was first
		grew[0], grew[i] = grew[i], grew[0]
	}
	for _, node := range grew {
		if node == w.writer {
			continue
		}
		if w.writer == "" {
			w.writer = node
			continue
		}
		if since := now.Sub(w.changed); since < turn {
			return fmt.Errorf("TWO WRITERS: %s sent %d Sets %v after %s began to write", node, totals[node]-was[node], since, w.writer)
		}
		w.writer, w.changed = node, now
	}
	return nil
}

// written returns how many Sets devices took from each instance, by its node.
func (s *site) written() map[string]uint64 {
	sets := s.fabric.Sets()
	out := make(map[string]uint64, len(s.plan.managers))
	for _, node := range s.plan.managers {
		out[node] = total(sets[node])
	}
	return out
}

func total(s sim.Sets) (n uint64) {
	for _, of := range s.ByAttr {
		n += of
	}
	return n
}

// lidsWritten returns how many LIDs all instances have changed.
func (s *site) lidsWritten() (n uint64) {
	for _, of := range s.fabric.Sets() {
		n += of.LIDs
	}
	return n
}

// countWrites judges the counts until ctx ends.
func (s *site) countWrites(ctx context.Context) error {
	tick := time.NewTicker(count)
	defer tick.Stop()
	var w writers
	for {
		if err := w.note(time.Now(), s.written()); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// term is what an instance answered about the leader.
type term struct {
	leader string // name of an instance; "": none
	epoch  uint64
}

// outside returns an error when an instance other than the leader wrote between two
// answers that name the same term. The first count is later than the first answer, and the
// second count earlier than the second question, so that the term covers all between.
func outside(first, second term, before, after map[string]uint64, nodeOf func(instance string) string) error {
	if first != second || first.leader == "" {
		return nil
	}
	for node, n := range after {
		if d := n - before[node]; d > 0 && node != nodeOf(first.leader) {
			return fmt.Errorf("TWO WRITERS: %s sent %d Sets in the term of %s, epoch %d", node, d, first.leader, first.epoch)
		}
	}
	return nil
}

// termCount counts what was judged, by instance that was asked.
type termCount struct {
	mu    sync.Mutex
	spans map[string]int  // between two answers that name the same term
	terms map[uint64]bool // epochs that were named
}

func (c *termCount) add(asked string, first, second term) {
	if second.leader == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.terms == nil {
		c.spans, c.terms = map[string]int{}, map[uint64]bool{}
	}
	c.terms[second.epoch] = true
	if first == second {
		c.spans[asked]++
	}
}

// judged returns an error for an instance that never named the same term twice in a row, of
// which nothing was judged.
func (c *termCount) judged(nodes []*instance) (spans, terms int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range nodes {
		if c.spans[n.name()] == 0 {
			return 0, 0, fmt.Errorf("%s never named the same term twice in a row: that one instance writes was not judged", n.name())
		}
		spans += c.spans[n.name()]
	}
	return spans, len(c.terms), nil
}

// watchTerms asks an instance again and again which one leads, until ctx ends, and judges
// that no other one writes.
func (s *site) watchTerms(ctx context.Context, n *instance) error {
	var last term
	var before map[string]uint64
	tick := time.NewTicker(ask)
	defer tick.Stop()
	for {
		after := s.written()
		now := term{}
		if sm, err := n.client.SM().Get(ctx); err == nil {
			now = term{leader: sm.Leader, epoch: sm.Epoch}
			s.terms.add(n.name(), last, now)
			if err := outside(last, now, before, after, s.nodeOf); err != nil {
				return err
			}
		}
		last, before = now, s.written()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// nodeOf returns the node at which an instance attaches; "" for one that there is not.
func (s *site) nodeOf(instance string) string {
	if n := s.called(instance); n != nil {
		return s.plan.managers[n.number]
	}
	return ""
}
