package sm

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// rollout is the order in which changes of the tables of a running fabric are written. Blocks that repair a broken path
// come first. Among those, and among the others, the blocks nearest to the destinations come first: a switch learns a new
// route when the switches on it know theirs. So no packet loops between the old tables and the new ones, unless two LIDs of
// one block need different orders.
type rollout struct {
	steps []rolloutStep
	next  int // of steps
	open  int // blocks of the present stage that are not written yet
}

// rolloutStep is a block to be written.
type rolloutStep struct {
	sw    topo.NodeID
	block int32
	stage int32
}

// lateStage is added to the stage of blocks that repair no path.
const lateStage = 1 << 16

// planRollout orders the blocks in which new tables differ from the ones before.
func (c *Core) planRollout(f *topo.Fabric, old, tables *route.Tables) {
	r := &c.routing.rollout
	for _, s := range r.steps { // planned for tables that are not wanted any more
		c.nodes[s.sw].lft.held.Remove(int(s.block))
		c.nodes[s.sw].lft.rolling.Remove(int(s.block))
	}
	*r = rollout{steps: r.steps[:0]}
	if old == nil {
		return
	}
	for _, id := range f.Switches() {
		if !c.nodes[id].alive || c.topo.NodeGUID(id) != f.Node(id).GUID {
			continue
		}
		was, is := old.LFT(id), tables.LFT(id)
		if len(was) == 0 || sameRow(was, is) {
			continue
		}
		for _, b := range route.ChangedBlocks(is, was) {
			r.steps = append(r.steps, rolloutStep{id, int32(b), c.stageOf(f, old, tables, id, int(b))})
		}
	}
	slices.SortStableFunc(r.steps, func(a, b rolloutStep) int { return cmp.Compare(a.stage, b.stage) })
	for _, s := range r.steps {
		c.nodes[s.sw].lft.held.Add(int(s.block))
	}
}

// stageOf returns the stage of a block: the largest number of links to a destination among the entries that change.
// Blocks that repair nothing come lateStage later.
func (c *Core) stageOf(f *topo.Fabric, old, tables *route.Tables, id topo.NodeID, b int) int32 {
	was, is := blockOf(old.LFT(id), b), blockOf(tables.LFT(id), b)
	stage, late := int32(0), int32(lateStage)
	for i, port := range is {
		if i < len(was) && was[i] == port {
			continue
		}
		l := ib.LID(b*lidsPerBlock + i)
		stage = max(stage, int32(tables.Hops(id, tables.Home(l))))
		if late != 0 && (i >= len(was) || broken(f, old, id, l)) {
			late = 0
		}
	}
	return stage + late
}

// broken reports whether tables do not lead from a switch to where a LID was.
func broken(f *topo.Fabric, t *route.Tables, at topo.NodeID, l ib.LID) bool {
	home := t.Home(l)
	for range maxWalk {
		if at == home {
			return false
		}
		row := t.LFT(at)
		if int(l) >= len(row) || f.Node(at).Type != ib.NodeSwitch {
			return true
		}
		out := f.PortOf(at, row[l])
		if out == topo.None || row[l] == ib.NoPort {
			return true
		}
		peer := f.LinkUp(out)
		if peer == topo.None {
			return true
		}
		at = f.Port(peer).Node
	}
	return true
}

// maxWalk bounds a walk along tables: routes are at most as long as packets can
// be sent.
const maxWalk = 64

// rollOn releases the blocks of the next stage when those of the present one are
// written, or will not be.
func (c *Core) rollOn() {
	r := &c.routing.rollout
	for r.open == 0 && r.next < len(r.steps) {
		stage := r.steps[r.next].stage
		for ; r.next < len(r.steps) && r.steps[r.next].stage == stage; r.next++ {
			s := r.steps[r.next]
			l := &c.nodes[s.sw].lft
			if !l.held.Has(int(s.block)) {
				continue
			}
			l.held.Remove(int(s.block))
			if !l.write.Has(int(s.block)) || !c.nodes[s.sw].alive || c.nodes[s.sw].silent {
				continue
			}
			l.rolling.Add(int(s.block))
			r.open++
			c.q.MarkNode(work.LFT, s.sw)
		}
	}
}

// rolledOut records that a block is written, or that no block has to wait for it.
func (c *Core) rolledOut(l *lft, b int) {
	if l.rolling.Has(b) {
		l.rolling.Remove(b)
		c.routing.rollout.open--
		c.rollOn()
	}
}

// dropRollout records that no block has to wait for a switch.
func (c *Core) dropRollout(l *lft) {
	for b := l.rolling.First(); b >= 0; b = l.rolling.First() {
		l.rolling.Remove(b)
		c.routing.rollout.open--
	}
	l.held = nil
	c.rollOn()
}
