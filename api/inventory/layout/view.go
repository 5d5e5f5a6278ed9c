package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"portcullis/api/inventory"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// view is an inventory and what is counted in it.
type view struct {
	c       *inventory.Contents
	where   *inventory.Locator
	sites   map[string]string
	racks   map[string]*held
	cabled  map[ib.GUID]int // cables by switch
	rackOf  map[ib.GUID]string
	hostsAt map[string]string // racks of hosts
}

// held counts what is in a rack.
type held struct{ switches, hosts int }

func newView(c *inventory.Contents) *view {
	v := &view{
		c: c, where: c.Locator(), sites: map[string]string{}, racks: map[string]*held{}, cabled: map[ib.GUID]int{},
		rackOf: map[ib.GUID]string{}, hostsAt: map[string]string{},
	}
	for i := range c.Sites {
		v.sites[c.Sites[i].ID] = c.Sites[i].Name
	}
	for i := range c.Racks {
		v.racks[c.Racks[i].ID] = &held{}
	}
	for i := range c.Switches {
		w := &c.Switches[i]
		v.rackOf[w.GUID] = w.Rack
		if h := v.racks[w.Rack]; h != nil {
			h.switches++
		}
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		v.hostsAt[h.ID] = h.Rack
		if r := v.racks[h.Rack]; r != nil {
			r.hosts++
		}
		for _, p := range h.Ports() {
			v.cabled[p.Cable.Switch]++
		}
	}
	for i := range c.Trunks {
		v.cabled[c.Trunks[i].A.Switch]++
		v.cabled[c.Trunks[i].B.Switch]++
	}
	return v
}

func (v *view) rack(r *inventory.Rack) v1.Rack {
	h := v.racks[r.ID]
	return v1.Rack{ID: r.ID, Site: r.Site, SiteName: v.sites[r.Site], Room: r.Room, Units: int(r.Units), Switches: h.switches, Hosts: h.hosts}
}

// devices lists what stands in a rack, from the top to the bottom.
func (v *view) devices(rack string) []v1.RackDevice {
	out := []v1.RackDevice{}
	add := func(d v1.RackDevice, p inventory.Position) {
		if p.Rack == rack {
			d.Unit, d.Height, d.Slot = int(p.Unit), int(p.Height), p.Slot
			out = append(out, d)
		}
	}
	for i := range v.c.Switches {
		w := &v.c.Switches[i]
		add(v1.RackDevice{Kind: "switch", ID: w.ID, Model: w.Model, Role: string(w.Role), Spare: w.Spare, Cables: v.cabled[w.GUID]}, w.Position)
	}
	for i := range v.c.Hosts {
		h := &v.c.Hosts[i]
		cables := 0
		for _, p := range h.Ports() {
			if !p.Cable.IsZero() {
				cables++
			}
		}
		add(v1.RackDevice{Kind: "host", ID: h.ID, Role: string(h.Role), Spare: h.Spare, Cables: cables}, h.Position)
	}
	slices.SortStableFunc(out, func(a, b v1.RackDevice) int { return cmp.Or(cmp.Compare(b.Unit, a.Unit), cmp.Compare(a.Slot, b.Slot)) })
	return out
}

func (v *view) device(w *inventory.Switch) v1.Switch {
	return v1.Switch{
		ID: w.ID, GUID: w.GUID, SystemImageGUID: w.SystemImageGUID, AggregationGUID: w.AggregationGUID, Model: w.Model, Serial: w.Serial,
		Role: string(w.Role), Rack: w.Rack, Where: v.where.Device(w.ID, w.Position), Ports: int(w.LastPort()), Cables: v.cabled[w.GUID], Spare: w.Spare,
	}
}

// find returns the switch with a name or a GUID.
func (v *view) find(id string) (*inventory.Switch, error) {
	guid, _ := ib.ParseGUID(id)
	for i := range v.c.Switches {
		if w := &v.c.Switches[i]; w.ID == id || w.GUID == guid {
			return w, nil
		}
	}
	return nil, refusal.New(refusal.NotFound, "switch_unknown", "portcullis inventory show switches", "no switch %q in inventory", refusal.Clip(id))
}

// cables lists all cables by their ends A.
func (v *view) cables() []v1.InventoryCable {
	out := []v1.InventoryCable{}
	for i := range v.c.Hosts {
		h := &v.c.Hosts[i]
		at := v.where.Device(h.ID, h.Position)
		for j := range h.HCAs {
			a := &h.HCAs[j]
			for _, p := range a.Ports {
				if p.Cable.IsZero() {
					continue
				}
				out = append(out, v1.InventoryCable{
					PlaceA: p.Cable, A: v.where.Port(p.Cable), B: fmt.Sprintf("%s %s port %d", at, adapter(a), p.Num), Host: h.ID, GUID: p.GUID, Label: p.Label,
				})
			}
		}
	}
	for i := range v.c.Trunks {
		t := &v.c.Trunks[i]
		out = append(out, v1.InventoryCable{PlaceA: t.A, A: v.where.Port(t.A), PlaceB: t.B, B: v.where.Port(t.B), Label: t.Label})
	}
	slices.SortFunc(out, func(a, b v1.InventoryCable) int { return strings.Compare(cableKey(&a), cableKey(&b)) })
	return out
}

// adapter returns an adapter of a host in words: its slot if that is declared, and its GUID.
func adapter(a *inventory.HCA) string {
	if a.PCISlot != "" {
		return fmt.Sprintf("slot %s adapter %v", a.PCISlot, a.NodeGUID)
	}
	return fmt.Sprintf("adapter %v", a.NodeGUID)
}

func cableKey(c *v1.InventoryCable) string {
	return fmt.Sprintf("%v/%03d", c.PlaceA.Switch, c.PlaceA.Port)
}

// within reports whether a cable has an end in a rack.
func (v *view) within(c *v1.InventoryCable, rack string) bool {
	return v.rackOf[c.PlaceA.Switch] == rack || c.Host == "" && v.rackOf[c.PlaceB.Switch] == rack || c.Host != "" && v.hostsAt[c.Host] == rack
}

func (v *view) spares() []v1.Spare {
	out := []v1.Spare{}
	for i := range v.c.Switches {
		if w := &v.c.Switches[i]; w.Spare {
			out = append(out, v1.Spare{Kind: "switch", ID: w.ID, Model: w.Model, Serial: w.Serial, Where: v.where.Device(w.ID, w.Position)})
		}
	}
	for i := range v.c.Hosts {
		if h := &v.c.Hosts[i]; h.Spare {
			out = append(out, v1.Spare{Kind: "host", ID: h.ID, Where: v.where.Device(h.ID, h.Position)})
		}
	}
	for i := range v.c.Adapters {
		a := &v.c.Adapters[i]
		out = append(out, v1.Spare{Kind: "adapter", ID: a.NodeGUID.String(), Model: a.Model, Serial: a.Serial, Where: a.Location})
	}
	return out
}
