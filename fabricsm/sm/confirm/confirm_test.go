package confirm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/confirm"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is a host on port 1 of a switch.
type fabric struct {
	topo   topo.Builder
	queue  work.Queue
	id     topo.NodeID
	p0     topo.PortID
	sp, hp topo.PortID
	port   map[topo.PortID]*confirm.Port
	sw     confirm.Switch
	age    time.Duration

	granted, keyless, reading      bool
	verified, later, ports, judged int
}

func newFabric() *fabric {
	f := &fabric{port: make(map[topo.PortID]*confirm.Port), granted: true, age: time.Second}
	f.id = f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 1})
	host := f.topo.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1})
	f.p0, f.sp, f.hp = f.topo.Node(f.id).FirstPort, f.topo.PortOf(f.id, 1), f.topo.PortOf(host, 1)
	f.topo.Connect(f.sp, f.hp)
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	add := func(p topo.PortID, id topo.NodeID, num ib.PortNum, lid ib.LID) {
		pi := &mad.PortInfo{PortState: ib.PortInit, PortPhysicalState: ib.PhysLinkUp}
		f.port[p] = &confirm.Port{Info: pi, Host: new(confirm.Host), Node: id, Num: num, LID: lid, IsRead: true, IsSeen: true}
	}
	add(f.p0, f.id, 0, 2)
	add(f.sp, f.id, 1, 0)
	add(f.hp, host, 1, 3)
	return f
}

func (f *fabric) Port(p topo.PortID) confirm.Port         { return *f.port[p] }
func (f *fabric) Switch(topo.NodeID) *confirm.Switch      { return &f.sw }
func (f *fabric) Age() time.Duration                      { return f.age }
func (f *fabric) IsWriting() bool                         { return !f.reading }
func (f *fabric) Enforces() bool                          { return false }
func (f *fabric) Concerns(topo.PortID) bool               { return f.granted }
func (f *fabric) IsKeySettled(topo.PortID) bool           { return !f.keyless }
func (f *fabric) Verify(topo.PortID)                      { f.verified++ }
func (f *fabric) AskLater(topo.PortID)                    { f.later++ }
func (f *fabric) JudgePort(topo.PortID)                   { f.ports++ }
func (f *fabric) JudgeNode(topo.NodeID)                   { f.judged++ }
func (f *fabric) state(p topo.PortID, state ib.PortState) { f.port[p].Info.PortState = state }

// marked takes all work out of the queue and counts that of a port.
func (f *fabric) marked(x work.Ref) (n int) {
	for {
		got, ok := f.queue.Pop()
		if !ok {
			return n
		}
		f.queue.Unmark(got)
		if got == x {
			n++
		}
	}
}

// TestHostIsAskedAgain checks that a port with a grant becomes Active only after an answer to a probe that was sent while
// the link was armed.
func TestHostIsAskedAgain(t *testing.T) {
	f := newFabric()
	h := confirm.NewHosts(f, &f.topo, &f.queue)
	h.See(f.sp)
	if h.MayActivate(f.sp) || f.verified != 0 {
		t.Errorf("a link in Init: the host was asked %d times, or is let in", f.verified)
	}
	f.state(f.sp, ib.PortArmed)
	h.See(f.sp)
	if h.MayActivate(f.hp) || f.verified != 1 || f.marked(work.OnPort(work.Probe, f.sp)) != 1 || f.later != 0 {
		t.Errorf("an armed link: the host was asked %d times and %d later, or is let in", f.verified, f.later)
	}
	h.Answered(f.sp, f.age-time.Nanosecond)
	if f.ports != 0 || h.IsConfirmed(f.sp) {
		t.Error("an answer to a probe that was sent before the link was armed counts")
	}
	h.Answered(f.sp, f.age)
	if f.ports != 1 || !h.MayActivate(f.sp) || !h.MayActivate(f.hp) {
		t.Error("the host answered, and is not let in")
	}
	f.keyless = true
	if h.MayActivate(f.hp) {
		t.Error("a host that is to get an M_Key is let in without it")
	}
	f.state(f.sp, ib.PortInit)
	h.See(f.sp)
	if h.IsConfirmed(f.sp) {
		t.Error("a link that came back is believed")
	}
}

// TestHostWithoutGrant checks that a host without a grant is let in at once, and asked in the background.
func TestHostWithoutGrant(t *testing.T) {
	f := newFabric()
	f.granted = false
	h := confirm.NewHosts(f, &f.topo, &f.queue)
	h.AskInBackground(f.sp)
	if f.port[f.sp].Host.IsAsked() {
		t.Error("a host behind a link in Init is asked")
	}
	f.state(f.sp, ib.PortArmed)
	h.See(f.sp)
	if f.later != 1 || !h.MayActivate(f.sp) || f.verified != 0 {
		t.Errorf("a host without a grant is asked %d times and %d later, or is not let in", f.verified, f.later)
	}
	h.AskInBackground(f.sp)
	if !f.port[f.sp].Host.IsAsked() || f.marked(work.OnPort(work.Probe, f.sp)) != 1 {
		t.Error("it is not asked in the background")
	}
	h.Answered(f.sp, f.age)
	if f.port[f.sp].Host.IsAsked() || !h.IsConfirmed(f.sp) {
		t.Error("its answer does not count")
	}
}

// TestSwitchWithoutLID checks which work waits for the LID of a switch, and that a Get of it ends the doubt.
func TestSwitchWithoutLID(t *testing.T) {
	f := newFabric()
	s := confirm.NewSwitches(f, &f.topo, &f.queue)
	keys := work.OnPort(work.PKey, f.sp)
	if s.Awaits(keys, f.id) {
		t.Error("work on a switch that is sure waits")
	}
	f.sw.Doubt(false)
	f.sw.NoteSet()
	if !s.Awaits(keys, f.id) || !s.Awaits(work.OnPort(work.Set, f.sp), f.id) || s.Awaits(work.OnPort(work.Set, f.p0), f.id) {
		t.Error("a switch without LID: its LID waits, or the rest does not")
	}
	f.queue.Mark(keys)
	if x, ok := f.queue.Pop(); !ok || x != keys {
		t.Fatalf("the queue gives %v", x)
	}
	s.Hold(keys, f.id)
	if n := f.marked(work.OnPort(work.Set, f.p0)); n != 1 {
		t.Errorf("its LID is to be written %d times", n)
	}
	s.See(f.sp, true)
	if n := f.marked(keys); n != 0 {
		t.Error("the work goes on without the LID")
	}
	f.port[f.p0].Info.LID = 2
	s.See(f.p0, false)
	if n := f.marked(keys); n != 1 {
		t.Errorf("with the LID the work goes on %d times", n)
	}
	s.Ask(f.p0)
	s.Answered(f.p0, 2)
	if !f.sw.IsUnsure() {
		t.Error("a read while all links are in Init proves something")
	}
	f.state(f.sp, ib.PortArmed)
	s.See(f.sp, true)
	if n := f.marked(work.OnPort(work.Info, f.p0)); n != 1 {
		t.Errorf("port 0 is read %d times", n)
	}
	s.Ask(f.p0)
	s.Answered(f.p0, 0)
	if !f.sw.IsUnsure() || f.judged != 0 {
		t.Error("a switch that lost its LID is believed")
	}
	s.Ask(f.p0)
	s.Answered(f.p0, 2)
	if f.sw.IsUnsure() || f.judged != 1 {
		t.Error("a switch that kept its LID is not believed")
	}
}

// TestSwitchLeftByAnother checks that a switch to which nothing was written is believed when a link of it is armed.
func TestSwitchLeftByAnother(t *testing.T) {
	f := newFabric()
	f.reading = true
	s := confirm.NewSwitches(f, &f.topo, &f.queue)
	f.sw.Doubt(false)
	if s.Awaits(work.OnPort(work.PKey, f.sp), f.id) {
		t.Error("work waits for a LID that is not written")
	}
	f.state(f.sp, ib.PortArmed)
	s.See(f.sp, false)
	if !f.sw.IsUnsure() {
		t.Error("the answer to a Set proves something")
	}
	s.See(f.sp, true)
	if f.sw.IsUnsure() {
		t.Error("it is not believed")
	}
}
