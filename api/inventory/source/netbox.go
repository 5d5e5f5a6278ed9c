package source

import (
	"cmp"
	"strconv"
	"strings"

	"portcullis/api/inventory"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
)

// netbox reads answers of NetBox's REST API: dcim/sites, racks, devices, interfaces and cables. An object says by its url
// what it is. Only interfaces of InfiniBand types count, and cables between two of them.
//
// NetBox has no field for GUIDs. They are read from custom fields: "guid" of a device (a switch) and of an interface (its
// port), "node_guid" of an interface, and "ek_sha256" of a device. Without "guid" the wwn of an interface is its port GUID;
// without "node_guid" the port GUID is the node GUID, too, as on adapters with one port.
func netbox(files []plan) {
	n := &netboxReader{devices: map[string]*netboxDevice{}, ports: map[[2]string]netboxPort{}}
	for _, part := range []struct {
		kind string
		take func(in *inventory.Input, o object)
	}{{"sites", n.site}, {"racks", n.rack}, {"devices", n.device}, {"interfaces", n.port}} {
		for _, p := range files {
			for _, o := range p.objects {
				if strings.Contains(o.text("url"), "/dcim/"+part.kind+"/") {
					part.take(p.in, o)
				}
			}
		}
	}
	n.declare()
	for _, p := range files {
		for _, o := range p.objects {
			if strings.Contains(o.text("url"), "/dcim/cables/") {
				n.cable(p.in, o)
			}
		}
	}
}

type netboxReader struct {
	devices map[string]*netboxDevice
	order   []*netboxDevice
	ports   map[[2]string]netboxPort // by device and interface
}

type netboxDevice struct {
	in     *inventory.Input
	line   int
	guid   ib.GUID // of a switch
	sw     *inventory.Switch
	host   inventory.Host
	lines  [][]int // of ports, by adapter
	byNode map[ib.GUID]int
}

// netboxPort is an interface: of a switch its port, of a host the GUID of its port.
type netboxPort struct {
	place ib.Place
	guid  ib.GUID
}

func (*netboxReader) site(in *inventory.Input, o object) {
	in.Site(o.Line, inventory.Site{ID: o.text("slug"), Name: o.text("name")})
}

func (*netboxReader) rack(in *inventory.Input, o object) {
	units, _ := strconv.ParseUint(o.text("u_height"), 10, 8)
	in.Rack(o.Line, inventory.Rack{ID: o.text("name"), Site: o.text("site", "slug"), Room: o.text("location", "name"), Units: inventory.Unit(units)})
}

func (n *netboxReader) device(in *inventory.Input, o object) {
	name, model := o.text("name"), o.text("device_type", "model")
	role := strings.ToLower(cmp.Or(o.text("role", "slug"), o.text("device_role", "slug")))
	if name == "" || n.devices[name] != nil {
		in.Problem(o.Line, "device %.64q: its name is empty or there already", name)
		return
	}
	at := inventory.Position{Rack: o.text("rack", "name")}
	if u, err := strconv.ParseFloat(o.text("position"), 64); err == nil && u >= 1 && u <= inventory.MaxUnit && at.Rack != "" {
		at.Unit = inventory.Unit(u)
		if h, err := strconv.ParseFloat(o.text("device_type", "u_height"), 64); err == nil && h > 1 && h <= inventory.MaxUnit {
			at.Height = inventory.Unit(h)
		}
	}
	d := &netboxDevice{in: in, line: o.Line, byNode: map[ib.GUID]int{}}
	known, _ := devicemodel.Find(model)
	if known.Kind == topospec.KindSwitch || strings.Contains(role, "switch") || switchRole(role) != "" {
		g, ok := guid(o.text("custom_fields", "guid"))
		if !ok {
			in.Problem(o.Line, "switch %.64q: custom field guid %.64q: want 16 hexadecimal digits", name, o.text("custom_fields", "guid"))
			return
		}
		d.guid = g
		d.sw = &inventory.Switch{ID: name, GUID: g, Model: model, Serial: o.text("serial"), Role: switchRole(role), Position: at}
	} else {
		d.host = inventory.Host{ID: strings.ToLower(name), EK: o.text("custom_fields", "ek_sha256"), Position: at}
	}
	n.devices[name] = d
	n.order = append(n.order, d)
}

// switchRole returns the role that the name of one says, "" if it says none.
func switchRole(slug string) inventory.Role {
	for _, r := range []inventory.Role{inventory.RoleLeaf, inventory.RoleSpine, inventory.RoleCore} {
		if strings.Contains(slug, string(r)) {
			return r
		}
	}
	return ""
}

func (n *netboxReader) port(in *inventory.Input, o object) {
	if !strings.HasPrefix(o.text("type", "value"), "infiniband") {
		return
	}
	device, name := o.text("device", "name"), o.text("name")
	d := n.devices[device]
	if d == nil {
		in.Problem(o.Line, "interface %.64q: no device %.64q is in the files", name, device)
		return
	}
	if d.sw != nil {
		num, ok := portOf(d.sw.Model, name)
		if !ok {
			in.Problem(o.Line, "interface %.64q of switch %.64q: want a name that ends in the number of a port, or its label", name, device)
			return
		}
		n.ports[[2]string{device, name}] = netboxPort{place: ib.Place{Switch: d.guid, Port: num}}
		return
	}
	port, ok := guid(cmp.Or(o.text("custom_fields", "guid"), o.text("wwn")))
	if !ok {
		in.Problem(o.Line, "interface %.64q of %.64q: neither custom field guid nor wwn is a GUID of 16 hexadecimal digits", name, device)
		return
	}
	node, ok := guid(o.text("custom_fields", "node_guid"))
	if !ok {
		node = port
	}
	i, known := d.byNode[node]
	if !known {
		i = len(d.host.HCAs)
		d.byNode[node] = i
		d.host.HCAs, d.lines = append(d.host.HCAs, inventory.HCA{NodeGUID: node}), append(d.lines, nil)
	}
	a := &d.host.HCAs[i]
	a.Ports, d.lines[i] = append(a.Ports, inventory.Port{Num: ib.PortNum(len(a.Ports) + 1), GUID: port}), append(d.lines[i], o.Line)
	n.ports[[2]string{device, name}] = netboxPort{guid: port}
}

// declare declares the devices, hosts without InfiniBand ports excepted.
func (n *netboxReader) declare() {
	for _, d := range n.order {
		switch {
		case d.sw != nil:
			d.in.Switch(d.line, *d.sw)
		case len(d.host.HCAs) > 0:
			d.in.Host(d.line, d.host, func(hca, port int) int { return d.lines[hca][port] })
		}
	}
}

func (n *netboxReader) cable(in *inventory.Input, o object) {
	ends := make([]netboxPort, 0, 2)
	for _, side := range [2]string{"a_terminations", "b_terminations"} {
		for _, t := range o.list(side) {
			if p, known := n.ports[[2]string{t.text("object", "device", "name"), t.text("object", "name")}]; known {
				ends = append(ends, p)
			}
		}
	}
	label := o.text("label")
	switch {
	case len(ends) < 2: // not of this fabric
	case len(ends) > 2:
		in.Problem(o.Line, "cable %.64q: it has %d InfiniBand ends: write a cable for each pair", label, len(ends))
	case ends[0].guid == 0 && ends[1].guid == 0:
		in.Trunk(o.Line, ends[0].place.String(), ends[1].place.String(), label)
	case ends[0].guid == 0:
		in.Cable(o.Line, ends[1].guid, ends[0].place.String(), label, false)
	case ends[1].guid == 0:
		in.Cable(o.Line, ends[0].guid, ends[1].place.String(), label, false)
	default:
		in.Problem(o.Line, "cable %.64q: both ends are adapters: one end of a cable is a switch port", label)
	}
}

// portOf returns the number of a switch port: by the label of the model, or the number that the name ends in.
func portOf(model, name string) (ib.PortNum, bool) {
	if m, ok := devicemodel.Find(model); ok && strings.Contains(name, "/") {
		for cut := 0; cut >= 0; {
			if p, err := m.PortOf(name[cut:]); err == nil {
				return p, true
			}
			next := strings.IndexAny(name[cut:], " /")
			if next < 0 {
				break
			}
			cut += next + 1
		}
	}
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	n, err := strconv.ParseUint(digits, 10, 8)
	return ib.PortNum(n), err == nil && n > 0 && n <= 254
}
