package keymgr

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// cabling knows which switches are neighbours, and by that which node keys a switch should have.
type cabling struct {
	ports   Fabric
	book    *keys.Book
	devices *roster
	fabric  *topo.Fabric // as of the newest view
}

// fresh begins with a switch from scratch.
func (c *cabling) fresh(d *device) {
	ports := int(c.fabric.NodeOf(portID(d.port)).NumPorts) + 1
	blocks := min((ports+mad.N2NNeighborsPerBlock-1)/mad.N2NNeighborsPerBlock, maxBlocks)
	d.node = &node{ring: c.book.Ring(keys.N2NNodeKey, d.guid), blocks: make([]*mad.N2NNeighborsInfo, blocks)}
	if d.node.ring != nil {
		d.node.ring.Again()
	}
}

// block returns the wanted block of NeighborsInfo. The record of port 0 has the switch itself. Others have the switch that
// is cabled there, if it is at its place and has a node key.
func (c *cabling) block(dev int32, b int, own keys.Key) (info mad.N2NNeighborsInfo) {
	d := &c.devices.devices[dev]
	f := c.fabric
	tn := f.NodeOf(portID(d.port))
	for i := range info.Neighbor {
		num := b*mad.N2NNeighborsPerBlock + i
		switch {
		case num == 0:
			info.Neighbor[i] = mad.N2NNeighbor{NodeType: ib.NodeSwitch, LID: d.lid, Key: own.M()}
		case num <= int(tn.NumPorts):
			info.Neighbor[i] = c.neighbor(f.Port(portID(d.port) + topo.PortID(num)).Peer)
		}
	}
	return info
}

// neighbor returns the record of the switch that has a port.
func (c *cabling) neighbor(peer topo.PortID) mad.N2NNeighbor {
	dev := c.neighborOf(peer)
	if dev < 0 || !c.devices.devices[dev].up {
		return mad.N2NNeighbor{}
	}
	d := &c.devices.devices[dev]
	key := current(c.book.Ring(keys.N2NNodeKey, d.guid))
	kp, ok := c.ports.KeyPort(portID(d.port))
	if !ok || !kp.Verified || key.IsZero() {
		return mad.N2NNeighbor{}
	}
	return mad.N2NNeighbor{NodeType: ib.NodeSwitch, LID: d.lid, Key: key.M()}
}

// neighborOf returns the switch that has a port, -1 for none.
func (c *cabling) neighborOf(peer topo.PortID) int32 {
	if peer == topo.None {
		return -1
	}
	tn := c.fabric.NodeOf(peer)
	if tn.Type != ib.NodeSwitch {
		return -1
	}
	return c.devices.deviceOf(tn.FirstPort)
}

// eachNeighbor calls f with the switches that a switch is cabled to, one that has
// several cables several times, until f says no.
func (c *cabling) eachNeighbor(dev int32, f func(int32) bool) {
	first := portID(c.devices.devices[dev].port)
	tn := c.fabric.NodeOf(first)
	for num := 1; num <= int(tn.NumPorts); num++ {
		if far := c.neighborOf(c.fabric.Port(first + topo.PortID(num)).Peer); far >= 0 && !f(far) {
			return
		}
	}
}

// undecided reports whether the node key of some neighbour is not clear yet. Each switch decides that for itself, so there
// is no cycle of waits.
func (c *cabling) undecided(dev int32) (wait bool) {
	c.eachNeighbor(dev, func(far int32) bool {
		d := &c.devices.devices[far]
		wait = d.up && d.agents[n2n].stage == working && d.node != nil && !d.node.decided
		return !wait
	})
	return wait
}

// placed is the place of a device for reports of failures.
func (c *cabling) placed(d *device) *sm.KeyPort {
	kp, _ := c.ports.KeyPort(portID(d.port))
	return &kp
}
