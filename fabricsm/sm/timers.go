package sm

import (
	"time"

	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// lives is the core as package work asks it how nodes are.
type lives struct{ desk }

var _ work.Lives = lives{}

func (l lives) NodeOf(p topo.PortID) topo.NodeID { return l.ports[p].node }

func (l lives) Life(id topo.NodeID) work.Life {
	n := &l.nodes[id]
	return work.Life{Epoch: n.epoch, IsAlive: n.alive, IsSilent: n.silent}
}

func (c *Core) after(d time.Duration, alarm work.Alarm, x work.Ref) {
	t := work.Timer{At: c.now.Add(d), Alarm: alarm, Ref: x}
	if alarm <= work.Report {
		t.Epoch = work.EpochOf(lives{desk{c}}, x)
	}
	c.timers.Add(t)
}

// fire does the work that is due. What is about a node that is gone is not done.
func (c *Core) fire() {
	for {
		t, due := c.timers.Due(c.now)
		if !due {
			return
		}
		if t.Alarm == work.Unhold {
			c.q.Free(t.Ref)
		}
		if t.Alarm <= work.Report && work.EpochOf(lives{desk{c}}, t.Ref) != t.Epoch {
			continue
		}
		c.alarm(t.Alarm, t.Ref)
	}
}

// alarm does what is due.
func (c *Core) alarm(a work.Alarm, x work.Ref) {
	switch a {
	case work.Near, work.Unhold:
		c.q.Mark(x)
	case work.Retry:
		switch x.Class { // which blocks of a table were refused before a pause is forgotten
		case work.LFT:
			c.lfts.Resume(x.Node())
		case work.MFT:
			c.groups.Resume(x.Node())
		default:
		}
		c.q.Mark(x)
	case work.Verify:
		c.traps.LookDue(x.Node())
	case work.Report:
		c.reports.CheckDue(x.Port())
	case work.Violations:
		c.reports.ReportDue()
		c.viewDue = true
	case work.Intent:
		c.stopWaiting()
	case work.Audit:
		c.audit()
	case work.Watch:
		c.election.Watch()
	case work.Poll:
		c.election.Poll()
	case work.Health:
		c.health.Recover()
	case work.Background:
		c.idleWork.Due()
	case work.Rotate:
		c.mkeys.Rotation().Due()
	case work.Turn:
		c.mkeys.Rotation().TurnOver(x.Port())
	case work.Lease:
		c.mkeys.Leases().Due()
	case work.KeepLeases:
		c.keepLeases()
	case work.Succession:
		c.pkeys.Judge.KeysDropped()
	case work.Closed:
		c.refusing.AskClosed()
	case work.LIDs:
		hostFabric{desk{c}}.readLIDs()
	case work.Route:
		c.routing.Look()
	}
}
