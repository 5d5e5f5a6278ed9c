package source

import (
	"errors"
	"fmt"

	"portcullis/api/inventory"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/generate"
	"portcullis/fabricsm/topospec/ndt"
	"portcullis/fabricsm/topospec/topoconf"
)

// observed reads switches and cables from what a fabric shows, or from a static topology.
func observed(in *inventory.Input, f *inventory.File) {
	var r *topospec.Revision
	var err error
	if f.Form == string(Topoconfig) {
		var file topoconf.File
		if file, err = topoconf.Parse("", f.Data); err == nil {
			r, err = file.Revision("", "inventory")
		}
	} else {
		r, err = discovered.Parse("", "inventory", f.Data)
	}
	if err != nil {
		problems(in, err)
		return
	}
	declare(in, r)
}

// problems reports the problems of another reader with their lines.
func problems(in *inventory.Input, err error) {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, e := range many.Unwrap() {
			problems(in, e)
		}
		return
	}
	if p, ok := errors.AsType[*topospec.Problem](err); ok {
		one := *p
		one.Source, one.Line = "", 0
		in.Problem(p.Line, "%s", one.Error())
		return
	}
	in.Problem(0, "%v", err)
}

// declare declares the switches of a revision, and its cables: those of hosts where the inventory has the port.
func declare(in *inventory.Input, r *topospec.Revision) {
	device := make(map[ib.GUID]*topospec.Device, len(r.Devices))
	names, racks := map[string]bool{}, map[string]bool{}
	for i := range r.Devices {
		device[r.Devices[i].GUID] = &r.Devices[i]
	}
	inside := aggregationNodes(r, device)
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Kind != topospec.KindSwitch {
			continue
		}
		if d.Rack != "" && !racks[d.Rack] {
			racks[d.Rack] = true
			in.Rack(d.Line, inventory.Rack{ID: d.Rack})
		}
		name := nameOf(d.Name, d.GUID)
		if names[name] {
			name = nameOf("", d.GUID)
		}
		names[name] = true
		in.Switch(d.Line, switchOf(d, name, inside[d.GUID]))
	}
	for i := range r.Links {
		cable(in, &r.Links[i], device)
	}
}

// nameOf returns the name of a switch, or one made of its GUID where the name cannot be used.
func nameOf(name string, g ib.GUID) string {
	if inventory.ValidName(name) {
		return name
	}
	return fmt.Sprintf("switch-%016x", uint64(g))
}

func switchOf(d *topospec.Device, name string, node topospec.End) inventory.Switch {
	ports := ib.PortNum(d.Ports)
	if node.Port != 0 && ports >= node.Port {
		ports = node.Port - 1 // the port of the aggregation node has no cable
	}
	return inventory.Switch{
		ID: name, GUID: d.GUID, SystemImageGUID: d.SystemImage, AggregationGUID: node.GUID, Model: d.Model, Serial: d.Serial, NumPorts: ports,
		Role: roles[d.Role], Spare: d.Stock == topospec.Spare, Position: inventory.Position{Rack: d.Rack, Unit: inventory.Unit(d.U)},
	}
}

var roles = map[topospec.Role]inventory.Role{
	topospec.RoleLeaf: inventory.RoleLeaf, topospec.RoleSpine: inventory.RoleSpine, topospec.RoleCore: inventory.RoleCore,
}

// aggregationNodes maps switches to their aggregation nodes, and the switch ports behind which these are.
func aggregationNodes(r *topospec.Revision, device map[ib.GUID]*topospec.Device) map[ib.GUID]topospec.End {
	out := map[ib.GUID]topospec.End{}
	for i := range r.Links {
		l := &r.Links[i]
		if d := device[l.B.GUID]; d != nil && d.Kind == topospec.KindAN {
			out[l.A.GUID] = topospec.End{GUID: d.GUID, Port: l.A.Port}
		}
	}
	return out
}

// cable declares a link that is to be up. Others say nothing about cables.
func cable(in *inventory.Input, l *topospec.Link, device map[ib.GUID]*topospec.Device) {
	if l.B.IsZero() || l.State != topospec.Active && l.State != topospec.Maintenance {
		return
	}
	a, b := device[l.A.GUID], device[l.B.GUID]
	switch {
	case a.Kind == topospec.KindSwitch && b.Kind == topospec.KindSwitch:
		in.Trunk(l.Line, l.A.String(), l.B.String(), l.Cable.Serial)
	case b.Kind == topospec.KindHCA || b.Kind == topospec.KindAny:
		in.Cable(l.Line, portGUID(b, l.B.Port), l.A.String(), l.Cable.Serial, true)
	}
}

// portGUID returns the GUID of a port: as the input has it, or the one that most adapters have, whose port GUIDs follow
// their node GUID.
func portGUID(d *topospec.Device, port ib.PortNum) ib.GUID {
	if int(port) <= len(d.PortGUIDs) {
		return d.PortGUIDs[port-1]
	}
	return d.GUID + ib.GUID(port)
}

// plan is one of several files that are read together.
type plan struct {
	in      *inventory.Input
	f       *inventory.File
	objects []object // of an export
}

// planned reads plans, and the file of GUIDs that they need, together.
func planned(files []plan) {
	var plans []*ndt.File
	var guids *generate.Manifest
	inputs := map[string]*inventory.Input{}
	for _, p := range files {
		inputs[p.f.Name] = p.in
		if p.f.Form == string(NDT) {
			file, err := ndt.Parse(p.f.Name, p.f.Data)
			if err != nil {
				problems(p.in, err)
				return
			}
			plans = append(plans, file)
			continue
		}
		m, err := generate.ParseManifest(p.f.Name, string(p.f.Data))
		switch {
		case err != nil:
			problems(p.in, err)
			return
		case guids != nil:
			p.in.Problem(0, "it is the second file of GUIDs: hand in one for all plans")
			return
		}
		guids = &m
	}
	switch {
	case len(files) == 0:
		return
	case guids == nil || len(plans) == 0:
		files[0].in.Problem(0, "plans and the file of GUIDs are read together: hand in files of both forms, %s and %s", NDT, GUIDs)
		return
	}
	r, _, err := ndt.Revision("inventory", guids, plans...)
	if err != nil {
		problems(files[0].in, err)
		return
	}
	for i := range r.Links {
		r.Links[i].Line = 0 // several files: the line alone says nothing
	}
	for i := range r.Devices {
		r.Devices[i].Line = 0
	}
	declare(files[0].in, r)
}
