package declared

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// core is a fabric of one switch, and notes what a law has it do.
type core struct {
	topo   topo.Builder
	queue  work.Queue
	faults fault.List
	events []string
	saved  []Saved
}

func (*core) Now() time.Time                                 { return time.Unix(0, 0) }
func (*core) Own() topo.PortID                               { return topo.None }
func (*core) Root() (topo.NodeID, topo.PortID)               { return topo.None, topo.None }
func (*core) IsAlive(topo.NodeID) bool                       { return true }
func (*core) Up(topo.NodeID) topo.PortID                     { return topo.None }
func (*core) IsProtected(topo.PortID) bool                   { return false }
func (*core) IsDark(topo.PortID) bool                        { return false }
func (*core) Impose(topo.PortID)                             {}
func (*core) ImposeEverywhere()                              {}
func (*core) Trusted(topo.NodeID, bool)                      {}
func (*core) Changed(topo.PortID)                            {}
func (*core) Disturb()                                       {}
func (*core) Doubt(topo.PortID, int)                         {}
func (*core) Pause(topo.PortID)                              {}
func (*core) Activated(_, _ *topospec.Spec, _ topospec.Mode) {}
func (*core) Retired()                                       {}
func (c *core) Report(e fault.Event)                         { c.events = append(c.events, e.String()) }
func (c *core) Save(s Saved)                                 { c.saved = append(c.saved, s) }

func newLaw() (*core, *Law, topo.PortID) {
	c := &core{faults: fault.New()}
	sw := c.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2})
	c.queue.Extend(c.topo.NumNodes(), c.topo.NumPorts())
	return c, New(c, c, &c.topo, &c.queue, &c.faults, 0x99), c.topo.PortOf(sw, 1)
}

// TestNoTopology checks that nothing is compared, and nothing held, without a declared topology.
func TestNoTopology(t *testing.T) {
	c, l, p := newLaw()
	l.Start(&Order{}, nil)
	if !l.Allows(p, time.Time{}, &mad.NodeInfo{}) || l.Holds(p) || !l.MayBelong(p) || l.IsDeclared(p) || l.Falls() || !l.MayElect() {
		t.Error("a topology that is not declared has consequences")
	}
	if l.ActionOn(p) != health.Report || l.Show() != nil || l.Spec() != nil {
		t.Error("a topology that is not declared is shown, or acted on")
	}
	l.Release(ib.Place{Switch: 0x10, Port: 1}, "alice", "new cable")
	if len(c.events) != 1 {
		t.Errorf("a release is answered by %q", c.events)
	}
	l.Set(&Order{}, true)
	if len(c.events) != 2 || len(c.saved) != 0 {
		t.Errorf("an order without a name: events %q, saved %v", c.events, c.saved)
	}
}

// TestSavedPorts checks that the last of what was saved counts, and that a port which was switched off is switched on when no
// topology has it off any longer.
func TestSavedPorts(t *testing.T) {
	seen := verify.Seen{GUID: 0x20, Port: 1, Type: ib.NodeCA, NumPorts: 1, PortGUID: 0x21, SystemImage: 0x22}
	back, err := parseSeen(formatSeen(&seen))
	if err != nil || back != seen {
		t.Errorf("read back %+v, %v; want %+v", back, err, seen)
	}
	c, l, p := newLaw()
	off, other := ib.Place{Switch: 0x10, Port: 1}, ib.Place{Switch: 0x10, Port: 2}
	l.Start(&Order{}, []Saved{
		{Place: off, Mark: "foreign", Seen: formatSeen(&seen)},
		{Place: other, Mark: "foreign", Seen: formatSeen(&seen)},
		{Place: other},
	})
	if !l.IsLetGo(off) || l.IsLetGo(other) || !l.MayBeOff(p) {
		t.Errorf("let go: %v and %v, may be off %v", l.IsLetGo(off), l.IsLetGo(other), l.MayBeOff(p))
	}
	l.Reread(p)
	l.IsOpen(p)
	if l.MayBeOff(p) || l.IsLetGo(off) {
		t.Error("the port is still to be switched on")
	}
	if diff := cmp.Diff([]Saved{{Place: off, Mark: releasedMark}, {Place: off}}, c.saved); diff != "" {
		t.Error(diff)
	}
}
