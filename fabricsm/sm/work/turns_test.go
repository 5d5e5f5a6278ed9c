package work

import (
	"testing"

	"portcullis/fabricsm/topo"
)

func TestTurns(t *testing.T) {
	var q Queue
	q.Extend(3, 0)
	var turns Turns
	turns.Begin()
	turns.Begin()
	var parked []Ref
	for id := range topo.NodeID(3) {
		x := OnNode(Desc, id)
		q.Mark(x)
		parked = append(parked, x)
	}
	for range parked {
		x, _ := q.Pop()
		turns.Park(x)
	}
	q.Unmark(parked[0]) // it is void: the next one goes
	if turns.PassOn(&q, 2); !q.IsEmpty() {
		t.Error("work goes on though two requests are out")
	}
	turns.End()
	turns.PassOn(&q, 2)
	if x, ok := q.Pop(); !ok || x != parked[1] || turns.Out() != 1 {
		t.Errorf("after an answer %v, %v goes on and %d are out; want %v and 1", x, ok, turns.Out(), parked[1])
	}
	turns.Drop(&q)
	turns.PassOn(&q, 2)
	if !q.IsEmpty() || !q.IsVoid(parked[2]) {
		t.Error("work is kept of a node that is silent")
	}
}

// nodes are two nodes with a port each.
type nodes [2]Life

func (n *nodes) Life(id topo.NodeID) Life         { return n[id] }
func (n *nodes) NodeOf(p topo.PortID) topo.NodeID { return topo.NodeID(p) }

func TestLives(t *testing.T) {
	n := &nodes{{Epoch: 3, IsAlive: true}, {Epoch: 4, IsAlive: true, IsSilent: true}}
	for _, tt := range []struct {
		x      Ref
		epoch  uint32
		target topo.NodeID
		ok     bool
	}{
		{OnNode(Root, 0), 0, topo.None, true},
		{OnPort(Probe, 1), 4, topo.None, true},
		{OnNode(LFT, 0), 3, 0, true},
		{OnPort(Set, 0), 3, 0, true},
		{OnPort(Set, 1), 4, 1, false},
	} {
		target, ok := TargetOf(n, tt.x)
		if epoch := EpochOf(n, tt.x); epoch != tt.epoch || ok != tt.ok || target != tt.target {
			t.Errorf("%v: epoch %d, target %d, %v; want %d, %d, %v", tt.x, epoch, target, ok, tt.epoch, tt.target, tt.ok)
		}
		old := Request{Ref: tt.x, Epoch: tt.epoch + 1}
		if is := IsCurrent(n, &old); is != (tt.x.Class == Root) {
			t.Errorf("%v: a request to another life is current: %v", tt.x, is)
		}
	}
}
