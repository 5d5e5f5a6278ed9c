package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/lanes"
	"portcullis/fabricsm/sm/pkeys"
	"portcullis/fabricsm/topo"
)

// The content of views about ports and switches besides topo.Fabric. It is written down when a view is made, and only for
// those that changed since the last one: a port changes several times while it comes up.

const (
	portInfoSize   = 64
	switchInfoSize = 20
)

// portShown is what views show of a port. It is immutable: views share it.
type portShown struct {
	info  [portInfoSize]byte // without M_Key
	lanes lanes.Shown
}

// shownDevices is what the last view showed of ports and switches.
type shownDevices struct {
	ports    topo.OwnPages[*portShown]            // by topo.PortID, nil: not read
	switches topo.OwnPages[*[switchInfoSize]byte] // by topo.NodeID, nil: no switch, or not read
	duePorts []topo.PortID                        // that changed since, each once
	dueNodes []topo.NodeID
	scratch  portShown
	recent   [4]*portShown // made last, to be shared: ports of a switch often show the same
	recentAt int
}

// kept returns a lasting copy of s, shared with a recent one that is equal.
func (d *shownDevices) kept(s *portShown) *portShown {
	for _, o := range d.recent {
		if o != nil && *o == *s {
			return o
		}
	}
	n := *s
	d.recent[d.recentAt] = &n
	d.recentAt = (d.recentAt + 1) % len(d.recent)
	return &n
}

// showPort marks a port for the next view to show again.
func (c *Core) showPort(p topo.PortID) {
	if pt := &c.ports[p]; !pt.due {
		pt.due = true
		c.devices.duePorts = append(c.devices.duePorts, p)
	}
}

// showSwitch marks SwitchInfo of a switch for the next view to show again.
func (c *Core) showSwitch(id topo.NodeID) {
	if n := &c.nodes[id]; !n.due {
		n.due = true
		c.devices.dueNodes = append(c.devices.dueNodes, id)
	}
}

// showDevices writes down what changed.
func (c *Core) showDevices(v *View) {
	d := &c.devices
	d.ports.Grow(c.topo.NumPorts())
	d.switches.Grow(c.topo.NumNodes())
	for _, p := range d.duePorts {
		c.ports[p].due = false
		is, was := c.portShown(p), d.ports.At(int32(p))
		if is == nil && was != nil {
			d.ports.Set(int32(p), nil)
		} else if is != nil && (was == nil || *is != *was) {
			d.ports.Set(int32(p), d.kept(is))
		}
	}
	for _, id := range d.dueNodes {
		n := &c.nodes[id]
		n.due = false
		if !n.alive || !n.sw.IsKnown() {
			d.switches.Set(int32(id), nil)
			continue
		}
		info := new([switchInfoSize]byte)
		c.encode(mad.Encode(info[:], n.sw.Info()))
		if was := d.switches.At(int32(id)); was == nil || *was != *info {
			d.switches.Set(int32(id), info)
		}
	}
	d.duePorts, d.dueNodes = again(d.duePorts), again(d.dueNodes)
	v.ports, v.switches = d.ports.Snapshot(), d.switches.Snapshot()
	v.lanes = c.lanes.View()
}

// portShown returns what is to be shown of a port, nil for one that was not read. It is valid until the next call.
func (c *Core) portShown(p topo.PortID) *portShown {
	pt := &c.ports[p]
	if !pt.known || !c.nodes[pt.node].alive {
		return nil
	}
	s := &c.devices.scratch
	*s = portShown{}
	c.encode(mad.Encode(s.info[:], &pt.info))
	clear(s.info[:8]) // M_Key
	s.lanes = c.lanes.Show(p)
	return s
}

// PortInfo returns PortInfo of a port as the device last showed it, in wire format but with an M_Key of 0: nil if it was
// not read. It must not be written to.
func (v *View) PortInfo(p topo.PortID) *[portInfoSize]byte {
	if s := v.port(p); s != nil {
		return &s.info
	}
	return nil
}

func (v *View) port(p topo.PortID) *portShown {
	if p < 0 || int(p) >= v.ports.Len() {
		return nil
	}
	return v.ports.At(int32(p))
}

// SwitchInfo returns SwitchInfo of a switch as it last showed it, in wire format: nil if it was not read. It must not be
// written to.
func (v *View) SwitchInfo(id topo.NodeID) *[switchInfoSize]byte {
	if id < 0 || int(id) >= v.switches.Len() {
		return nil
	}
	return v.switches.At(int32(id))
}

// SLtoVL returns the virtual lane for each service level of packets that leave by a port and came in by another of its
// switch; in is 0 for end ports. It is known only for ports whose tables this Subnet Manager programs, once they are right.
// The tables of others were not read.
func (v *View) SLtoVL(out topo.PortID, in ib.PortNum) (vl [16]ib.VL, known bool) {
	if s := v.port(out); s != nil {
		return v.lanes.Map(s.lanes, v.Fabric, v.Tables, out, in)
	}
	return vl, false
}

// VLArbitration returns half of an arbitration table of a port. It is known only for ports whose tables this Subnet Manager
// programs, once they are right.
func (v *View) VLArbitration(p topo.PortID, half mad.VLArbHalf) (t mad.VLArbitration, known bool) {
	s := v.port(p)
	if s == nil || half < mad.VLArbLow0 || half > mad.VLArbHigh32 {
		return t, false
	}
	var room mad.PortInfo
	if mad.Decode(s.info[:], &room) != nil {
		return t, false
	}
	fp := v.Fabric.Port(p)
	return v.lanes.Half(s.lanes, lanes.KindOf(v.Fabric.Node(fp.Node).Type, fp.Num), &room, half)
}

// LeavesSLtoVL reports whether this Subnet Manager neither reads nor writes the SL-to-VL tables of a port: nothing needs
// lanes, the port has no link, or its device cannot be programmed.
func (v *View) LeavesSLtoVL(p topo.PortID) bool {
	s := v.port(p)
	return s != nil && v.lanes.LeavesMap(s.lanes, v.Fabric.LinkUp(p) != topo.None)
}

// LeavesVLArbitration reports half of an arbitration table that this Subnet Manager
// neither reads nor writes, or that the port has no room for.
func (v *View) LeavesVLArbitration(p topo.PortID, half mad.VLArbHalf) bool {
	s := v.port(p)
	if s == nil || half < mad.VLArbLow0 || half > mad.VLArbHigh32 {
		return false
	}
	var room mad.PortInfo
	if mad.Decode(s.info[:], &room) != nil {
		return false
	}
	return v.lanes.LeavesHalf(s.lanes, v.Fabric.LinkUp(p) != topo.None, &room, half)
}

// PKeyBlocks returns how many blocks of the P_Key table of a port are managed, 0 if none is.
func (v *View) PKeyBlocks(p topo.PortID) int {
	return v.pkeyTable(p).Blocks()
}

// PKeyBlock returns a block of the P_Key table of a port, empty entries included: nil if it was neither read nor written.
// It must not be written to.
func (v *View) PKeyBlock(p topo.PortID, block int) []ib.PKey {
	return v.pkeyTable(p).Block(block)
}

func (v *View) pkeyTable(p topo.PortID) *pkeys.Table {
	if p < 0 || int(p) >= v.pkeys.Len() {
		return nil
	}
	return v.pkeys.At(int32(p))
}
