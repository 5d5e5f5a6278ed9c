package sm

import (
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// exposure is the progress of making a key worthless that another party has.
type exposure uint8

const (
	notExposed  exposure = iota
	exposedKey           // the device is on that key, or may be
	replacedKey          // it was given another; one with dual keys still obeys the first
)

// Marks of a FactExposed.
const (
	markShown    = "shown"
	markReplaced = "replaced"
)

// loadExposed takes a saved fact. A mark of a later version is read as the worse.
func (m *mkeys) loadExposed(f *Fact) {
	switch f.Mark {
	case "":
		delete(m.exposed, f.GUID)
	case markReplaced:
		m.exposed[f.GUID] = replacedKey
	default:
		m.exposed[f.GUID] = exposedKey
	}
}

// expose records the progress of replacing a key that another party has.
func (c *Core) expose(guid ib.GUID, to exposure) {
	if c.mkeys.exposed[guid] == to {
		return
	}
	f := Fact{Kind: FactExposed, GUID: guid}
	switch to {
	case exposedKey:
		f.Mark = markShown
	case replacedKey:
		f.Mark = markReplaced
	case notExposed:
	}
	if c.mkeys.exposed[guid] = to; to != exposedKey {
		delete(c.mkeys.shown.told, guid)
	}
	if to == notExposed {
		delete(c.mkeys.exposed, guid)
	}
	c.save(f)
	c.showKeyOf(guid)
}

// renewKeys goes on with all devices whose keys another party has. Otherwise those that answered before this subnet manager
// was master would wait for the audit.
func (c *Core) renewKeys() {
	for _, guid := range slices.Sorted(maps.Keys(c.mkeys.exposed)) {
		if p, here := c.byPort[guid]; here {
			if r := c.ring(p); r != nil {
				c.renewKey(p, r)
			}
		}
	}
}

// renewKey goes on with a device whose key another party has, once it is known which key it is on. The device gets another
// key, and is then made to drop the first. Otherwise it would obey the first until the next rotation.
func (c *Core) renewKey(p topo.PortID, r *keys.Ring) {
	guid := c.topo.GUIDOf(p)
	x := c.mkeys.exposed[guid]
	if x == notExposed || !c.verified(p) || !c.writing() || c.mkeys.releasing {
		return
	}
	rec := r.Record()
	switch {
	case x == exposedKey:
		if (r.Settled() || r.Open()) && c.planKey(r, guid) {
			c.expose(guid, replacedKey)
		}
	case !r.Settled(): // it is on its way
	case !rec.Previous.IsZero():
		r.Commit()
	default:
		c.expose(guid, notExposed)
	}
}

// findLapse reports a device on its key whose protection ended with its lease, and has the key replaced: each host could
// read it.
func (c *Core) findLapse(p topo.PortID, is *mad.PortInfo) {
	if is.MKeyProtectBits > 0 || is.MKey.IsZero() || !c.topo.IsEndPort(p) || !c.cfg.MKey.on() || c.mkeys.releasing {
		return
	}
	if r := c.ring(p); r != nil && r.Settled() {
		c.event(&ProtectionLapsed{GUID: c.topo.GUIDOf(p), Place: c.topo.PlaceOf(p)})
		if !c.cfg.Weakness.KeepsLapsed {
			c.expose(c.topo.GUIDOf(p), exposedKey)
		}
	}
}
