package derive

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// carry takes from the revision in force what the inventory has no room for.
func (d *deriver) carry() {
	if d.active == nil {
		return
	}
	r := d.active.Revision()
	for i := range r.Devices {
		if dev := &r.Devices[i]; d.carried(dev) {
			if d.names[dev.Name] {
				continue // a device of the inventory has its name: it is another one now
			}
			d.known[dev.GUID] = len(d.r.Devices)
			d.r.Devices = append(d.r.Devices, *dev)
		}
	}
	for i := range r.Links {
		l := &r.Links[i]
		if l.B.IsZero() && !d.free(l.A) || !l.B.IsZero() && (!d.free(l.A) || !d.free(l.B) || !d.beyond(l.A.GUID) && !d.beyond(l.B.GUID)) {
			continue
		}
		d.taken[l.A], d.taken[l.B] = true, !l.B.IsZero()
		d.r.Links = append(d.r.Links, *l)
	}
}

// carried reports whether a device of the revision in force stays though the inventory does not have it.
func (d *deriver) carried(dev *topospec.Device) bool {
	if _, known := d.known[dev.GUID]; known {
		return false
	}
	switch {
	case dev.Stock == topospec.Retired, dev.Kind == topospec.KindRouter:
		return true
	case dev.Kind == topospec.KindAN:
		home := d.active.Home(d.active.DeviceByGUID(dev.GUID))
		_, known := d.known[home.GUID]
		return known && d.free(home)
	default:
		return false
	}
}

// free reports whether a port of a device in use has no link yet.
func (d *deriver) free(e topospec.End) bool {
	i, known := d.known[e.GUID]
	return known && !d.taken[e] && d.r.Devices[i].Stock == topospec.InUse
}

// beyond reports whether a device is of a kind that the inventory has no room for.
func (d *deriver) beyond(g ib.GUID) bool {
	kind := d.r.Devices[d.known[g]].Kind
	return kind == topospec.KindRouter || kind == topospec.KindAN
}

// reserve lists the ports of switches that have no cable: they must be dark.
func (d *deriver) reserve() {
	for i := range d.c.Switches {
		w := &d.c.Switches[i]
		if w.Spare {
			continue
		}
		for p := ib.PortNum(1); p <= w.LastPort(); p++ {
			if e := (topospec.End{GUID: w.GUID, Port: p}); !d.taken[e] {
				d.r.Links = append(d.r.Links, topospec.Link{A: e, State: topospec.Reserved})
			}
		}
	}
}
