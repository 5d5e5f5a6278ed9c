package attributes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/forwarding"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/switchinfo"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// core is a switch with two hosts, whose LIDs are 1 to 3. It records what handlers ask for.
type core struct {
	topo   topo.Builder
	queue  work.Queue
	wanted *route.Tables
	parts  Parts
	asked  []asked
	mad    mad.MAD
	reason string // of the last refusal
	names  map[topo.NodeID]string
}

type asked struct {
	Method mad.Method
	Attr   mad.AttrID
	Mod    uint32
	Aside  bool
}

func (*core) IsWriting() bool           { return true }
func (c *core) Wanted() *route.Tables   { return c.wanted }
func (*core) ReadsLater() bool          { return false }
func (*core) IsPaused(work.Ref) bool    { return false }
func (*core) MustWait(topo.NodeID) bool { return false }
func (*core) Disturb()                  {}
func (*core) ShowSoon()                 {}

func (c *core) SwitchOf(topo.NodeID) forwarding.Switch {
	return forwarding.Switch{Alive: true, Known: true}
}

func (c *core) Ask(x work.Ref, _ topo.NodeID, method mad.Method, attr mad.AttrID, mod uint32) *mad.MAD {
	return c.ask(asked{Method: method, Attr: attr, Mod: mod})
}

func (c *core) AskAside(x work.Ref, _ topo.NodeID, method mad.Method, attr mad.AttrID, mod uint32) *mad.MAD {
	return c.ask(asked{method, attr, mod, true})
}

func (c *core) ask(a asked) *mad.MAD {
	c.asked = append(c.asked, a)
	c.mad = mad.MAD{}
	mad.NewSMP(&c.mad, mad.Header{Method: a.Method, Attr: a.Attr, Mod: a.Mod}, &mad.Route{}, ib.MKey{})
	return &c.mad
}

func (c *core) Refused(_ *work.Request, reason string)             { c.reason = reason }
func (c *core) RefusedAfter(_ *work.Request, _ int, reason string) { c.reason = reason }

func (c *core) IsDescribed(id topo.NodeID) bool { _, ok := c.names[id]; return ok }

func (c *core) Described(id topo.NodeID, text []byte) { c.names[id] = string(text) }

// nodes adds what these tests need none of.
type nodes struct{ *core }

func (nodes) Switch(topo.NodeID) *switchinfo.State              { return nil }
func (nodes) Tables(topo.NodeID) switchinfo.Tables              { return switchinfo.Tables{} }
func (nodes) IsUnsure(topo.NodeID) bool                         { return false }
func (nodes) IsRerouting() bool                                 { return false }
func (nodes) KeepsMulticast(topo.NodeID) (top, ports bool)      { return false, false }
func (nodes) Rebooted(topo.NodeID) bool                         { return true }
func (nodes) Filled(topo.NodeID)                                {}
func (nodes) Touch(topo.NodeID)                                 {}
func (nodes) NotKept(topo.NodeID) portset.Fields                { return 0 }
func (nodes) Learn(topo.NodeID, portset.Fields, portset.Fields) {}

func newCore(t *testing.T) (*core, topo.NodeID) {
	t.Helper()
	c := &core{names: make(map[topo.NodeID]string)}
	sw := c.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2, LinearFDBCap: 1024})
	c.set(c.topo.PortOf(sw, 0), 0x10, 3)
	for i := range 2 {
		h := c.topo.AddNode(topo.Node{GUID: ib.GUID(0x20 + i), Type: ib.NodeCA, NumPorts: 1})
		p, sp := c.topo.PortOf(h, 1), c.topo.PortOf(sw, ib.PortNum(i+1))
		c.topo.Connect(sp, p)
		c.set(p, ib.GUID(0x20+i), ib.LID(i+1))
		c.set(sp, 0, 0)
	}
	c.queue.Extend(c.topo.NumNodes(), c.topo.NumPorts())
	wanted, err := route.Found(c.topo.Freeze(), func(topo.NodeID) []ib.PortNum { return []ib.PortNum{ib.NoPort, 1, 2, 0} })
	if err != nil {
		t.Fatal(err)
	}
	c.wanted = wanted
	c.parts = Parts{Requests: c, Nodes: nodes{c}, Topo: &c.topo, Queue: &c.queue, Tables: forwarding.New(c, &c.topo, &c.queue)}
	c.parts.Tables.Extend(c.topo.NumNodes())
	return c, sw
}

func (c *core) set(p topo.PortID, g ib.GUID, l ib.LID) {
	tp := c.topo.Port(p)
	tp.GUID, tp.LID, tp.State = g, l, ib.PortActive
	c.topo.SetPort(p, tp)
}

func TestLinearForwardingTable(t *testing.T) {
	c, sw := newCore(t)
	h := c.parts.Handlers()[work.LFT]
	x := work.OnNode(work.LFT, sw)
	c.parts.Tables.Compare(sw)
	r := &work.Request{Ref: x, Node: sw, Method: mad.MethodSet, Attr: mad.AttrLinearForwardingTable}
	for range 2 { // the first time may be a loss on the way
		h.Work(x)
		var other mad.MAD
		h.Got(r, &other, mad.StatusOK)
	}
	set := asked{Method: mad.MethodSet, Attr: mad.AttrLinearForwardingTable}
	if d := cmp.Diff([]asked{set, set}, c.asked); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]byte{255, 1, 2, 0}, c.mad.Data()[:4]); d != "" {
		t.Errorf("the block that is set (-want +got):\n%s", d)
	}
	if want := "the block answered is not the one that was set"; c.reason != want {
		t.Errorf("refused for %q, want %q", c.reason, want)
	}
	h.Got(r, &c.mad, mad.StatusOK)
	if c.queue.IsEmpty() {
		t.Error("the switch is not looked at again after a block was taken")
	}
}

func TestDescription(t *testing.T) {
	for _, tt := range []struct {
		status mad.Status
		want   byte
	}{{mad.StatusOK, 's'}, {mad.StatusUnsupportedMethodAttr, 0}} {
		c, sw := newCore(t)
		h := c.parts.Handlers()[work.Desc]
		x := work.OnNode(work.Desc, sw)
		h.Work(x)
		c.mad.Data()[0] = 's'
		h.Got(&work.Request{Ref: x, Node: sw}, &c.mad, tt.status)
		h.Work(x)
		if d := cmp.Diff([]asked{{Method: mad.MethodGet, Attr: mad.AttrNodeDescription, Aside: true}}, c.asked); d != "" {
			t.Errorf("status %v: requests (-want +got):\n%s", tt.status, d)
		}
		if name := c.names[sw]; tt.want == 0 && name != "" || tt.want != 0 && (name == "" || name[0] != tt.want) {
			t.Errorf("status %v: the node is described as %q", tt.status, name)
		}
	}
}

// TestEveryClassHasAHandler: all but SMInfo and Notice, which the core handles.
func TestEveryClassHasAHandler(t *testing.T) {
	var p Parts
	for cl, h := range p.Handlers() {
		if c := work.Class(cl); (h == nil) != (c == work.SMInfo || c == work.Notice) {
			t.Errorf("class %d: handler %T", cl, h)
		}
	}
}
