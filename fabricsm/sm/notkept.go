package sm

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/topo"
)

// device is what a field is remembered of that is not kept. The node GUID alone
// is not enough: a host that shows another's would speak for it.
type device struct {
	guid  ib.GUID
	model model    // new firmware is a new device
	place ib.Place // of a host
}

// maxNotKept bounds the devices remembered: a host may come back under ever new
// GUIDs.
const maxNotKept = 4096

// model is what NodeInfo says of the make of a device.
type model struct {
	vendor, revision uint32
	id               uint16
	ports            uint8
}

const modelFormat = "%06x/%04x/%x/%d"

func (m model) String() string {
	return fmt.Sprintf(modelFormat, m.vendor, m.id, m.revision, m.ports)
}

// parseModel parses the form of String; any other text is the zero model.
func parseModel(s string) (m model) {
	if n, err := fmt.Sscanf(s, modelFormat, &m.vendor, &m.id, &m.revision, &m.ports); err != nil || n != 4 {
		return model{}
	}
	return m
}

// deviceAt returns the device that answers behind a port; topo.None is for our own node.
func deviceAt(t *topo.Builder, ni *mad.NodeInfo, up topo.PortID) device {
	d := device{guid: ni.NodeGUID, model: model{ni.VendorID, ni.Revision, ni.DeviceID, ni.NumPorts}}
	if ni.NodeType != ib.NodeSwitch && up != topo.None {
		d.place = t.PlaceOf(up)
	}
	return d
}

// learn remembers which fields a device does not keep, so that a settled fabric
// gets no writes.
func (c *Core) learn(id topo.NodeID, tried, missed PortFields) {
	n := &c.nodes[id]
	now := portset.Learn(n.notKept, tried, missed)
	if now == n.notKept {
		return
	}
	if fresh := now &^ n.notKept; fresh != 0 {
		c.event(&FieldsNotKept{GUID: n.device.guid, Fields: fresh})
	}
	n.notKept = now
	if _, ok := c.notKept[n.device]; !ok && len(c.notKept) >= maxNotKept {
		return
	}
	c.notKept[n.device] = now
	c.save(Fact{Kind: FactNotKept, GUID: n.device.guid, Model: n.device.model.String(), Place: n.device.place, NotKept: now})
}
