package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// MoveKey says that an operator has verified a device at a place: its M_Key, which was assigned at another place, may be
// shown there. A device that holds a key does not even report its identity unless it is shown that key. So the place may be
// one at which no device is seen.
type MoveKey struct {
	GUID  ib.GUID  // port GUID of a CA or router
	Place ib.Place // zero: where it is seen now, unless that is disputed
}

func (*MoveKey) input() {}

// moveKey binds the key of a device to another place, and probes that place.
func (c *Core) moveKey(in *MoveKey) {
	if !c.cfg.MKey.on() || c.mkeys.book.Ring(keys.MKey, in.GUID) == nil {
		return
	}
	p, seen := c.byPort[in.GUID]
	at := in.Place
	if at.IsZero() && seen && c.verified(p) {
		at = c.keyedAt(p)
	}
	if at.IsZero() {
		return
	}
	c.mkeys.book.Move(keys.MKey, in.GUID, at)
	c.saveKey(c.mkeys.book.Ring(keys.MKey, in.GUID))
	c.faults.Clear(fault.Key{Kind: fault.NoKey, GUID: in.GUID})
	c.event(&KeyMoved{GUID: in.GUID, Place: at})
	c.disturb()
	if seen {
		c.showKey(p)
		c.q.MarkPort(work.Info, p)
		c.q.MarkPort(work.Set, p)
		if peer := c.topo.Peer(p); peer != topo.None {
			c.q.MarkPort(work.Set, peer)
		}
	}
	if sp := c.topo.SwitchPortAt(at); sp != topo.None && c.topo.Peer(sp) == topo.None {
		delete(c.failures, work.OnPort(work.Probe, sp))
		c.ports[sp].pause = 0
		c.q.MarkPort(work.Probe, sp)
	}
}
