package sm

import (
	"time"

	"portcullis/fabricsm/sm/work"
)

func (c *Core) after(d time.Duration, alarm work.Alarm, x work.Ref) {
	t := work.Timer{At: c.now.Add(d), Alarm: alarm, Ref: x}
	if alarm <= work.Report {
		t.Epoch = c.epochOf(x)
	}
	c.timers.Add(t)
}

func (c *Core) epochOf(x work.Ref) uint32 {
	switch {
	case x.Class == work.Root:
		return 0
	case x.Class.IsOnNode():
		return c.nodes[x.ID].epoch
	default:
		return c.nodes[c.ports[x.ID].node].epoch
	}
}

// fire does the work that is due.
func (c *Core) fire() {
	for {
		t, due := c.timers.Due(c.now)
		if !due {
			return
		}
		switch t.Alarm {
		case work.Near:
			if c.epochOf(t.Ref) == t.Epoch {
				c.q.Mark(t.Ref)
			}
		case work.Retry:
			if c.epochOf(t.Ref) == t.Epoch {
				c.pausedFor(t.Ref)
				c.q.Mark(t.Ref)
			}
		case work.Unhold:
			c.q.Free(t.Ref)
			if c.epochOf(t.Ref) == t.Epoch {
				c.q.Mark(t.Ref)
			}
		case work.Verify:
			if c.epochOf(t.Ref) == t.Epoch {
				c.traps.LookDue(t.Ref.Node())
			}
		case work.Report:
			if c.epochOf(t.Ref) == t.Epoch {
				c.reports.CheckDue(t.Ref.Port())
			}
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
			c.backgroundDue()
		case work.Rotate:
			c.mkeys.Rotation().Due()
		case work.Turn:
			c.mkeys.Rotation().TurnOver(t.Ref.Port())
		case work.Lease:
			c.mkeys.Leases().Due()
		case work.KeepLeases:
			c.keepLeases()
		case work.Closed:
			c.refusing.AskClosed()
		case work.LIDs:
			hostFabric{desk{c}}.readLIDs()
		case work.Route:
			if wait := c.routesBy().Sub(c.now); c.routing.need && !c.routing.running && wait > 0 {
				c.after(wait, work.Route, work.Ref{})
			}
		}
	}
}

// pausedFor forgets which blocks of a table were refused before a pause.
func (c *Core) pausedFor(x work.Ref) {
	switch x.Class {
	case work.LFT:
		c.lfts.Resume(x.Node())
	case work.MFT:
		c.groups.Resume(x.Node())
	default:
	}
}
