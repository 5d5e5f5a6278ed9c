package sm

import (
	"time"

	"portcullis/fabricsm/sm/work"
)

// allowance bounds how often a port is worked on. Without it, a device that never answers twice the same would be asked,
// and written to, without end. Every port has one, so times are kept in milliseconds.
type allowance struct {
	since uint32 // of the core's life; it wraps after 49 days, which costs an allowance
	pause uint32
	used  [work.NumClasses]uint16
}

// millis returns the age of the core in milliseconds.
func (c *Core) millis() uint32 { return uint32(c.now.Sub(c.born) / time.Millisecond) }

// allowanceWindow is the time an allowance is for. A port that overdraws it
// again and again waits ever longer.
const allowanceWindow = uint32(time.Second / time.Millisecond)

// allowed is how many requests of a class a port gets in a window, more than an
// honest one ever needs.
func (c *Core) allowed(x work.Ref) uint16 {
	switch x.Class {
	case work.Probe, work.SMInfo:
		return 32
	case work.PKey:
		return uint16(32 + 4*c.pkeys.Blocks(x.Port()))
	case work.SLtoVL:
		return 32 + 2*uint16(c.topo.Node(c.ports[x.ID].node).NumPorts)
	default:
		return 64
	}
}

// spend counts a request that is sent.
func (c *Core) spend(x work.Ref) {
	if x.Class.IsOnNode() {
		return
	}
	a := &c.ports[x.ID].turns
	now := c.millis()
	if idle := now - a.since; idle >= allowanceWindow {
		if idle >= allowanceWindow+2*a.pause {
			a.pause = 0
		}
		a.since, a.used = now, [work.NumClasses]uint16{}
	}
	a.used[x.Class]++
}

// gateHold is how long the P_Keys of a switch port wait that have had their
// turns: as good as no time, since a host that bounces its link must not put off
// that it loses access.
const gateHold = 20 * time.Millisecond

// overdrawn reports whether work has had its turns for now. If so, it is looked at again later.
func (c *Core) overdrawn(x work.Ref) bool {
	if x.Class.IsOnNode() {
		return false
	}
	a := &c.ports[x.ID].turns
	if a.used[x.Class] < c.allowed(x) || c.millis()-a.since >= allowanceWindow {
		return false
	}
	c.q.Hold(x)
	if x.Class == work.PKey && c.topo.IsExternal(x.Port()) {
		c.after(gateHold, work.Unhold, x)
		return true
	}
	pause := c.longer(time.Duration(a.pause) * time.Millisecond)
	a.pause = uint32(pause / time.Millisecond)
	c.after(pause, work.Unhold, x)
	return true
}
