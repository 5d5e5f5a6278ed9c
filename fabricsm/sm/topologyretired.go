package sm

import (
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
)

// retired reports whether a GUID, of a node or a port, is of a device that the declared topology has retired and
// enforcement keeps out wherever it is shown.
func (c *Core) retired(guid ib.GUID) bool {
	if !c.law.Enforces() {
		return false
	}
	spec := c.law.Spec()
	id := spec.Other(topospec.None, guid)
	return id != topospec.None && spec.Device(id).Stock == topospec.Retired
}

// goneWithSwitch reports whether a membership is at a switch that was retired and is not part of the fabric. No read can
// show that its port is without the P_Key, and no packet reaches the fabric through it.
func (c *Core) goneWithSwitch(ms *membership) bool {
	return c.topo.NodeByGUID(ms.Place.Switch) == topo.None && c.retired(ms.Place.Switch)
}

// goneWithHCA reports whether a membership is of an adapter that was retired and is not part of the fabric.
func (c *Core) goneWithHCA(ms *membership) bool {
	_, seen := c.byPort[ms.GUID]
	return !seen && c.retired(ms.GUID)
}

// judgeRetired finds the removals that a revision proves by the devices it retires.
func (c *Core) judgeRetired() {
	for _, guid := range slices.Sorted(maps.Keys(c.members.byGUID)) {
		c.judgeLeaving(guid)
	}
}
