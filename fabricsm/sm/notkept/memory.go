// Package notkept remembers which fields of PortInfo and SwitchInfo devices do not keep, so that a settled fabric gets no
// writes.
package notkept

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/topo"
)

// Device is what a field is remembered of that is not kept. The node GUID alone
// is not enough: a host that shows another's would speak for it.
type Device struct {
	GUID  ib.GUID
	Model Model    // new firmware is a new device
	Place ib.Place // of a host
}

// maxDevices bounds the devices remembered: a host may come back under ever new
// GUIDs.
const maxDevices = 4096

// Model is what NodeInfo says of the make of a device.
type Model struct {
	vendor, revision uint32
	id               uint16
	ports            uint8
}

const modelFormat = "%06x/%04x/%x/%d"

func (m Model) String() string {
	return fmt.Sprintf(modelFormat, m.vendor, m.id, m.revision, m.ports)
}

// ParseModel parses the form of String; any other text is the zero model.
func ParseModel(s string) (m Model) {
	if n, err := fmt.Sscanf(s, modelFormat, &m.vendor, &m.id, &m.revision, &m.ports); err != nil || n != 4 {
		return Model{}
	}
	return m
}

// DeviceAt returns the device that answers behind a port; topo.None is for our own node.
func DeviceAt(t *topo.Builder, ni *mad.NodeInfo, up topo.PortID) Device {
	d := Device{GUID: ni.NodeGUID, Model: Model{ni.VendorID, ni.Revision, ni.DeviceID, ni.NumPorts}}
	if ni.NodeType != ib.NodeSwitch && up != topo.None {
		d.Place = t.PlaceOf(up)
	}
	return d
}

// Memory is which fields devices do not keep. Use New.
type Memory struct{ fields map[Device]portset.Fields }

// New returns an empty memory.
func New() Memory { return Memory{make(map[Device]portset.Fields)} }

// Load takes the fields of a device that were saved.
func (m Memory) Load(d Device, fields portset.Fields) { m.fields[d] = fields }

// Of returns the fields that a device does not keep.
func (m Memory) Of(d Device) portset.Fields { return m.fields[d] }

// Set remembers the fields that a device does not keep. It reports whether there was room.
func (m Memory) Set(d Device, fields portset.Fields) bool {
	if _, ok := m.fields[d]; !ok && len(m.fields) >= maxDevices {
		return false
	}
	m.fields[d] = fields
	return true
}
