package sm

import (
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// records is the health of all places that ever misbehaved, and the list of sick ones.
type records struct {
	at      map[ib.Place]*record
	sick    []ib.Place // in the order in which they fell ill
	marks   []ib.Place // that an operator marked
	states  []HealthState
	changed bool // since states was made
	ticking bool
}

// of returns the record of a place, nil if there are too many.
func (h *records) of(pl ib.Place) *record {
	if r := h.at[pl]; r != nil {
		return r
	}
	if len(h.at) >= maxRecords {
		return nil
	}
	r := &record{}
	h.at[pl] = r
	return r
}

func (h *records) drop(pl ib.Place) {
	h.sick = slices.DeleteFunc(h.sick, func(o ib.Place) bool { return o == pl })
}

// actionAt returns the action in force at a place.
func (h *records) actionAt(pl ib.Place) Action {
	if len(h.sick) == 0 {
		return Report
	}
	if r := h.at[pl]; r != nil && r.sick {
		return r.action
	}
	return Report
}

// healthTick is how often the sick are looked after.
const healthTick = time.Second

func (c *Core) watchHealth() {
	if !c.health.ticking {
		c.health.ticking = true
		c.after(healthTick, work.Health, work.Ref{})
	}
}

// nurse lets those recover that have not misbehaved for long enough, and forgets
// those that have been well for long.
func (c *Core) nurse() {
	h := &c.health
	h.ticking = false
	for _, pl := range slices.Clone(h.sick) {
		if r := h.at[pl]; r.mark == MarkNone && c.now.Sub(r.last) >= r.pause {
			h.drop(pl)
			c.recovered(pl, r)
		}
	}
	if len(h.at) > maxRecords/2 {
		c.forgetHealthy()
	}
	if len(h.sick) > 0 {
		c.watchHealth()
	}
}

// forgetHealthy removes the records of places without a fault for an hour.
func (c *Core) forgetHealthy() {
	for pl, r := range c.health.at {
		idle := !r.sick && r.mark == MarkNone && c.now.Sub(r.last) > c.cfg.Health.RecoverMax
		for i := range r.strikes {
			idle = idle && c.now.Sub(r.strikes[i].since) > time.Hour
		}
		if idle {
			delete(c.health.at, pl)
		}
	}
}

// quarantineAt applies an action at a place, or at all links of a switch.
func (c *Core) quarantineAt(pl ib.Place, a Action) {
	if pl.Port != 0 {
		if p := c.topo.SwitchPortAt(pl); p != topo.None {
			c.quarantine(p, a)
		}
		return
	}
	id := c.topo.NodeByGUID(pl.Switch)
	if id == topo.None || a <= Ignore {
		return // the ports in front of it recover by themselves
	}
	var facing []topo.PortID
	c.topo.EachExternal(id, func(q topo.PortID) {
		if p := c.topo.Peer(q); p != topo.None && c.topo.IsExternal(p) {
			facing = append(facing, p)
		}
	})
	for _, p := range facing {
		c.shun(p, pl)
	}
}

// shun quarantines a port because of the switch behind it, for as long as that
// is sick.
func (c *Core) shun(p topo.PortID, sw ib.Place) {
	r := c.health.of(c.topo.PlaceOf(p))
	of := c.health.at[sw]
	if r == nil || of == nil || r.sick || r.mark == MarkHealthy || !c.topo.IsExternal(p) || c.protected(p) {
		return
	}
	r.guid, r.sick, r.worst, r.action, r.last, r.pause = sw.Switch, true, of.worst, of.action, c.now, of.pause
	r.since, r.shun, c.health.changed = c.now, sw.Switch, true
	c.health.sick = append(c.health.sick, c.topo.PlaceOf(p))
	c.quarantine(p, r.action)
}

// protected reports whether no action is taken on a port: our own and those that it depends on.
func (c *Core) protected(p topo.PortID) bool {
	return p == c.rootPort || c.topo.Peer(p) == c.rootPort || c.ports[p].node == c.root && c.topo.Node(c.root).Type != ib.NodeSwitch
}

// untouchable reports whether no action is taken at a place: a protected port, or the switch that we are attached to.
func (c *Core) untouchable(pl ib.Place) bool {
	if pl.Port != 0 {
		p := c.topo.SwitchPortAt(pl)
		return p != topo.None && c.protected(p)
	}
	id := c.topo.NodeByGUID(pl.Switch)
	return id != topo.None && (id == c.root || c.nodes[id].up == c.rootPort)
}

// quarantine puts an action into force on a switch port, or out of it.
func (c *Core) quarantine(p topo.PortID, a Action) {
	pt := &c.ports[p]
	if a == Ignore {
		a = Report
	}
	if !c.topo.IsExternal(p) || pt.quarantine == a || a > Ignore && c.protected(p) {
		return
	}
	pt.reopen = pt.reopen || pt.quarantine == Disable
	pt.quarantine = a
	if a > Ignore {
		c.unlink(p)
		if c.ports[p].quarantine != a {
			return // its own node went with the link
		}
		c.unfence(p)
		pt.challenger = c.release(pt.challenger)
		pt.pause, pt.verify = 0, false
	} else {
		pt.pause = 0
		c.q.MarkPort(work.Probe, p)
	}
	c.q.MarkPort(work.Info, p)
	c.q.MarkPort(work.Set, p)
}

// dark reports whether nothing behind a port is read.
func (c *Core) dark(p topo.PortID) bool { return c.ports[p].barred() > Ignore }

// workQuarantine brings the link of a port into the state that its quarantine
// asks for. It reports whether the port is none of workSet's business.
func (c *Core) workQuarantine(p topo.PortID) bool {
	pt := &c.ports[p]
	bar := pt.barred()
	if pt.reopen && bar != Disable && pt.known {
		if pt.info.PortPhysicalState == ib.PhysDisabled {
			c.forceLink(p, ib.PhysPolling)
			return true
		}
		if c.mayBeOff(p) {
			c.q.MarkPort(work.Info, p)
			return true
		}
		pt.reopen = false
		c.isOpen(p)
	}
	switch {
	case !c.dark(p):
		return false
	case !pt.known:
	case bar == Disable && pt.info.PortPhysicalState != ib.PhysDisabled:
		c.forceLink(p, ib.PhysDisabled)
	case bar == Isolate && pt.info.PortState > ib.PortInit:
		c.forceLink(p, ib.PhysNop)
	default:
		pt.setRounds = 0
	}
	return true
}

// forceLink takes the link of a switch port down and says what the port does then:
// nothing that it does not do by itself, poll, or stay switched off.
func (c *Core) forceLink(p topo.PortID, phys ib.PhysState) {
	pt := &c.ports[p]
	x := work.OnPort(work.Set, p)
	if pt.setRounds > maxSetRounds {
		pt.setRounds = 0
		c.pauseWork(x) // it takes the Set and does not do it
		return
	}
	c.takeDown(p, phys)
}

// nearer returns the end of a link that is nearer to us. The device that misbehaves is behind it, and only this end can
// still be reached when it is closed.
func (c *Core) nearer(p, q topo.PortID) topo.PortID {
	switch {
	case q == topo.None || !c.topo.IsExternal(q):
		return p
	case !c.topo.IsExternal(p):
		return q
	}
	a, b := c.routeTo(c.ports[p].node).Len(), c.routeTo(c.ports[q].node).Len()
	if b < a || a == b && c.topo.NodeGUID(c.ports[q].node) < c.topo.NodeGUID(c.ports[p].node) {
		return q
	}
	return p
}

// flapped records that a link went down.
func (c *Core) flapped(p, q topo.PortID) {
	at := c.nearer(p, q)
	if !c.topo.IsExternal(at) {
		return
	}
	var guid ib.GUID
	if far := c.topo.Peer(at); far != topo.None {
		guid = c.topo.NodeGUID(c.ports[far].node)
	}
	c.strike(c.topo.PlaceOf(at), guid, Flapping)
}

// remember restores the quarantine that was in force at the ports of a node that is found again.
func (c *Core) remember(id topo.NodeID) {
	if len(c.health.sick) == 0 {
		return
	}
	c.topo.EachExternal(id, func(p topo.PortID) {
		if a := c.health.actionAt(c.topo.PlaceOf(p)); a > Ignore {
			c.ports[p].quarantine = a
		}
	})
}

// saveHealth saves, for a restart, an action that cuts a device off, and the decision of an operator.
func (c *Core) saveHealth(pl ib.Place, r *record) {
	f := Fact{Kind: FactHealth, GUID: pl.Switch, Port: pl.Port, Mark: markNames[r.mark]}
	if f.Mark != "" || r.sick && r.action > Ignore {
		f.Since, f.Reason = r.since.UTC().Truncate(time.Second), r.why
	}
	if r.sick && r.action > Ignore {
		f.Quarantine = fmt.Sprintf("%d %d %d", r.action, r.worst, r.pause/time.Second)
	}
	was := r.saved
	if r.saved = f.Mark != "" || f.Quarantine != ""; r.saved || was {
		c.save(f)
	}
}

// loadHealth takes a saved fact.
func (c *Core) loadHealth(f *Fact) {
	pl := ib.Place{Switch: f.GUID, Port: f.Port}
	r := c.health.of(pl)
	if r == nil {
		return
	}
	r.saved = f.Mark != "" || f.Quarantine != ""
	r.mark = MarkNone
	for m, name := range markNames {
		if name == f.Mark {
			r.mark = m
		}
	}
	c.health.drop(pl)
	c.health.noteMark(pl, r.mark)
	r.sick, r.since, r.why, c.health.changed = false, f.Since, CleanReason(f.Reason), true
	var action, worst, pause int64
	if n, err := fmt.Sscanf(f.Quarantine, "%d %d %d", &action, &worst, &pause); err != nil || n != 3 {
		return
	}
	if action <= int64(Ignore) || action >= int64(numActions) || worst < 0 || worst >= int64(numConditions) || pause < 0 {
		return
	}
	r.sick, r.action, r.worst, r.last = true, Action(action), Condition(worst), c.now
	if r.since.IsZero() {
		r.since = c.now
	}
	r.pause = min(time.Duration(pause)*time.Second, max(c.cfg.Health.Recover, c.cfg.Health.RecoverMax))
	c.health.sick = append(c.health.sick, pl)
	c.faults.Set(illness(r.worst, pl), (&Unhealthy{Place: pl, Condition: r.worst, Action: r.action, Reason: r.why}).String())
	c.watchHealth()
}
