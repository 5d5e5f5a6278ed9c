package lids

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/topo"
)

// core is a fabric of one switch with hosts, and notes what an assigner has it do.
type core struct {
	topo   topo.Builder
	ports  map[topo.PortID]Port
	byGUID map[ib.GUID]topo.PortID
	awaits bool            // the switch has not said what it forwards
	known  map[ib.LID]bool // that the switch forwards, wherever that is
	now    time.Time
	notes  []string
}

func (c *core) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

func (c *core) Now() time.Time                         { return c.now }
func (*core) IsWriting() bool                          { return true }
func (c *core) PortOf(p topo.PortID) Port              { return c.ports[p] }
func (c *core) Forwards(_ topo.PortID, l ib.LID) bool  { return c.known[l] }
func (c *core) MayYetForward(topo.PortID, ib.LID) bool { return c.awaits }
func (*core) Place(topo.PortID, ib.GUID)               {}
func (c *core) Save(g ib.GUID, l ib.LID, lmc ib.LMC)   { c.note("save %x %d/%d", uint64(g), l, lmc) }

func (c *core) Refuse(g ib.GUID, l ib.LID, owner ib.GUID) {
	c.note("refuse %x %d, of %x", uint64(g), l, uint64(owner))
}
func (c *core) PortByGUID(g ib.GUID) (topo.PortID, bool) { p, ok := c.byGUID[g]; return p, ok }

func (c *core) Assigned(p topo.PortID, l ib.LID) {
	pt := c.ports[p]
	pt.LID = l
	c.ports[p] = pt
}

// newCore returns a fabric, and the end ports of its hosts, which have the GUIDs 0x101, 0x102 and so on.
func newCore(hosts int, o Options) (*core, *Assigner, []topo.PortID) {
	c := &core{ports: map[topo.PortID]Port{}, byGUID: map[ib.GUID]topo.PortID{}, known: map[ib.LID]bool{}, now: time.Unix(0, 0)}
	sw := c.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: uint8(hosts)})
	var list []topo.PortID
	for i := range hosts {
		g := ib.GUID(0x101 + i)
		id := c.topo.AddNode(topo.Node{GUID: g, Type: ib.NodeCA, NumPorts: 1})
		p := c.topo.PortOf(id, 1)
		c.topo.SetPort(p, topo.Port{Node: id, Num: 1, GUID: g, Peer: topo.None})
		c.topo.Connect(c.topo.PortOf(sw, ib.PortNum(i+1)), p)
		c.ports[p], c.byGUID[g] = Port{Num: 1, Known: true, Seen: true}, p
		list = append(list, p)
	}
	m := members.New()
	m.StopWaiting()
	return c, New(c, &c.topo, m, o), list
}

func (c *core) show(p topo.PortID, l ib.LID) {
	pt := c.ports[p]
	pt.Shown = l
	c.ports[p] = pt
}

// TestOwnedThenFoundThenNew checks the order in which LIDs are assigned.
func TestOwnedThenFoundThenNew(t *testing.T) {
	c, a, ps := newCore(4, Options{})
	a.Load(0x104, 1, 0)
	c.known[7], c.known[1] = true, true
	c.show(ps[1], 7) // its own, by the switch
	c.show(ps[2], 9) // the switch does not know of that
	c.show(ps[0], 1) // of another port
	a.SettleAll(ps)
	got := make([]ib.LID, len(ps))
	for i, p := range ps {
		got[i] = c.ports[p].LID
	}
	if d := cmp.Diff([]ib.LID{2, 7, 3, 1}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	want := []string{"save 102 7/0", "save 101 2/0", "refuse 101 1, of 104", "save 103 3/0"}
	if d := cmp.Diff(want, c.notes); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if a.IsNew(1) || !a.IsNew(7) || a.Owners() != 4 {
		t.Error("the LID of a fact counts as new, or one that was assigned does not")
	}
}

// TestUndecided checks that a port waits as long as its switch may say that the LID it shows is its own.
func TestUndecided(t *testing.T) {
	c, a, ps := newCore(1, Options{LMC: 1})
	c.awaits = true
	c.show(ps[0], 6)
	a.Settle(ps[0])
	a.SettleOpen()
	if c.ports[ps[0]].LID != 0 {
		t.Fatal("a LID was assigned too early")
	}
	c.awaits, c.known[6] = false, true
	a.Spoke()
	a.SettleOpen()
	if l := c.ports[ps[0]].LID; l != 6 || a.At(7) != 0x101 {
		t.Errorf("LID %d", l)
	}
}

// TestPrefer checks which LIDs may be preferred.
func TestPrefer(t *testing.T) {
	c, a, _ := newCore(0, Options{})
	a.Prefer(0x101, 8, 1)
	a.Prefer(0x101, 12, 0) // it has others
	a.Prefer(0x102, 9, 0)
	a.Prefer(0x103, 11, 1)
	want := []string{"save 101 8/1", "refuse 102 9, of 101", "refuse 103 11, of 0"}
	if d := cmp.Diff(want, c.notes); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestLastLIDs checks that a port gets the LID of one that is away when no other is left, and only after a rest.
func TestLastLIDs(t *testing.T) {
	c, a, ps := newCore(1, Options{})
	for l := ib.MinUnicastLID; l <= ib.MaxUnicastLID; l++ {
		a.Load(ib.GUID(0x10000)+ib.GUID(l), l, 0)
		a.Gone(ib.GUID(0x10000) + ib.GUID(l))
	}
	a.Settle(ps[0])
	if c.ports[ps[0]].LID != 0 || !a.TakeShort() || a.TakeShort() {
		t.Fatal("a LID was assigned, or the lack of one is not known")
	}
	c.now = c.now.Add(lidRest)
	a.Settle(ps[0])
	if l := c.ports[ps[0]].LID; l == 0 || a.Owners() != int(ib.MaxUnicastLID) {
		t.Errorf("LID %d, %d owners", l, a.Owners())
	}
}
