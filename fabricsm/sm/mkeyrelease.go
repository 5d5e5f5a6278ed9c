package sm

import (
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// ReleaseKeys removes the M_Keys of all devices, so that another subnet manager can take over a fabric that nothing locks.
// A device that cannot be asked keeps its key, which stays saved; KeysReleased says how many those are. No device gets a
// key any more, not after a restart either, until ResumeKeys. A second ReleaseKeys reports again how it ended.
type ReleaseKeys struct{}

// ResumeKeys has devices get keys again after ReleaseKeys.
type ResumeKeys struct{}

func (*ReleaseKeys) input() {}
func (*ResumeKeys) input()  {}

// releaseKeys begins to remove all keys.
func (c *Core) releaseKeys() {
	if !c.cfg.MKey.on() {
		return
	}
	c.disturb()
	c.mkeys.released = false
	if c.mkeys.releasing {
		return
	}
	c.mkeys.releasing = true
	c.save(Fact{Kind: FactReleased, Mark: "released"})
	c.touchKeyed()
}

// resumeKeys begins to assign keys again.
func (c *Core) resumeKeys() {
	if !c.cfg.MKey.on() || !c.mkeys.releasing || c.cfg.MKey.Release {
		return
	}
	c.disturb()
	c.mkeys.releasing, c.mkeys.released = false, false
	c.save(Fact{Kind: FactReleased})
	c.event(&KeysResumed{})
	c.touchKeyed()
	c.rotateSoon()
}

// touchKeyed looks at all end ports again.
func (c *Core) touchKeyed() {
	for p := range c.ports {
		if id := topo.PortID(p); c.nodes[c.ports[p].node].alive && c.topo.IsEndPort(id) && c.topo.GUIDOf(id) != 0 {
			c.q.MarkPort(work.Set, id)
		}
	}
}

// wantNoKey completes a PortInfo that takes the key of an end port away.
func (c *Core) wantNoKey(p topo.PortID, w *mad.PortInfo) (differs, may bool) {
	r := c.ring(p)
	if r == nil || len(c.tryOf(r)) == 0 {
		return false, true
	}
	k, known := r.Now(c.keyedAt(p), c.verified(p))
	if !known {
		if r.Next(c.keyedAt(p), c.verified(p)).Do == keys.Ask {
			c.q.MarkPort(work.Info, p)
		}
		return false, false
	}
	w.MKey, w.MKeyProtectBits, w.MKeyLeasePeriod = keys.Key{}.M(), 0, 0
	if k.IsZero() {
		c.keyReleased(p)
		return false, true
	}
	c.ports[p].setKey = true
	return true, true
}

// keyReleased destroys the key of a device that was seen to hold none.
func (c *Core) keyReleased(p topo.PortID) {
	if r := c.ring(p); r != nil && len(c.tryOf(r)) > 0 {
		c.mkeys.book.Retire(keys.MKey, c.topo.GUIDOf(p))
		c.saveKey(r)
	}
}

// tellReleased reports, once nothing is left to do, how many keys were removed and kept.
func (c *Core) tellReleased() {
	if !c.mkeys.releasing || c.mkeys.released {
		return
	}
	c.mkeys.released = true
	e := &KeysReleased{}
	for _, r := range c.mkeys.book.Records() {
		switch {
		case r.Retired:
			e.Released++
		case len(r.Try()) > 0:
			e.Kept++
		}
	}
	c.event(e)
}
