package sm

import (
	"time"

	"portcullis/fabricsm/topo"
)

// allowance bounds how often a port is worked on: a device that never answers
// twice the same would else be asked, and written to, without end.
type allowance struct {
	since time.Time
	used  [numClasses]uint16
	pause time.Duration
}

// allowanceWindow is the time an allowance is for. A port that overdraws it
// again and again waits ever longer.
const allowanceWindow = time.Second

// allowed is how many requests of a class a port gets in a window, more than an
// honest one ever needs.
func (c *Core) allowed(x ref) uint16 {
	switch x.class {
	case clsProbe, clsSMInfo:
		return 32
	case clsPKey:
		return uint16(32 + 4*c.keyBlocks(topo.PortID(x.id)))
	case clsSLtoVL:
		return 32 + 2*uint16(c.topo.Node(c.ports[x.id].node).NumPorts)
	default:
		return 64
	}
}

// spend counts a request that is sent.
func (c *Core) spend(x ref) {
	if x.class.onNode() {
		return
	}
	a := &c.ports[x.id].turns
	if idle := c.now.Sub(a.since); idle >= allowanceWindow {
		if idle >= allowanceWindow+2*a.pause {
			a.pause = 0
		}
		a.since, a.used = c.now, [numClasses]uint16{}
	}
	a.used[x.class]++
}

// overdrawn reports work that has had its turns for now, and has it looked at
// again later. The P_Keys of a switch port always have their turn: a host that
// bounces its link must not put off that it loses access.
func (c *Core) overdrawn(x ref) bool {
	if x.class.onNode() || x.class == clsPKey && c.external(topo.PortID(x.id)) {
		return false
	}
	a := &c.ports[x.id].turns
	if a.used[x.class] < c.allowed(x) || c.now.Sub(a.since) >= allowanceWindow {
		return false
	}
	a.pause = c.longer(a.pause)
	c.marksOf(x).held |= 1 << x.class
	c.after(a.pause, timerHold, x)
	return true
}
