package source

import (
	"strconv"
	"strings"

	"portcullis/api/inventory"
	"portcullis/fabricsm/ib"
)

// ufm reads answers of UFM's REST API: resources/systems and resources/links. Switches are systems of type switch. Links
// between two switches are cables between switches; of the others the end that is no switch is the port of a host, which
// is left out where the inventory does not have it.
func ufm(files []plan) {
	switches := map[ib.GUID]bool{}
	for _, p := range files {
		for _, o := range p.objects {
			if strings.EqualFold(o.text("type"), "switch") {
				ufmSwitch(p.in, o, switches)
			}
		}
	}
	for _, p := range files {
		for _, o := range p.objects {
			if o.text("source_guid") != "" {
				ufmLink(p.in, o, switches)
			}
		}
	}
}

func ufmSwitch(in *inventory.Input, o object, switches map[ib.GUID]bool) {
	g, ok := guid(o.text("system_guid"))
	if !ok {
		in.Problem(o.Line, "system %.64q: system_guid %.64q: want 16 hexadecimal digits", o.text("system_name"), o.text("system_guid"))
		return
	}
	if switches[g] {
		return // systems were asked for twice
	}
	switches[g] = true
	role := map[string]inventory.Role{"tor": inventory.RoleLeaf, "leaf": inventory.RoleLeaf, "spine": inventory.RoleSpine, "core": inventory.RoleCore}
	in.Switch(o.Line, inventory.Switch{
		ID: nameOf(o.text("system_name"), g), GUID: g, Model: o.text("model"), Serial: o.text("serial_number"), Role: role[strings.ToLower(o.text("role"))],
	})
}

func ufmLink(in *inventory.Input, o object, switches map[ib.GUID]bool) {
	var ends [2]ib.Place
	for i, side := range [2]string{"source", "destination"} {
		g, ok := guid(o.text(side + "_guid"))
		port, err := strconv.ParseUint(o.text(side+"_port"), 10, 8)
		if !ok || err != nil || port == 0 || port > 254 {
			in.Problem(o.Line, "link %.128q: %s_guid %.64q, %s_port %.16q: want 16 hexadecimal digits and a port from 1 to 254", o.text("name"), side, o.text(side+"_guid"), side, o.text(side+"_port"))
			return
		}
		ends[i] = ib.Place{Switch: g, Port: ib.PortNum(port)}
	}
	label := o.text("cable_info", "serial_number")
	a, b := switches[ends[0].Switch], switches[ends[1].Switch]
	switch {
	case a && b:
		in.Trunk(o.Line, ends[0].String(), ends[1].String(), label)
	case a:
		in.Cable(o.Line, ends[1].Switch, ends[0].String(), label, true)
	case b:
		in.Cable(o.Line, ends[0].Switch, ends[1].String(), label, true)
	default:
		in.Problem(o.Line, "link %.128q: neither end is a switch: hand in the answer of resources/systems, too", o.text("name"))
	}
}
