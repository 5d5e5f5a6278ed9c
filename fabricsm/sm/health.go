package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// HealthMarked is the input by which an operator overrides the rules at a place;
// port 0 of a switch stands for the switch. MarkNone also ends a quarantine that
// follows from a rule. It is remembered over restarts.
type HealthMarked struct {
	Place  ib.Place
	Mark   health.Mark
	Reason string // the operator's words, at most health.MaxReason bytes; more is cut off
}

func (*HealthMarked) input() {}

// healthCore is the core as package health uses it.
type healthCore struct{ desk }

var _ health.Core = healthCore{}

func (f healthCore) IsProtected(pl ib.Place) bool       { return f.untouchable(pl) }
func (f healthCore) Apply(pl ib.Place, a health.Action) { f.quarantineAt(pl, a) }
func (f healthCore) TickLater(d time.Duration)          { f.after(d, work.Health, work.Ref{}) }

func (f healthCore) Save(s health.Saved) {
	f.save(Fact{
		Kind: FactHealth, GUID: s.Place.Switch, Port: s.Place.Port, Mark: s.Mark, Quarantine: s.Quarantine, Since: s.Since, Reason: s.Reason,
	})
}

// loadHealth takes a saved fact.
func (c *Core) loadHealth(f *Fact) {
	c.health.Load(&health.Saved{
		Place: ib.Place{Switch: f.GUID, Port: f.Port}, Mark: f.Mark, Quarantine: f.Quarantine, Since: f.Since, Reason: f.Reason,
	})
}

// marked takes the mark of an operator.
func (c *Core) marked(in *HealthMarked) {
	if in.Mark == health.MarkNone {
		c.law.ReleaseMarked(in.Place, in.Reason)
	}
	m := &health.Marking{Place: in.Place, Mark: in.Mark, Reason: in.Reason}
	if p := c.topo.SwitchPortAt(in.Place); p != topo.None && c.topo.Peer(p) != topo.None {
		m.GUID = c.topo.NodeGUID(c.ports[c.topo.Peer(p)].node)
	}
	c.viewDue = c.health.Mark(m) || c.viewDue
}

// suspectPlace returns the place that answers for the behaviour of a node: a switch itself, or the switch port in front of
// a host. It returns zero if there is none.
func (c *Core) suspectPlace(id topo.NodeID) ib.Place {
	if tn := c.topo.Node(id); tn.Type == ib.NodeSwitch {
		return ib.Place{Switch: tn.GUID}
	}
	return c.topo.PlaceOf(c.tree.Up(id))
}

// strikeNode records that a node misbehaved.
func (c *Core) strikeNode(id topo.NodeID, cond health.Condition) {
	if id != c.root {
		c.health.Strike(c.suspectPlace(id), c.topo.NodeGUID(id), cond)
	}
}
