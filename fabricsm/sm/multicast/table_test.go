package multicast

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is one switch of 20 ports, which takes two positions of a table.
type fabric struct {
	topo  topo.Builder
	queue work.Queue
	reset bool
}

func (f *fabric) SeatOf(ib.GUID) (Seat, bool)    { return Seat{}, false }
func (f *fabric) SwitchOf(topo.NodeID) Switch    { return Switch{Cap: 64, IsReset: f.reset} }
func (f *fabric) Problem(fault.Key, fault.Event) {}
func (f *fabric) Solved(fault.Key)               {}

func newGroups(reset bool) (*Groups, topo.NodeID) {
	f := &fabric{reset: reset}
	id := f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 20})
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	g := New(f, &f.topo, &f.queue)
	g.widen(ib.MinMulticastLID + 1)
	return g, id
}

func answer(g *Groups, id topo.NodeID, s Step, masks [mad.MLIDsPerBlock]mad.PortMask) (string, bool) {
	r := &work.Request{Ref: work.OnNode(work.MFT, id), Method: s.Method, Mod: s.Mod}
	return g.Answer(id, r, &mad.MulticastForwardingTable{PortMask: masks}, "error")
}

// TestTableIsReadBeforeItIsWritten checks a switch that another manager programmed: both positions of the block are read,
// and what is not wanted is written over.
func TestTableIsReadBeforeItIsWritten(t *testing.T) {
	g, id := newGroups(false)
	var full [mad.MLIDsPerBlock]mad.PortMask
	full[3] = 0xFF
	one, two := g.Next(id, true), g.Next(id, true)
	if one.Method != mad.MethodGet || two.Method != mad.MethodGet || one.Mod == two.Mod || g.Next(id, true).Method != 0 {
		t.Fatalf("first steps %+v, %+v; want to read two blocks", one, two)
	}
	answer(g, id, one, full)
	answer(g, id, two, [mad.MLIDsPerBlock]mad.PortMask{})
	if g.Next(id, false).Method != 0 {
		t.Error("it writes without being allowed to")
	}
	s := g.Next(id, true)
	if s.Method != mad.MethodSet || s.Mod != one.Mod || s.Masks != ([mad.MLIDsPerBlock]mad.PortMask{}) {
		t.Fatalf("then %+v, want the first block to be emptied", s)
	}
	if _, refused := answer(g, id, s, full); refused {
		t.Error("a block that was not kept once counts as refused")
	}
	reason, refused := answer(g, id, g.Next(id, true), full)
	if !refused || reason == "" {
		t.Error("a block that was not kept twice does not count as refused")
	}
	first, rounds := g.Refuse(id, &work.Request{Mod: s.Mod})
	if !first || rounds != 0 || g.Next(id, true).Method != 0 {
		t.Errorf("refused: first %v, round %d", first, rounds)
	}
	if g.Resume(id); g.Next(id, true).Method != mad.MethodSet {
		t.Error("it is not tried again after the pause")
	}
}

// TestEmptyTable checks that nothing is read of a switch that came without configuration, until the audit.
func TestEmptyTable(t *testing.T) {
	g, id := newGroups(true)
	if s := g.Next(id, true); s.Method != 0 {
		t.Fatalf("first step %+v, want none", s)
	}
	g.Audit(id)
	if s := g.Next(id, true); s.Method != mad.MethodGet || !s.Audit {
		t.Errorf("audit: %+v", s)
	}
	g.wantMask(mcast.Change{MLID: ib.MinMulticastLID, Branch: mcast.Branch{Switch: id}})
	if g.RemoveSwitch(id); g.kept(id) != nil {
		t.Error("a switch that went is remembered")
	}
}

// TestUnansweredSet checks that a block is written again whose Set was not answered, although by then what it held before is
// wanted again: the switch may have taken the Set.
func TestUnansweredSet(t *testing.T) {
	g, id := newGroups(true)
	branch := func(ports ...ib.PortNum) {
		ch := mcast.Change{MLID: ib.MinMulticastLID, Branch: mcast.Branch{Switch: id}}
		for _, p := range ports {
			ch.Ports.Add(p)
		}
		g.wantMask(ch)
	}
	branch(3)
	s := g.Next(id, true)
	if s.Method != mad.MethodSet || s.Masks[0] != 1<<3 {
		t.Fatalf("step %+v, want a Set of port 3", s)
	}
	branch()
	g.Lost(id, &work.Request{Ref: work.OnNode(work.MFT, id), Method: s.Method, Mod: s.Mod})
	again := g.Next(id, true)
	if again.Method != mad.MethodSet || again.Mod != s.Mod || again.Masks != ([mad.MLIDsPerBlock]mad.PortMask{}) {
		t.Fatalf("step %+v, want the block to be emptied", again)
	}
	if _, refused := answer(g, id, again, again.Masks); refused || g.Next(id, true).Method != 0 {
		t.Error("a block that was written is not in place")
	}
}

// TestWant checks that SwitchInfo is left alone until the first groups have come.
func TestWant(t *testing.T) {
	g, _ := newGroups(true)
	si := mad.SwitchInfo{MulticastFDBCap: 64}
	if g.Want(&si, true, true); si.MulticastFDBTop != 0 {
		t.Errorf("before: %+v", si)
	}
	g.Set([]ib.LID{ib.MinMulticastLID}, nil)
	if g.Want(&si, true, true); si.MulticastFDBTop != ib.MinMulticastLID+31 || si.DefaultMulticastPrimaryPort != ib.NoPort {
		t.Errorf("after: %+v", si)
	}
	kept := si
	kept.MulticastFDBTop = 0
	if top, ports := AskedBy(&si).Missed(&kept); !top || ports {
		t.Errorf("missed: top %v, ports %v; want the first alone", top, ports)
	}
}
