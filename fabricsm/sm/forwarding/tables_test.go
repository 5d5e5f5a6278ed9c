package forwarding

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// core is a fabric of one switch with two hosts, whose LIDs are 1 to 3.
type core struct {
	topo       topo.Builder
	queue      work.Queue
	wanted     *route.Tables
	top        ib.LID
	paused     bool
	waits      bool
	readsLater bool
}

func (*core) IsWriting() bool             { return true }
func (c *core) Wanted() *route.Tables     { return c.wanted }
func (c *core) IsPaused(work.Ref) bool    { return c.paused }
func (c *core) ReadsLater() bool          { return c.readsLater }
func (c *core) MustWait(topo.NodeID) bool { return c.waits }

func (c *core) SwitchOf(id topo.NodeID) Switch {
	return Switch{Alive: true, Known: c.topo.Node(id).Type == ib.NodeSwitch, Top: c.top}
}

func newTables(t *testing.T) (*core, *Tables, topo.NodeID) {
	t.Helper()
	c := &core{}
	sw := c.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2, LinearFDBCap: 1024})
	p0 := c.topo.Port(c.topo.PortOf(sw, 0))
	p0.GUID, p0.LID = 0x10, 3
	c.topo.SetPort(c.topo.PortOf(sw, 0), p0)
	for i := range 2 {
		h := c.topo.AddNode(topo.Node{GUID: ib.GUID(0x20 + i), Type: ib.NodeCA, NumPorts: 1})
		p, sp := c.topo.PortOf(h, 1), c.topo.PortOf(sw, ib.PortNum(i+1))
		c.topo.Connect(sp, p)
		tp := c.topo.Port(p)
		tp.GUID, tp.LID, tp.State = ib.GUID(0x20+i), ib.LID(i+1), ib.PortActive
		c.topo.SetPort(p, tp)
		tp = c.topo.Port(sp)
		tp.State = ib.PortActive
		c.topo.SetPort(sp, tp)
	}
	c.queue.Extend(c.topo.NumNodes(), c.topo.NumPorts())
	wanted, err := route.Found(c.topo.Freeze(), func(topo.NodeID) []ib.PortNum { return []ib.PortNum{ib.NoPort, 1, 2, 0} })
	if err != nil {
		t.Fatal(err)
	}
	c.wanted = wanted
	x := New(c, &c.topo, &c.queue)
	x.Extend(c.topo.NumNodes())
	return c, x, sw
}

func request(id topo.NodeID, s Step) *work.Request {
	return &work.Request{Ref: work.OnNode(work.LFT, id), Method: s.Method, Mod: uint32(s.Block)}
}

// TestWrite checks that a block that differs is written once, and that the switch counts until its table is in place.
func TestWrite(t *testing.T) {
	c, x, sw := newTables(t)
	c.top = c.wanted.MaxLID
	x.Compare(sw)
	if x.Pending() != 1 || x.BlocksLeft() != 1 {
		t.Errorf("%d pending, %d blocks left; want one each", x.Pending(), x.BlocksLeft())
	}
	if c.waits = true; x.Next(sw).Method != 0 {
		t.Error("a block is written although it must wait")
	}
	c.waits = false
	s := x.Next(sw)
	if s.Method != mad.MethodSet || s.Want[1] != 1 || s.Want[2] != 2 || x.Next(sw).Method != 0 {
		t.Fatalf("step %+v, want a Set, once", s)
	}
	if !x.Take(sw, request(sw, s), s.Want) || x.Pending() != 0 || x.Next(sw).Method != 0 {
		t.Error("a block that was written is not in place")
	}
	if !x.Forwards(sw, 2, 2) || x.Forwards(sw, 2, 1) {
		t.Error("what the switch forwards is not known")
	}
	x.Forget(sw)
	if x.Compare(sw); x.Pending() != 1 || x.All(sw) != nil {
		t.Error("a table that is lost is in place")
	}
	if x.Remove(sw); x.Pending() != 0 {
		t.Error("a switch that is gone counts")
	}
}

// TestUnansweredSet checks that a block is written again whose Set was not answered, although by then what it held before is
// wanted again: the switch may have taken the Set.
func TestUnansweredSet(t *testing.T) {
	c, x, sw := newTables(t)
	c.top = c.wanted.MaxLID
	first := c.wanted
	want := func(tables *route.Tables) {
		c.wanted = tables
		x.CompareAll(c.topo.Freeze(), true)
	}
	want(first)
	s := x.Next(sw)
	x.Take(sw, request(sw, s), s.Want)
	second, err := route.Found(c.topo.Freeze(), func(topo.NodeID) []ib.PortNum { return []ib.PortNum{ib.NoPort, ib.NoPort, 2, 0} })
	if err != nil {
		t.Fatal(err)
	}
	want(second)
	s = x.Next(sw)
	if s.Method != mad.MethodSet || s.Want[1] != ib.NoPort {
		t.Fatalf("step %+v, want a Set of the second table", s)
	}
	want(first)
	if x.Lost(sw, request(sw, s)); x.Pending() != 1 || x.Forwards(sw, 1, 1) {
		t.Errorf("%d pending, and LID 1 counts as forwarded: %v; what the switch holds is not known", x.Pending(), x.Forwards(sw, 1, 1))
	}
	if s = x.Next(sw); s.Method != mad.MethodSet || s.Want[1] != 1 {
		t.Fatalf("step %+v, want a Set of the first table", s)
	}
	if x.Take(sw, request(sw, s), s.Want); x.Pending() != 0 || x.Next(sw).Method != 0 {
		t.Error("a table that was written is not in place")
	}
}

// TestRead checks that the table of a switch that another manager programmed is read, and only written where it differs.
func TestRead(t *testing.T) {
	c, x, sw := newTables(t)
	c.top = 3
	x.Read(sw)
	if !x.WillRead(sw, 2) || x.WillRead(sw, 200) {
		t.Error("the wrong blocks are to be read")
	}
	s := x.Next(sw)
	if s.Method != mad.MethodGet {
		t.Fatalf("step %+v, want a Get", s)
	}
	if !x.Take(sw, request(sw, s), c.wanted.LFT(sw)[:perBlock]) || x.Next(sw).Method != 0 {
		t.Error("a block that is right is written")
	}
}

// TestRefuse checks that a block that a switch does not keep is left alone until the pause is over.
func TestRefuse(t *testing.T) {
	_, x, sw := newTables(t)
	x.Compare(sw)
	other := make([]ib.PortNum, perBlock)
	kept := true
	var s Step
	for range 4 {
		if s = x.Next(sw); s.Method == 0 {
			t.Fatal("nothing is written")
		}
		if kept = x.Take(sw, request(sw, s), other); !kept {
			break
		}
	}
	if kept {
		t.Fatal("a switch may change nothing for ever")
	}
	if !x.Refuse(sw, request(sw, s)) || x.Refuse(sw, request(sw, s)) {
		t.Error("the first refusal is not told from the others")
	}
	if x.Next(sw).Method != 0 {
		t.Error("a refused block is written again at once")
	}
	if x.Resume(sw); x.Next(sw).Method == 0 {
		t.Error("a refused block is not written after the pause")
	}
}
