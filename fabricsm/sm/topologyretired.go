package sm

import (
	"maps"
	"slices"

	"portcullis/fabricsm/topo"
)

// goneWithSwitch reports whether a membership is at a switch that was retired and is not part of the fabric. No read can
// show that its port is without the P_Key, and no packet reaches the fabric through it.
func (c *Core) goneWithSwitch(ms *membership) bool {
	return c.topo.NodeByGUID(ms.Place.Switch) == topo.None && c.law.IsRetired(ms.Place.Switch)
}

// goneWithHCA reports whether a membership is of an adapter that was retired and is not part of the fabric.
func (c *Core) goneWithHCA(ms *membership) bool {
	_, seen := c.byPort[ms.GUID]
	return !seen && c.law.IsRetired(ms.GUID)
}

// judgeRetired finds the removals that a revision proves by the devices it retires.
func (c *Core) judgeRetired() {
	for _, guid := range slices.Sorted(maps.Keys(c.members.byGUID)) {
		c.judgeLeaving(guid)
	}
}
