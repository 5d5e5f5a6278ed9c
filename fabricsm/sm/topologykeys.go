package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
)

// keysFollow moves the M_Keys of adapters that another revision has at another switch port: a recabled host, and every host
// of a switch that was replaced. The operator that approved the revision has decided where they belong. Without the move
// they would not answer there. A topology that is only observed moves nothing where devices have their keys by where they
// are seen.
func (c *Core) keysFollow(was, now *topospec.Spec, m topospec.Mode) {
	if !c.cfg.MKey.on() || c.keyPlaces() != PlacesDeclared && m != topospec.Enforce {
		return
	}
	var moves []MoveKey
	links := was.Revision().Links
	for i := range links {
		at, end := links[i].A, links[i].B
		own := was.DeviceByGUID(end.GUID)
		if own == topospec.None || was.Device(own).Kind == topospec.KindSwitch {
			continue
		}
		next := now.Belongs(end)
		if next.IsZero() || next == at {
			continue
		}
		for _, guid := range c.mkeys.book.At(keys.MKey, at.Place()) {
			if was.Other(own, guid) == topospec.None {
				moves = append(moves, MoveKey{GUID: guid, Place: next.Place()})
			}
		}
	}
	for i := range moves {
		c.moveKey(&moves[i])
	}
}

// keyBelongs reports whether the key of a port GUID may be that of the device which the declared topology has at a place.
// Where a revision has replaced a device, the key of the old one is not shown to the new one.
func (c *Core) keyBelongs(p topo.PortID, guid ib.GUID) bool {
	if !c.law.IsOn() || !c.topo.IsExternal(p) {
		return true
	}
	spec := c.law.Spec()
	_, peer := spec.LinkAt(spec.SlotOf(topospec.EndAt(c.topo.PlaceOf(p))))
	own := spec.DeviceByGUID(peer.GUID)
	return own == topospec.None || spec.Other(own, guid) == topospec.None
}
