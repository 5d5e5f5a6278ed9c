package sm

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Parties that may have seen a key. A device that protects its key answers no request without it, not even with its
// identity. So a key is shown to any device at the end of the cable. The only remedy is that no device uses a key that
// another may have seen: it gets another key when it is back, before it gets anything else. A key may have been seen by
//
//   - a device that answered a probe under it with another GUID (toldKey),
//   - a device that was silent to such probes (nobodyTold),
//   - a device that may have been there already when the last requests went out, before the loss
//     of the link became known (lostKey).

// lossTime is how long before its loss becomes known a link may have been gone: a switch repeats the trap that reports the
// loss at about this pace.
const lossTime = time.Second

// showing records the ports to which keys were shown.
type showing struct {
	at   []uint32                  // by topo.PortID: when the last request under its key went out, in milliseconds, 0 for never
	to   map[topo.PortID][]ib.GUID // probed: whose keys were shown since an answer came from there
	told map[ib.GUID]bool          // keys that another device has seen for certain, and that were not replaced since
}

func newShowing() showing {
	return showing{told: make(map[ib.GUID]bool), to: make(map[topo.PortID][]ib.GUID)}
}

// showsKey records that a request under the key of an end port goes out.
func (c *Core) showsKey(p topo.PortID) {
	s := &c.mkeys.shown
	if n := len(c.ports) - len(s.at); n > 0 {
		s.at = append(s.at, make([]uint32, n)...)
	}
	s.at[p] = c.millis() + 1
}

// showsTo records that a probe of a port goes out under the key of a device.
func (c *Core) showsTo(p topo.PortID, guid ib.GUID) {
	if to := c.mkeys.shown.to; !slices.Contains(to[p], guid) {
		to[p] = append(to[p], guid)
	}
}

// nobodyTold handles that no probe of a port was answered: a device may be there and listen.
func (c *Core) nobodyTold(p topo.PortID) {
	for _, guid := range c.mkeys.shown.to[p] {
		if c.keptKey(guid) {
			c.expose(guid, exposedKey)
		}
	}
}

// lostKeys records that a link is known to be gone: of an adapter, or the one over which a switch was asked.
func (c *Core) lostKeys(p, q topo.PortID) {
	for _, x := range [2][2]topo.PortID{{p, q}, {q, p}} {
		end := c.topo.EntryPort(x[1])
		if !c.topo.IsExternal(x[1]) || c.nodes[c.ports[end].node].up == x[0] {
			c.lostKey(end)
		}
	}
}

// lostKey records that the link of an end port is known to be gone.
func (c *Core) lostKey(p topo.PortID) {
	s := &c.mkeys.shown
	if !c.cfg.MKey.on() || !c.topo.IsEndPort(p) || p == c.own() || int(p) >= len(s.at) || s.at[p] == 0 {
		return
	}
	recent := c.millis()-(s.at[p]-1) <= uint32(lossTime/time.Millisecond)
	s.at[p] = 0
	if guid := c.topo.GUIDOf(p); recent && guid != 0 && c.keptKey(guid) {
		c.expose(guid, exposedKey)
	}
}

// forgetShown forgets what was shown behind, and to, a port that goes.
func (c *Core) forgetShown(p topo.PortID) {
	s := &c.mkeys.shown
	delete(s.to, p)
	if int(p) < len(s.at) {
		s.at[p] = 0
	}
}
