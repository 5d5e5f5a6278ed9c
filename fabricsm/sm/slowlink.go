package sm

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// SlowLink says that a link runs below what both of its ends are enabled for,
// for example on one lane of four: most likely a cable is bad.
type SlowLink struct {
	Place, Peer     ib.Place // its ends; the node GUID and port of a CA or router
	Speed, Expected ib.Speed
	Width, Enabled  ib.LinkWidth
}

func (*SlowLink) FabricEvent() {}

// String implements fmt.Stringer.
func (e *SlowLink) String() string {
	return fmt.Sprintf("the link between %v and %v runs at %v %v, but both ends are enabled for %v %v: check the cable",
		e.Place, e.Peer, e.Width, e.Speed, e.Enabled, e.Expected)
}

// linkKey names the problem of a link by the end that is known by the lower id.
func linkKey(t *topo.Builder, p, q topo.PortID) fault.Key {
	return fault.Key{Kind: fault.LinkSlow, Place: t.LinkEnd(min(p, q))}
}

// enabledFor returns the best speed and width that both ends of a link are enabled for.
func (c *Core) enabledFor(p, q topo.PortID) (ib.Speed, ib.LinkWidth) {
	a, b := &c.ports[p].info, &c.ports[q].info
	speed := ib.Fastest(a.LinkSpeedEnabled&b.LinkSpeedEnabled,
		ib.LinkSpeedExt(a.LinkSpeedExtEnabled&b.LinkSpeedExtEnabled),
		ib.LinkSpeedExt2(a.LinkSpeedExtEnabled2&b.LinkSpeedExtEnabled2))
	speed = orFDR10(speed, c.ports[p].fdr10&c.ports[q].fdr10&fdr10Enabled != 0)
	return speed, (a.LinkWidthEnabled & b.LinkWidthEnabled).Widest()
}

// running returns the speed and width at which the link of a port runs.
func (pt *port) running() (ib.Speed, ib.LinkWidth) {
	pi := &pt.info
	speed := ib.Fastest(pi.LinkSpeedActive, pi.LinkSpeedExtActive, ib.LinkSpeedExt2(pi.LinkSpeedExtActive2))
	return orFDR10(speed, pt.fdr10&fdr10Active != 0), pi.LinkWidthActive
}

// judgeLink reports a link that runs below what it is enabled for. While a change of ours waits for the next training, this
// is expected.
func (c *Core) judgeLink(p topo.PortID) {
	q := c.topo.Peer(p)
	if q == topo.None || !c.ports[p].known || !c.ports[q].known {
		return
	}
	k := linkKey(&c.topo, p, q)
	speed, width := c.ports[p].running()
	if far, lanes := c.ports[q].running(); far < speed || lanes.Lanes() < width.Lanes() {
		speed, width = min(speed, far), lanes
	}
	best, widest := c.enabledFor(p, q)
	slow := speed != 0 && speed < best || width != 0 && width.Lanes() < widest.Lanes()
	if !slow || c.ports[p].retuned || c.ports[q].retuned {
		c.notSlow(k)
		return
	}
	if p > q {
		p, q = q, p
	}
	c.problem(k, &SlowLink{Place: c.topo.LinkEnd(p), Peer: c.topo.LinkEnd(q), Speed: speed, Expected: best, Width: width, Enabled: widest})
}

// notSlow takes that a link is gone or as fast as it should be.
func (c *Core) notSlow(k fault.Key) {
	if c.faults.Clear(k) {
		c.viewDue = true
	}
}

// retrain takes a link down once, which comes up by itself, when a change of the enabled speed or width waits for that. The
// Set goes to the switch port that does not lie behind the link.
func (c *Core) retrain(p topo.PortID) bool {
	q := c.topo.Peer(p)
	if !c.cfg.Ports.Retrain || q == topo.None || p == c.rootPort || q == c.rootPort ||
		!c.topo.IsExternal(p) || c.nodes[c.ports[p].node].up == q && c.topo.IsExternal(q) {
		return false
	}
	a, b := &c.ports[p], &c.ports[q]
	if !b.known || c.q.IsAsked(work.Set, q) || c.tunes(p) || c.tunes(q) {
		return false
	}
	speed, width := a.running()
	best, widest := c.enabledFor(p, q)
	// A link that runs faster than it may waits for its training also when the
	// node was lost, and with it what we did, because a nearer link was trained.
	waits := !a.retrained && (speed > best || width.Lanes() > widest.Lanes())
	if !a.retuned && !b.retuned && !waits {
		return false
	}
	a.retuned, b.retuned = false, false
	if speed == best && width == widest {
		return false
	}
	a.retrained = true
	c.takeDown(p, ib.PhysNop)
	return true
}

// tunes reports whether masks of a port are still to be written.
func (c *Core) tunes(p topo.PortID) bool {
	want, fields := c.wantInfo(p)
	return differing(&c.ports[p].info, &want)&fields&fieldLink&^c.nodes[c.ports[p].node].notKept != 0
}
