package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/judge"
)

// suspicion is a port behind which something is wrong, before that is acted on. An
// answer can be that of another port: while a cable nearer to us is moved, the
// directed route leads elsewhere. So the links on the way are asked again first.
type suspicion struct {
	since time.Time
	tries int
	lie   judge.Seen // the device that was seen last
}

// wavering counts suspicions of a port that came to nothing, because a repeated request got the true answer, or none. One
// in each waverPause is forgotten: the path to an honest device may be recabled once in a while.
type wavering struct {
	n  int
	at time.Time
}

const (
	// maxWaverings is how many of them there may be before a device that lies again is judged by its first answer.
	maxWaverings = 3
	waverPause   = 4 * time.Hour
)

// left returns how many of them count at a time.
func (w *wavering) left(now time.Time) int {
	if w == nil {
		return 0
	}
	return max(0, w.n-int(now.Sub(w.at)/waverPause))
}

// wavered records that a suspicion of a port came to nothing.
func (c *Core) wavered(p topo.PortID) {
	if c.law.asking[p] == nil {
		return
	}
	w := c.law.waverings[p]
	n := min(w.left(c.now)+1, maxWaverings)
	c.law.waverings[p] = &wavering{n: n, at: c.now}
}

// maxDoubts is how often a suspicion is looked into before the port is left alone
// for a while: the way to it is broken.
const maxDoubts = 8

// convicted reports whether a fault behind port p was seen twice, and the links on the way to it were asked between.
func (c *Core) convicted(p topo.PortID, r *work.Request, lie judge.Seen) bool {
	l := &c.law
	s := l.asking[p]
	if s == nil {
		s = &suspicion{since: c.now}
		l.asking[p] = s
	}
	if s.lie = lie; s.tries > 0 && !r.Sent.Before(s.since) && c.wayProven(p, s.since, r.Sent) {
		c.acquit(p)
		return true
	}
	if s.tries++; s.tries > maxDoubts {
		c.acquit(p)
		c.pauseWork(work.OnPort(work.Probe, p))
		return false
	}
	c.eachHop(p, func(hop topo.PortID) bool {
		if at, ok := l.proven[hop]; !ok || at.Before(s.since) {
			c.ports[hop].verify = true
			c.q.MarkPort(work.Probe, hop)
		}
		return true
	})
	c.ports[p].verify = true
	c.after(nearRetry<<min(s.tries, 6), work.Near, work.OnPort(work.Probe, p))
	return false
}

// acquit ends a suspicion.
func (c *Core) acquit(p topo.PortID) {
	if len(c.law.asking) == 0 {
		return
	}
	if delete(c.law.asking, p); len(c.law.asking) == 0 {
		clear(c.law.proven)
	}
}

// eachHop calls f with the ports that lead from one node to the next on the way to
// the node of p, while f says so. It reports whether f never said no.
func (c *Core) eachHop(p topo.PortID, f func(topo.PortID) bool) bool {
	for up := c.nodes[c.ports[p].node].up; up != topo.None; up = c.nodes[c.ports[up].node].up {
		if !f(up) {
			return false
		}
	}
	return true
}

// wayProven reports whether all links on the way to a port were asked and are as expected, after a time and before another.
func (c *Core) wayProven(p topo.PortID, since, before time.Time) bool {
	return c.eachHop(p, func(hop topo.PortID) bool {
		at, ok := c.law.proven[hop]
		return ok && !at.Before(since) && !at.After(before)
	})
}

// noteProven records that the device behind a port was asked, and is as expected.
func (c *Core) noteProven(p topo.PortID, r *work.Request, v judge.Verdict) {
	if v != judge.Verified || len(c.law.asking) == 0 {
		return
	}
	c.wavered(p)
	delete(c.law.asking, p)
	c.law.proven[p] = r.Sent
}

// wavers reports whether a port is under suspicion, and too many earlier suspicions of it came to nothing. A device that
// lies in every other answer would otherwise stay part of the fabric. It is judged by its first answer, unless the path is
// to blame.
func (c *Core) wavers(p topo.PortID) bool {
	return len(c.law.asking) > 0 && c.law.asking[p] != nil && c.law.waverings[p].left(c.now) >= maxWaverings
}

// perjured convicts the device behind a port that wavers if it is silent now.
func (c *Core) perjured(p topo.PortID, r *work.Request) bool {
	if !c.wavers(p) {
		return false
	}
	s := c.law.asking[p]
	if !c.wayProven(p, s.since, r.Sent) {
		return false
	}
	c.acquit(p)
	c.law.judge.Link(s.lie)
	c.lawChanges()
	return true
}

// lawGuarded reports whether a switch port is never switched off (rule 6): our own, and the only way to a switch over links
// that are, or were, verified.
func (c *Core) lawGuarded(at ib.Place) bool {
	p := c.topo.SwitchPortAt(at)
	if p == topo.None {
		return false
	}
	if c.protected(p) {
		return true
	}
	if peer := c.topo.Peer(p); peer == topo.None || !c.topo.IsExternal(peer) || c.own() == topo.None {
		return false // no way to a switch
	}
	l := &c.law
	if f := c.topo.Freeze(); l.guard == nil || l.guardOf != f {
		l.guardOf = f
		l.guard = judge.NewGuard(f, c.own(), func(q topo.PortID) bool {
			return l.judge.WasVerified(ib.Place{Switch: f.NodeOf(q).GUID, Port: f.Port(q).Num})
		})
	}
	return l.guard.Protected(p)
}

// lawOf returns what the declared topology does to a switch port.
func (c *Core) lawOf(p topo.PortID) health.Action {
	l := &c.law
	if !l.on() || c.protected(p) {
		return health.Report
	}
	at := c.topo.PlaceOf(p)
	spec := l.judge.Spec()
	link, _ := spec.LinkAt(spec.SlotOf(topospec.EndAt(at)))
	if link != nil && link.State == topospec.NoDiscover {
		return health.NoDiscover
	}
	if !l.enforces() {
		return health.Report
	}
	switch st, v, _ := l.judge.At(at); {
	case st == judge.StateDisabled:
		return health.Disable
	case st == judge.StateHeld && v != judge.Held:
		return health.Isolate
	case link != nil && link.State == topospec.Disabled && l.judge.Trusts(at.Switch):
		return health.Disable
	default:
		return health.Report
	}
}

// lawFirst takes that a port of a switch was read for the first time.
func (c *Core) lawFirst(p topo.PortID) {
	if !c.topo.IsExternal(p) {
		return
	}
	if _, ok := c.law.letGo[c.topo.PlaceOf(p)]; ok {
		c.ports[p].reopen = true
		c.q.MarkPort(work.Set, p)
	}
	c.setLaw(p)
}

// setLaw brings a switch port under what the declared topology does to it.
func (c *Core) setLaw(p topo.PortID) {
	a := c.lawOf(p)
	pt := &c.ports[p]
	if pt.law == a {
		return
	}
	if pt.law == health.Disable {
		pt.reopen = true
	}
	if pt.law = a; a > health.Ignore {
		c.unlink(p)
		if c.ports[p].law != a {
			return // its own node went with the link
		}
		c.unfence(p)
		pt.challenger = c.release(pt.challenger)
		pt.verify = false
	} else {
		c.q.MarkPort(work.Probe, p)
	}
	pt.pause = 0
	c.q.MarkPort(work.Info, p)
	c.q.MarkPort(work.Set, p)
	c.q.MarkPort(work.PKey, p)
}

// barred returns the action in force at a port, by its health and by the declared topology.
func (pt *port) barred() health.Action { return max(pt.quarantine, pt.law) }

// lawChanges does what follows from what the judge found.
func (c *Core) lawChanges() {
	l := &c.law
	l.todo = append(l.todo, l.judge.Changes()...)
	if l.busy {
		return
	}
	l.busy = true
	for i := 0; i < len(l.todo); i++ {
		ch := l.todo[i]
		c.lawChange(&ch)
		l.todo = append(l.todo, l.judge.Changes()...)
	}
	l.todo, l.busy = again(l.todo), false
}

// lawChange does what follows from one transition of a port.
func (c *Core) lawChange(ch *judge.Change) {
	l := &c.law
	if ch.To == judge.StateDisabled || ch.From == judge.StateDisabled {
		c.saveLaw(ch.At)
	}
	c.tellLaw(ch)
	p := c.topo.SwitchPortAt(ch.At)
	if p == topo.None {
		return
	}
	c.setLaw(p)
	if ch.To == judge.StateVerified && ch.Seen.Type == ib.NodeSwitch {
		c.trusted(ch.Seen.GUID)
	}
	if ch.From == judge.StateDark && ch.To == judge.StateVerified || !c.nodes[c.ports[p].node].alive {
		return // it is about to be linked
	}
	for _, x := range [2]topo.PortID{p, c.topo.Peer(p)} {
		if x != topo.None {
			c.touch(x)
		}
	}
	c.judgePort(p)
	if l.enforces() {
		c.disturb()
	}
}
