package pkeys

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

const tenant ib.PKey = 0x8001

// core is a fabric of one switch and one host, and notes what is reported.
type core struct {
	topo   topo.Builder
	queue  work.Queue
	events []string
	keeper *Keeper
	unsure bool
	later  bool // blocks are read when ReadNow is called

	host, leaf topo.PortID
}

func (*core) IsWriting() bool                          { return true }
func (c *core) PortByGUID(ib.GUID) (topo.PortID, bool) { return c.host, true }
func (*core) Expel(ib.Place)                           {}
func (*core) IsManager(topo.PortID) bool               { return false }
func (*core) MayBelong(topo.PortID) bool               { return true }
func (*core) IsRetired(ib.GUID) bool                   { return false }
func (*core) IsPaused(topo.PortID) bool                { return false }
func (*core) IsConfirmed(topo.PortID) bool             { return true }
func (*core) ReadFirst(topo.PortID) bool               { return false }
func (c *core) ReadsLater() bool                       { return c.later }
func (*core) PutOff(work.Ref)                          {}
func (*core) Solved(fault.Key)                         {}

func (c *core) PortOf(p topo.PortID) Port {
	tp := c.topo.Port(p)
	return Port{Node: tp.Node, Num: tp.Num, State: ib.PortActive, Known: true, Seen: true, Placed: true}
}

func (c *core) NodeOf(topo.NodeID) Node { return Node{Known: true, Cap: perBlock, Unsure: c.unsure} }

func (*core) EnforcementOf(topo.PortID) Enforcement { return Enforcement{Possible: true, Proven: true} }

func (c *core) Applied(ms *members.Membership) {
	c.events = append(c.events, fmt.Sprintf("applied %v", ms.PKey))
}

func (c *core) Removed(ms *members.Membership, hca bool) {
	c.events = append(c.events, fmt.Sprintf("removed %v, HCA %v", ms.PKey, hca))
}

func (c *core) Refused(ms *members.Membership, why string) {
	c.events = append(c.events, fmt.Sprintf("refused %v: %s", ms.PKey, why))
}

// newCore returns a fabric, and what intents say of it.
func newCore() (*core, *members.Register) { return newCoreWith(1) }

// newCoreWith returns one whose adapter has a P_Key table of so many blocks.
func newCoreWith(blocks int) (*core, *members.Register) {
	c := &core{}
	sw := c.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2})
	h := c.topo.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1, PartitionCap: uint16(blocks * perBlock)})
	c.leaf, c.host = c.topo.PortOf(sw, 1), c.topo.PortOf(h, 1)
	c.topo.SetPort(c.host, topo.Port{Node: h, Num: 1, GUID: 0x21, LID: 7, State: ib.PortActive, Peer: topo.None})
	tn := c.topo.Node(sw)
	tn.PartitionEnforcementCap, tn.InboundEnforcementCap, tn.OutboundEnforcementCap = perBlock, true, true
	c.topo.SetNode(sw, tn)
	c.topo.Connect(c.leaf, c.host)
	c.queue.Extend(c.topo.NumNodes(), c.topo.NumPorts())
	m := members.New()
	m.StopWaiting()
	c.keeper = New(c, c, &c.topo, &c.queue, m, Options{Controls: controls.Strict{}})
	c.keeper.Extend(c.topo.NumPorts())
	return c, m
}

// run takes steps of the switch port and of the adapter in turn, until none has any, and returns the Sets, in order.
// Devices keep all that is written to them.
func (c *core) run() (sets []string) {
	held := map[topo.PortID]mad.PKeyTable{}
	for _, p := range []topo.PortID{c.leaf, c.host} {
		var t mad.PKeyTable
		copy(t.PKey[:], c.keeper.Table(p).Keys())
		held[p] = t
	}
	for idle := 0; idle < 2; {
		for name, p := range map[string]topo.PortID{"switch": c.leaf, "host": c.host} {
			s := c.keeper.Next(p)
			if s.Method == 0 {
				idle++
				continue
			}
			idle = 0
			if s.Method == mad.MethodSet {
				held[p] = *s.Want
				sets = append(sets, fmt.Sprintf("%s %v", name, s.Want.PKey[:2]))
			}
			got := held[p]
			c.keeper.Take(p, requestFor(p, s), &got)
		}
	}
	return sets
}

// TestOrder checks that a switch port comes before the adapter behind it, when a key is added and when it is removed, and
// that both are read back before it is reported.
func TestOrder(t *testing.T) {
	c, m := newCore()
	grant := partition.Member{GUID: 0x21, PKey: tenant, Place: ib.Place{Switch: 0x10, Port: 1}}
	c.run()
	for _, tt := range []struct {
		name         string
		change       func(partition.Member)
		sets, events []string
	}{
		{"granted", func(g partition.Member) { m.Grant(g) }, []string{"switch [0x7fff 0x8001]", "host [0x7fff 0x8001]"}, []string{"applied 0x8001"}},
		{"withdrawn", m.Withdraw, []string{"switch [0x7fff 0x0000]", "host [0x7fff 0x0000]"}, []string{"removed 0x8001, HCA true"}},
	} {
		c.events = nil
		tt.change(grant)
		if d := cmp.Diff(tt.sets, c.run()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if d := cmp.Diff(tt.events, c.events); d != "" {
			t.Errorf("%s: events (-want +got):\n%s", tt.name, d)
		}
	}
}

// TestUnsure checks that a membership is not reported as long as the switch may have lost what was written to it.
func TestUnsure(t *testing.T) {
	c, m := newCore()
	c.unsure = true
	m.Grant(partition.Member{GUID: 0x21, PKey: tenant, Place: ib.Place{Switch: 0x10, Port: 1}})
	c.run()
	if len(c.events) != 0 {
		t.Errorf("reported %v", c.events)
	}
	c.unsure = false
	c.keeper.Judge.Node(c.topo.NodeByGUID(0x20))
	if d := cmp.Diff([]string{"applied 0x8001"}, c.events); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestDoubt checks that a table in doubt proves nothing, and that ports share tables that are the same.
func TestDoubt(t *testing.T) {
	c, _ := newCore()
	c.run()
	if c.keeper.Table(c.leaf) != c.keeper.Table(c.host) {
		t.Error("the same table is kept twice")
	}
	if c.keeper.Doubt(c.leaf); c.keeper.Table(c.leaf).IsProven() || !c.keeper.Table(c.leaf).IsKnown() {
		t.Error("a table in doubt is proven, or not known")
	}
}

// TestKeysDropped checks that no removal is reported before devices have dropped the keys of the instance before, and then
// of tables that were read after that.
func TestKeysDropped(t *testing.T) {
	c, m := newCore()
	grant := partition.Member{GUID: 0x21, PKey: tenant, Place: ib.Place{Switch: 0x10, Port: 1}}
	c.run()
	m.Grant(grant)
	c.run()
	c.events = nil
	c.keeper.Judge.AwaitKeys()
	m.Withdraw(grant)
	if d := cmp.Diff([]string{"switch [0x7fff 0x0000]", "host [0x7fff 0x0000]"}, c.run()); d != "" {
		t.Errorf("the P_Key is not removed at once (-want +got):\n%s", d)
	}
	if c.keeper.Judge.Retired(); len(c.events) != 0 {
		t.Errorf("reported %v while devices obey the instance before", c.events)
	}
	if c.keeper.Judge.KeysDropped(); len(c.events) != 0 {
		t.Errorf("reported %v of tables that were read before", c.events)
	}
	c.run()
	if d := cmp.Diff([]string{"removed 0x8001, HCA true"}, c.events); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if c.keeper.Judge.KeysDropped(); !c.keeper.Table(c.leaf).IsProven() {
		t.Error("a second call has tables read again")
	}
}

// TestReadsLater checks which blocks of an adapter are left for ReadNow: those after all that is wanted was found. What they
// hold is repaired then, as it is at once without.
func TestReadsLater(t *testing.T) {
	const other ib.PKey = 0x8002
	for _, tt := range []struct {
		name      string
		at        map[int]ib.PKey // the table that is found, besides the default partition in its first place
		withdrawn bool
		now, then []string // steps before and after ReadNow
	}{
		{"found in the first block", map[int]ib.PKey{1: tenant}, false, []string{"get 0"}, []string{"get 1", "get 2"}},
		{"found in the second", map[int]ib.PKey{perBlock: tenant}, false, []string{"get 0", "get 1"}, []string{"get 2"}},
		{"too much in the last", map[int]ib.PKey{1: tenant, 2 * perBlock: other}, false, []string{"get 0"}, []string{"get 1", "get 2", "set 2", "get 2"}},
		{"too much in the first", map[int]ib.PKey{1: tenant, 2: other}, false, []string{"get 0", "set 0", "get 1", "get 2", "get 0"}, nil},
		{"not found", nil, false, []string{"get 0", "get 1", "get 2", "set 0", "get 0"}, nil},
		{"withdrawn", map[int]ib.PKey{1: tenant}, true, []string{"get 0", "get 1", "get 2", "set 0", "get 0"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, m := newCoreWith(3)
			grant := partition.Member{GUID: 0x21, PKey: tenant, Place: ib.Place{Switch: 0x10, Port: 1}}
			m.Grant(grant)
			if tt.withdrawn {
				m.Withdraw(grant)
			}
			held := map[topo.PortID][]ib.PKey{c.leaf: make([]ib.PKey, perBlock), c.host: make([]ib.PKey, 3*perBlock)}
			for _, keys := range held {
				keys[0] = ib.DefaultPKeyLimited
			}
			for i, k := range tt.at {
				held[c.host][i] = k
			}
			if !tt.withdrawn {
				held[c.leaf][1] = tenant
			}
			run := func(p topo.PortID) (steps []string) {
				for {
					s := c.keeper.Next(p)
					block := held[p][s.Block*perBlock:][:perBlock]
					switch s.Method {
					case mad.MethodGet:
						steps = append(steps, fmt.Sprint("get ", s.Block))
					case mad.MethodSet:
						steps = append(steps, fmt.Sprint("set ", s.Block))
						copy(block, s.Want.PKey[:])
					default:
						return steps
					}
					var got mad.PKeyTable
					copy(got.PKey[:], block)
					c.keeper.Take(p, requestFor(p, s), &got)
				}
			}
			c.later = true
			run(c.leaf)
			if d := cmp.Diff(tt.now, run(c.host)); d != "" {
				t.Errorf("before (-want +got):\n%s", d)
			}
			if tt.then != nil && !c.keeper.HasLater() {
				t.Error("nothing is left for later")
			}
			if applied := slices.Contains(c.events, "applied 0x8001"); applied == tt.withdrawn {
				t.Errorf("events are %q", c.events)
			}
			c.later = false
			c.keeper.ReadNow()
			if d := cmp.Diff(tt.then, run(c.host)); d != "" {
				t.Errorf("after (-want +got):\n%s", d)
			}
			if c.keeper.HasLater() || !c.keeper.Table(c.host).IsProven() || slices.Contains(held[c.host], other) {
				t.Errorf("has later %t, the table is %v", c.keeper.HasLater(), held[c.host])
			}
		})
	}
}

func requestFor(p topo.PortID, s Step) *work.Request {
	return &work.Request{Ref: work.OnPort(work.PKey, p), Method: s.Method, Mod: uint32(s.Block)}
}
