package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// rotation changes the M_Keys from time to time.
type rotation struct {
	rotator *keys.Rotator
	armed   bool                     // work.Rotate runs
	settled bool                     // the fabric was, so all devices that are there are known
	turning map[ib.GUID]time.Time    // devices whose turn it is, by its end whatever comes
	dual    map[topo.PortID]dualness // of ports with keys
	asking  int                      // of which so many were not answered yet
	ages    []keys.Age               // as of the end of the last cycle
}

// dualness says whether a device accepts two M_Keys at a time.
type dualness uint8

const (
	dualUnknown dualness = iota
	dualAsked            // or waits in the background to be
	dualYes
	dualNo
)

// learnDual records the dualness of a device.
func (r *rotation) learnDual(p topo.PortID, d dualness) {
	if r.rotator == nil || r.dual[p] == d {
		return
	}
	if r.dual[p] == dualAsked {
		r.asking--
	}
	switch d {
	case dualAsked:
		r.asking++
	case dualUnknown:
		delete(r.dual, p)
		return
	case dualYes, dualNo:
	}
	r.dual[p] = d
}

// mayRotate reports whether it is known which devices there are and can be rotated.
func (c *Core) mayRotate() bool {
	r := &c.mkeys.rotation
	// A device that fell silent before it was asked is waited for no longer than the others.
	return c.writing() && c.members.IsReady() && r.settled && (r.asking == 0 || !c.idleWork.armed)
}

// startRotation begins to wait for the first cycle.
func (c *Core) startRotation(facts []Fact) {
	if !c.cfg.MKey.on() {
		return
	}
	last := make(map[keys.Kind]keys.Cycle)
	for i := range facts {
		if y := facts[i].Cycle; y != nil && y.Kind == keys.MKey {
			last[y.Kind] = *y
		}
	}
	var saved []keys.Cycle
	for _, y := range last {
		saved = append(saved, y)
	}
	r, err := keys.NewRotator(c.cfg.MKey.Rotation, []keys.Kind{keys.MKey}, c.now, saved)
	if err != nil {
		c.event(&KeyProblem{Reason: err.Error()})
		return
	}
	c.mkeys.rotation = rotation{rotator: r, turning: make(map[ib.GUID]time.Time), dual: make(map[topo.PortID]dualness)}
}

// rotate does what is due of the rotation of keys.
func (c *Core) rotate() {
	r := &c.mkeys.rotation
	if r.rotator == nil || c.mkeys.releasing {
		return
	}
	for {
		turn := r.rotator.Next(c.now, c.mayRotate(), c.fleet)
		for _, y := range turn.Save {
			c.save(RotationFactOf(y))
		}
		for _, s := range turn.Ended {
			r.ages = keys.Ages(c.mkeys.book.Records(), c.now, c.cfg.MKey.Rotation.Period, c.isDual)
			c.event(&KeysRotated{Summary: s, Old: len(r.ages)})
			c.viewDue = true
		}
		for _, t := range turn.Change {
			c.turn(t, func(ring *keys.Ring) bool { return c.changeKey(ring, t) })
		}
		for _, t := range turn.Commit {
			c.turn(t, func(ring *keys.Ring) bool { ring.Commit(); return true })
		}
		if !turn.Wake.IsZero() && !r.armed {
			r.armed = true
			c.after(max(0, turn.Wake.Sub(c.now)), work.Rotate, work.Ref{})
		}
		if len(turn.Change)+len(turn.Commit) == 0 {
			return
		}
		if len(r.turning) > 0 {
			return // turned goes on
		}
	}
}

// turn begins the turn of one device.
func (c *Core) turn(t keys.Target, do func(*keys.Ring) bool) {
	r := &c.mkeys.rotation
	ring := c.mkeys.book.Ring(t.Kind, t.GUID)
	p, ok := c.byPort[t.GUID]
	if !ok || ring == nil || !do(ring) {
		r.rotator.Done(t.Kind, t.GUID, false)
		return
	}
	r.turning[t.GUID] = c.now.Add(turnPatience)
	c.after(turnPatience, work.Turn, work.OnPort(work.Set, p))
	c.q.MarkPort(work.Set, p)
	c.turned(p)
}

// changeKey plans the key of an epoch, unless an earlier change goes on.
func (c *Core) changeKey(ring *keys.Ring, t keys.Target) bool {
	rec := ring.Record()
	if !rec.Pending.IsZero() {
		return true
	}
	h, err := c.cfg.MKey.Source.Make(t.Kind, t.GUID, t.Epoch, c.now)
	if err == nil {
		err = ring.Plan(h)
	}
	if err != nil {
		c.event(&KeyProblem{GUID: t.GUID, Reason: err.Error()})
		return false
	}
	c.saveKey(ring)
	return true
}

// turned ends the turn of a device that is on its new key, or cannot be brought
// there now.
func (c *Core) turned(p topo.PortID) {
	r := &c.mkeys.rotation
	guid := c.topo.GUIDOf(p)
	if r.turning[guid].IsZero() {
		return
	}
	ring, ok := c.ring(p), false
	if ring != nil && c.nodes[c.ports[p].node].alive && !c.nodes[c.ports[p].node].silent {
		s := ring.Next(c.keyedAt(p), c.verified(p))
		if s.Do == keys.Ask || s.Do == keys.Program {
			return
		}
		ok = ring.Settled()
	}
	c.endTurn(guid, ok)
}

// turnPatience is how long a device may take to get onto its new key. Otherwise a device that answers with errors, or whose
// port cannot be written, would end the rotation for all others. Its record keeps both keys, and it gets there when it can.
const turnPatience = 30 * time.Second

// turnOver ends the turn of a device that had all the time there is.
func (c *Core) turnOver(p topo.PortID) {
	if end := c.mkeys.rotation.turning[c.topo.GUIDOf(p)]; !end.IsZero() && !end.After(c.now) {
		c.endTurn(c.topo.GUIDOf(p), false)
	}
}

func (c *Core) endTurn(guid ib.GUID, ok bool) {
	r := &c.mkeys.rotation
	if r.turning[guid].IsZero() {
		return
	}
	delete(r.turning, guid)
	r.rotator.Done(keys.MKey, guid, ok)
	c.rotateSoon()
}

// rotationDue goes on with the rotation.
func (c *Core) rotationDue() {
	c.mkeys.rotation.armed = false
	c.rotate()
}

// fleet lists the devices that have keys.
func (c *Core) fleet(kind keys.Kind) []keys.Member {
	var out []keys.Member
	for p := range c.ports {
		id := topo.PortID(p)
		if !c.nodes[c.ports[p].node].alive || !c.topo.IsEndPort(id) {
			continue
		}
		ring := c.ring(id)
		if ring == nil {
			continue
		}
		rec := ring.Record()
		out = append(out, keys.Member{
			GUID: rec.GUID, Epoch: rec.Current.Epoch, Keyed: !rec.Current.IsZero(), Prior: !rec.Previous.IsZero(),
			Dual: c.mkeys.rotation.dual[id] == dualYes, Depth: c.routeTo(c.ports[p].node).Len(), Switch: c.ports[p].num == 0,
		})
	}
	return out
}

func (c *Core) isDual(_ keys.Kind, guid ib.GUID) bool {
	p, ok := c.byPort[guid]
	return ok && c.mkeys.rotation.dual[p] == dualYes
}

// askDual asks, in the background, whether a device accepts two keys at a time.
func (c *Core) askDual(p topo.PortID) {
	r := &c.mkeys.rotation
	if r.rotator == nil || c.cfg.MKey.Rotation.Period == 0 {
		return
	}
	if r.dual[p] == dualUnknown {
		r.learnDual(p, dualAsked)
		c.inBackground(work.OnPort(work.Vendor, p))
	}
}

func (c *Core) gotDual(p topo.PortID, e *mad.MlnxExtendedPortInfo) {
	switch {
	case c.mkeys.rotation.dual[p] != dualAsked: // the read was for something else
	case e.CapabilityMask&mad.MlnxDualMKey != 0:
		c.knowDual(p, dualYes)
	default:
		c.knowDual(p, dualNo)
	}
}

// knowDual takes whether a device accepts two keys. The rotation may have waited
// for it.
func (c *Core) knowDual(p topo.PortID, d dualness) {
	r := &c.mkeys.rotation
	r.learnDual(p, d)
	c.showKey(p)
	if r.asking == 0 {
		c.rotateSoon()
	}
}

// rotateSoon goes on with the rotation after this step.
func (c *Core) rotateSoon() {
	if r := &c.mkeys.rotation; r.rotator != nil && !r.armed {
		r.armed = true
		c.after(0, work.Rotate, work.Ref{})
	}
}
