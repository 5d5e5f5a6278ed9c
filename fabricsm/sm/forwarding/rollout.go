package forwarding

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// lateStage is added to the stage of blocks that repair no path.
const lateStage = 1 << 16

// Plan orders the blocks in which the tables that are to be wanted differ from the ones before, nil if there were none.
func (t *Tables) Plan(f *topo.Fabric, old, tables *route.Tables) {
	r := &t.rollout
	for _, s := range r.steps { // planned for tables that are not wanted any more
		t.nodes[s.sw].held.Remove(int(s.block))
		t.nodes[s.sw].rolling.Remove(int(s.block))
	}
	*r = rollout{steps: r.steps[:0]}
	if old == nil {
		return
	}
	for _, id := range f.Switches() {
		if !t.isSame(f, id) {
			continue
		}
		was, is := old.LFT(id), tables.LFT(id)
		if len(was) == 0 || sameRow(was, is) {
			continue
		}
		for _, b := range route.ChangedBlocks(is, was) {
			r.steps = append(r.steps, rolloutStep{id, int32(b), stageOf(f, old, tables, id, int(b))})
		}
	}
	slices.SortStableFunc(r.steps, func(a, b rolloutStep) int { return cmp.Compare(a.stage, b.stage) })
	for _, s := range r.steps {
		t.nodes[s.sw].held.Add(int(s.block))
	}
}

// stageOf returns the stage of a block: the largest number of links to a destination among the entries that change.
// Blocks that repair nothing come lateStage later.
func stageOf(f *topo.Fabric, old, tables *route.Tables, id topo.NodeID, b int) int32 {
	was, is := blockOf(old.LFT(id), b), blockOf(tables.LFT(id), b)
	stage, late := int32(0), int32(lateStage)
	for i, port := range is {
		if i < len(was) && was[i] == port {
			continue
		}
		l := ib.LID(b*perBlock + i)
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
func (t *Tables) rollOn() {
	r := &t.rollout
	for r.open == 0 && r.next < len(r.steps) {
		stage := r.steps[r.next].stage
		for ; r.next < len(r.steps) && r.steps[r.next].stage == stage; r.next++ {
			s := r.steps[r.next]
			l := &t.nodes[s.sw]
			if !l.held.Has(int(s.block)) {
				continue
			}
			l.held.Remove(int(s.block))
			if at := t.fabric.SwitchOf(s.sw); !l.write.Has(int(s.block)) || !at.Alive || at.Silent {
				continue
			}
			l.rolling.Add(int(s.block))
			r.open++
			t.queue.MarkNode(work.LFT, s.sw)
		}
	}
}

// rolledOut records that a block is written, or that no block has to wait for it.
func (t *Tables) rolledOut(l *table, b int) {
	if l.rolling.Has(b) {
		l.rolling.Remove(b)
		t.rollout.open--
		t.rollOn()
	}
}

// dropRollout records that no block has to wait for a switch.
func (t *Tables) dropRollout(l *table) {
	for b := l.rolling.First(); b >= 0; b = l.rolling.First() {
		l.rolling.Remove(b)
		t.rollout.open--
	}
	l.held = nil
	t.rollOn()
}
