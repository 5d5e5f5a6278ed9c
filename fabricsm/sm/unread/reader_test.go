package unread_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/unread"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is a host on port 1 of a switch.
type fabric struct {
	topo    topo.Builder
	queue   work.Queue
	wire    work.Window
	id      topo.NodeID
	sp, hp  topo.PortID
	port    map[topo.PortID]*unread.Port
	must    bool
	pending bool
}

func newFabric() *fabric {
	f := &fabric{port: make(map[topo.PortID]*unread.Port)}
	f.id = f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2})
	host := f.topo.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1})
	f.sp, f.hp = f.topo.PortOf(f.id, 1), f.topo.PortOf(host, 1)
	f.topo.Connect(f.sp, f.hp)
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	for p := range topo.PortID(f.topo.NumPorts()) {
		f.port[p] = &unread.Port{Info: new(mad.PortInfo)}
	}
	*f.port[f.sp] = unread.Port{Info: &mad.PortInfo{PortState: ib.PortInit, MTUCap: ib.MTU2048, LID: 7}, IsRead: true}
	return f
}

func (f *fabric) Port(p topo.PortID) unread.Port { return *f.port[p] }
func (f *fabric) IsAlive(topo.NodeID) bool       { return true }
func (f *fabric) MustRead(topo.PortID) bool      { return f.must }
func (f *fabric) Doubt(p topo.PortID)            { f.port[p].IsAssumed = false }
func (f *fabric) IsPending() bool                { return f.pending }

func (f *fabric) EndLevel() []topo.PortID {
	if !f.pending {
		return nil
	}
	return []topo.PortID{f.sp}
}

func (f *fabric) Assume(p topo.PortID, info mad.PortInfo) {
	*f.port[p] = unread.Port{Info: &info, IsAssumed: true}
}

// marked takes all work out of the queue and returns it.
func (f *fabric) marked() (out []work.Ref) {
	for {
		x, ok := f.queue.Pop()
		if !ok {
			return out
		}
		f.queue.Unmark(x)
		out = append(out, x)
	}
}

// TestLeave checks that the far end of a link in Init is not read, unless its settings depend on that.
func TestLeave(t *testing.T) {
	f := newFabric()
	r := unread.New(f, &f.topo, &f.queue, &f.wire)
	f.queue.MarkPort(work.Info, f.hp)
	r.Leave(f.hp)
	if pt := f.port[f.hp]; !pt.IsAssumed || pt.Info.MTUCap != ib.MTU2048 || pt.Info.LID != 0 {
		t.Errorf("the host's port is taken for %+v, assumed %v", pt.Info, pt.IsAssumed)
	}
	if !r.ReadEnds() || f.port[f.hp].IsAssumed {
		t.Error("the host's port is not read when all are")
	}
	if r.ReadEnds() {
		t.Error("it is read twice")
	}
	f.marked()
	f.must = true
	r.Leave(f.hp)
	if x := f.marked(); f.port[f.hp].IsAssumed || len(x) != 1 || x[0] != work.OnPort(work.Info, f.hp) {
		t.Errorf("a port whose settings depend on its PortInfo: work %v", x)
	}
	f.must = false
	f.port[f.sp].Info.PortState = ib.PortActive
	if r.MayWrite(f.hp) || r.MayWrite(f.sp) {
		t.Error("a port behind an active link is written unread")
	}
}

// TestReadLevel checks that ports of a new switch are read when nothing nearer is left to be found.
func TestReadLevel(t *testing.T) {
	f := newFabric()
	f.pending = true
	r := unread.New(f, &f.topo, &f.queue, &f.wire)
	r.Enter(f.id)
	r.ReadLevel()
	if x := f.marked(); len(x) != 2 || x[0].Class == x[1].Class {
		t.Errorf("work %v: want a probe, and a read of the port that is not known", x)
	}
	if r.IsFinding() {
		t.Error("the level is not at its end")
	}
}
