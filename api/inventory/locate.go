package inventory

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
)

// Locator returns the locations of devices and ports in words, for an operator on site.
type Locator struct {
	switches map[ib.GUID]*Switch
	racks    map[string]*Rack
}

// Locator returns a Locator of c. It is valid while c is not changed.
func (c *Contents) Locator() *Locator {
	l := &Locator{switches: make(map[ib.GUID]*Switch, len(c.Switches)), racks: make(map[string]*Rack, len(c.Racks))}
	for i := range c.Switches {
		l.switches[c.Switches[i].GUID] = &c.Switches[i]
	}
	for i := range c.Racks {
		l.racks[c.Racks[i].ID] = &c.Racks[i]
	}
	return l
}

// and returns l with the switches of c that l does not have.
func (l *Locator) and(c *Contents) *Locator {
	for i := range c.Switches {
		if g := c.Switches[i].GUID; l.switches[g] == nil {
			l.switches[g] = &c.Switches[i]
		}
	}
	return l
}

// Switch returns the switch with a GUID, nil if inventory has none.
func (l *Locator) Switch(g ib.GUID) *Switch { return l.switches[g] }

// Port returns the location of a switch port, such as "rack r12 U20 leaf-1 port 7 (4/1)". It names a switch that inventory
// does not have by its GUID.
func (l *Locator) Port(p ib.Place) string {
	s := l.switches[p.Switch]
	if s == nil {
		return fmt.Sprintf("switch %v port %d", p.Switch, p.Port)
	}
	d := l.device(s.ID, s.Position)
	d.Model = s.Model
	return d.Where(p.Port, devicemodel.Label)
}

// Device returns the location of a device with a name, such as "rack r12 U3 compute-01".
func (l *Locator) Device(name string, p Position) string { return l.device(name, p).Where(0, nil) }

// Trunk returns both ends of a cable in words.
func (l *Locator) Trunk(t *Trunk) string { return l.Port(t.A) + " ↔ " + l.Port(t.B) }

func (l *Locator) device(name string, p Position) *topospec.Device {
	d := &topospec.Device{Name: name, Rack: p.Rack, U: uint8(p.Unit), Slot: p.Slot}
	if r := l.racks[p.Rack]; r != nil {
		d.Site, d.Room = r.Site, r.Room
	}
	return d
}

// place returns a switch port as GUID and number, and its location if inventory has the switch.
func (l *Locator) place(p ib.Place) string {
	if l == nil || l.switches[p.Switch] == nil {
		return p.String()
	}
	return fmt.Sprintf("%v (%s)", p, l.Port(p))
}
