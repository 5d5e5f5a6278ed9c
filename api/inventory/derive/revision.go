package derive

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/api/inventory"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
)

// Revision makes a draft of an inventory. active is the revision in force, nil without one; fabric names the fabric where
// active does not. All problems are reported together: a switch that is missing, a name that two devices have.
func Revision(c *inventory.Contents, active *topospec.Spec, fabric string) (*topospec.Revision, error) {
	d := &deriver{
		Problems: topospec.Problems{Source: "inventory"}, c: c, r: &topospec.Revision{Fabric: fabric},
		known: map[ib.GUID]int{}, taken: map[topospec.End]bool{}, racks: map[string]*inventory.Rack{}, names: map[string]bool{},
	}
	if active != nil {
		d.active = active
		d.r.Fabric, d.r.Policy = active.Revision().Fabric, active.Revision().Clone().Policy
	}
	for i := range c.Racks {
		d.racks[c.Racks[i].ID] = &c.Racks[i]
	}
	if len(c.Switches) == 0 {
		d.Add(0, "", "it has no switches", "import switches and the cables between them")
	}
	d.switches()
	d.hosts()
	d.adapters()
	d.trunks()
	d.carry()
	d.reserve()
	if err := d.Err(); err != nil {
		return nil, err
	}
	d.r.Normalize()
	return d.r, d.r.Validate("inventory")
}

// deriver is a revision that is being made.
type deriver struct {
	topospec.Problems
	c      *inventory.Contents
	active *topospec.Spec // nil: none
	r      *topospec.Revision
	known  map[ib.GUID]int       // index of a device
	taken  map[topospec.End]bool // ports with a link
	racks  map[string]*inventory.Rack
	names  map[string]bool
}

// add adds a device with its place. A name that another device has is left out.
func (d *deriver) add(dev topospec.Device, p inventory.Position) {
	if _, twice := d.known[dev.GUID]; twice {
		return // the inventory has each GUID once
	}
	dev.Rack, dev.U = p.Rack, uint8(p.Unit)
	dev.Slot = cmp.Or(dev.Slot, p.Slot)
	if r := d.racks[p.Rack]; r != nil {
		dev.Site, dev.Room = r.Site, r.Room
	}
	if d.names[dev.Name] {
		dev.Name = ""
	}
	d.names[dev.Name] = dev.Name != ""
	d.known[dev.GUID] = len(d.r.Devices)
	d.r.Devices = append(d.r.Devices, dev)
}

// link adds a link with the state that the revision in force has for it.
func (d *deriver) link(l topospec.Link) {
	if was := d.was(l.A, l.B); was != nil {
		l.State, l.Since, l.Reason = was.State, was.Since, was.Reason
		l.Cable.Part, l.Cable.Length = was.Cable.Part, was.Cable.Length
		if was.Class != topospec.ClassAny {
			l.Class = was.Class
		}
	}
	d.taken[l.A], d.taken[l.B] = true, true
	d.r.Links = append(d.r.Links, l)
}

// was returns the link between two ports in the revision in force, nil without one.
func (d *deriver) was(a, b topospec.End) *topospec.Link {
	if d.active == nil {
		return nil
	}
	if l, peer := d.active.LinkAt(d.active.SlotOf(a)); l != nil && peer == b {
		return l
	}
	return nil
}

func stock(spare bool) topospec.Stock {
	if spare {
		return topospec.Spare
	}
	return topospec.InUse
}

var roles = map[inventory.Role]topospec.Role{
	inventory.RoleLeaf: topospec.RoleLeaf, inventory.RoleSpine: topospec.RoleSpine, inventory.RoleCore: topospec.RoleCore,
	inventory.RoleCompute: topospec.RoleCompute, inventory.RoleSM: topospec.RoleSM, inventory.RoleService: topospec.RoleService,
}

func (d *deriver) switches() {
	for i := range d.c.Switches {
		w := &d.c.Switches[i]
		dev := topospec.Device{
			GUID: w.GUID, Kind: topospec.KindSwitch, Model: w.Model, Serial: w.Serial, Name: w.ID, Role: roles[w.Role],
			Stock: stock(w.Spare), SystemImage: w.SystemImageGUID, Ports: uint8(w.LastPort()),
		}
		inside := aggregationPort(w)
		if w.AggregationGUID == 0 || inside == 0 || w.Spare {
			if d.carriesAggregation(w.GUID) {
				dev.Ports = max(dev.Ports, uint8(inside))
			}
			d.add(dev, w.Position)
			continue
		}
		dev.Ports = max(dev.Ports, uint8(inside))
		d.add(dev, w.Position)
		d.add(topospec.Device{GUID: w.AggregationGUID, Kind: topospec.KindAN, Name: w.ID + " aggregation node", Ports: 1}, w.Position)
		d.link(topospec.Link{A: topospec.End{GUID: w.GUID, Port: inside}, B: topospec.End{GUID: w.AggregationGUID, Port: 1}, Class: topospec.ClassInternal})
	}
}

// aggregationPort returns the port behind which the aggregation node of a switch is, 0 if it is not known.
func aggregationPort(w *inventory.Switch) ib.PortNum {
	if m, _ := devicemodel.Find(w.Model); m.Aggregation != 0 {
		return m.Aggregation
	}
	if last := w.LastPort(); last != 0 && last < ib.NoPort-1 {
		return last + 1
	}
	return 0
}

// carriesAggregation reports whether the revision in force has an aggregation node behind a switch.
func (d *deriver) carriesAggregation(g ib.GUID) bool {
	if d.active == nil {
		return false
	}
	id := d.active.DeviceByGUID(g)
	if id == topospec.None {
		return false
	}
	for _, slot := range d.active.PortsOf(id) {
		if _, peer := d.active.LinkAt(slot); d.kindInForce(peer.GUID) == topospec.KindAN {
			return true
		}
	}
	return false
}

func (d *deriver) kindInForce(g ib.GUID) topospec.Kind {
	if id := d.active.DeviceByGUID(g); id != topospec.None {
		return d.active.Device(id).Kind
	}
	return topospec.KindAny
}

func (d *deriver) hosts() {
	for i := range d.c.Hosts {
		h := &d.c.Hosts[i]
		cabled := slices.ContainsFunc(h.Ports(), func(p inventory.Port) bool { return !p.Cable.IsZero() })
		for j := range h.HCAs {
			a := &h.HCAs[j]
			dev := adapter(a, cmp.Or(d.nameInForce(a.NodeGUID, h.ID), fmt.Sprintf("%s hca-%d", h.ID, j+1)))
			dev.Host, dev.Role, dev.Stock = h.ID, cmp.Or(roles[h.Role], topospec.RoleCompute), stock(h.Spare && !cabled)
			d.add(dev, h.Position)
			for _, p := range a.Ports {
				d.cable(h, a, &p)
			}
		}
	}
}

// adapter returns an adapter as a device.
func adapter(a *inventory.HCA, name string) topospec.Device {
	dev := topospec.Device{
		GUID: a.NodeGUID, Kind: topospec.KindHCA, Name: name, Model: a.Model, Serial: a.Serial, PSID: a.PSID, Slot: a.PCISlot, Rail: a.Rail,
		SystemImage: a.SystemImageGUID,
	}
	for i, p := range a.Ports {
		dev.Ports = max(dev.Ports, uint8(p.Num))
		if int(p.Num) == i+1 {
			dev.PortGUIDs = append(dev.PortGUIDs, p.GUID)
		}
	}
	if len(dev.PortGUIDs) != int(dev.Ports) {
		dev.PortGUIDs = nil // a list of port GUIDs begins with port 1 and has no gap
	}
	return dev
}

// nameInForce returns the name that the revision in force has for an adapter of a host, "" without one.
func (d *deriver) nameInForce(g ib.GUID, host string) string {
	if d.active == nil {
		return ""
	}
	if id := d.active.DeviceByGUID(g); id != topospec.None && d.active.Device(id).Host == host {
		return d.active.Device(id).Name
	}
	return ""
}

func (d *deriver) cable(h *inventory.Host, a *inventory.HCA, p *inventory.Port) {
	if p.Cable.IsZero() {
		return
	}
	if _, known := d.known[p.Cable.Switch]; !known {
		d.Add(0, fmt.Sprintf("cable of host %s port GUID %v", h.ID, p.GUID), fmt.Sprintf("it leads to %v, a switch that inventory does not have", p.Cable), "import the switch, or correct the cable")
		return
	}
	class := topospec.ClassHost
	if h.Role == inventory.RoleSM || h.Role == inventory.RoleService {
		class = topospec.ClassService
	}
	d.link(topospec.Link{A: topospec.EndAt(p.Cable), B: topospec.End{GUID: a.NodeGUID, Port: p.Num}, Class: class, Cable: topospec.Cable{Serial: p.Label}})
}

// adapters adds those in stock.
func (d *deriver) adapters() {
	for i := range d.c.Adapters {
		a := &d.c.Adapters[i]
		dev := adapter(&a.HCA, "")
		dev.Stock, dev.Room = topospec.Spare, a.Location
		d.add(dev, inventory.Position{})
	}
}

func (d *deriver) trunks() {
	for i := range d.c.Trunks {
		t := &d.c.Trunks[i]
		d.link(topospec.Link{A: topospec.EndAt(t.A), B: topospec.EndAt(t.B), Class: topospec.ClassTrunk, Cable: topospec.Cable{Serial: t.Label}})
	}
}
