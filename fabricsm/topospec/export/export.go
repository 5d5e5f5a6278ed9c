// Package export writes a revision for tools of others, so that schedulers,
// exporters and routing share one truth with the security boundary.
package export

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Ibnetdiscover writes the grouped form of ibnetdiscover, which ibsim reads, too.
// LIDs are 0: a specification has none.
func Ibnetdiscover(s *topospec.Spec) string {
	var b strings.Builder
	r := s.Revision()
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Stock != topospec.InUse {
			continue
		}
		image := d.SystemImage
		if image == 0 {
			image = d.GUID
		}
		fmt.Fprintf(&b, "vendid=0x0\ndevid=0x0\nsysimgguid=0x%x\n", uint64(image))
		ports, last := int(d.Ports), 0
		for port, slot := range s.PortsOf(topospec.DeviceID(i)) {
			if _, peer := s.LinkAt(slot); !peer.IsZero() {
				last = int(port)
			}
		}
		ports = max(ports, last, 1)
		switch d.Kind {
		case topospec.KindSwitch:
			fmt.Fprintf(&b, "switchguid=0x%x(%x)\nSwitch\t%d %s\t\t# \"%s\" base port 0 lid 0 lmc 0\n", uint64(d.GUID), uint64(d.GUID), ports, nodeName(d), description(d))
		case topospec.KindRouter:
			fmt.Fprintf(&b, "rtguid=0x%x\nRt\t%d %s\t\t# \"%s\"\n", uint64(d.GUID), ports, nodeName(d), description(d))
		default:
			fmt.Fprintf(&b, "caguid=0x%x\nCa\t%d %s\t\t# \"%s\"\n", uint64(d.GUID), ports, nodeName(d), description(d))
		}
		for port, slot := range s.PortsOf(topospec.DeviceID(i)) {
			writePort(&b, s, d, port, slot)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func writePort(b *strings.Builder, s *topospec.Spec, d *topospec.Device, port ib.PortNum, slot topospec.SlotID) {
	l, peer := s.LinkAt(slot)
	if l == nil || peer.IsZero() || l.State != topospec.Active && l.State != topospec.Maintenance {
		return
	}
	far := s.Device(s.DeviceByGUID(peer.GUID))
	fmt.Fprintf(b, "[%d]", port)
	if d.Kind != topospec.KindSwitch {
		fmt.Fprintf(b, "(%x) ", uint64(portGUID(d, port)))
	}
	fmt.Fprintf(b, "\t%s[%d]", nodeName(far), peer.Port)
	if far.Kind != topospec.KindSwitch {
		fmt.Fprintf(b, "(%x)", uint64(portGUID(far, peer.Port)))
	}
	own := ""
	if d.Kind != topospec.KindSwitch {
		own = "lid 0 lmc 0 "
	}
	fmt.Fprintf(b, " \t\t# %s\"%s\" lid 0 4xNDR\n", own, description(far))
}

func portGUID(d *topospec.Device, p ib.PortNum) ib.GUID {
	if int(p) <= len(d.PortGUIDs) {
		return d.PortGUIDs[p-1]
	}
	return d.GUID + ib.GUID(p)
}

func nodeName(d *topospec.Device) string {
	letter := map[topospec.Kind]string{topospec.KindSwitch: "S", topospec.KindRouter: "R"}[d.Kind]
	return fmt.Sprintf("\"%s-%016x\"", cmp.Or(letter, "H"), uint64(d.GUID))
}

// description is at most 64 bytes, as NodeDescription, without characters that the format uses.
func description(d *topospec.Device) string {
	s := strings.Map(func(r rune) rune {
		if strings.ContainsRune("\"#@", r) {
			return '_'
		}
		return r
	}, cmp.Or(d.Name, d.GUID.String()))
	for len(s) > 64 {
		s = s[:len(s)-1]
	}
	return strings.ToValidUTF8(s, "")
}

// Slurm writes topology.conf of the tree plugin: leaves with their hosts, other switches with those below them. Names that
// Slurm cannot read are rejected.
func Slurm(s *topospec.Spec) (string, error) {
	r := s.Revision()
	level := levels(s)
	var b strings.Builder
	b.WriteString("# from " + r.Fabric + " revision " + fmt.Sprint(r.Number) + " " + s.Digest().Short() + "\n")
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Kind != topospec.KindSwitch || d.Stock != topospec.InUse {
			continue
		}
		var hosts, below []string
		for _, slot := range s.PortsOf(topospec.DeviceID(i)) {
			l, peer := s.LinkAt(slot)
			if l == nil || peer.IsZero() {
				continue
			}
			id := s.DeviceByGUID(peer.GUID)
			far := s.Device(id)
			switch {
			case far.Kind == topospec.KindSwitch && level[id] < level[i]:
				below = append(below, name(far))
			case far.Kind == topospec.KindHCA && far.Role != topospec.RoleSM && far.Role != topospec.RoleService:
				hosts = append(hosts, cmp.Or(far.Host, name(far)))
			}
		}
		hosts, below = distinct(hosts), distinct(below)
		for _, n := range slices.Concat([]string{name(d)}, hosts, below) {
			if strings.ContainsAny(n, " ,[]=\"") {
				return "", fmt.Errorf("name %q cannot stand in topology.conf: write a name or host of the device without spaces, commas and brackets", n)
			}
		}
		switch {
		case len(hosts) > 0:
			fmt.Fprintf(&b, "SwitchName=%s Nodes=%s\n", name(d), strings.Join(hosts, ","))
		case len(below) > 0:
			fmt.Fprintf(&b, "SwitchName=%s Switches=%s\n", name(d), strings.Join(below, ","))
		}
	}
	return b.String(), nil
}

func name(d *topospec.Device) string { return cmp.Or(d.Name, fmt.Sprintf("S-%016x", uint64(d.GUID))) }

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// levels returns the distance of each switch from the nearest adapter that is no service.
func levels(s *topospec.Spec) []int {
	r := s.Revision()
	level := make([]int, len(r.Devices))
	var queue []topospec.DeviceID
	for i := range r.Devices {
		level[i] = 1 << 20
		if d := &r.Devices[i]; d.Kind == topospec.KindHCA && d.Role != topospec.RoleSM && d.Role != topospec.RoleService && d.Stock == topospec.InUse {
			level[i] = 0
			queue = append(queue, topospec.DeviceID(i))
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, slot := range s.PortsOf(queue[0]) {
			if l, peer := s.LinkAt(slot); l != nil && !peer.IsZero() {
				if id := s.DeviceByGUID(peer.GUID); level[id] == 1<<20 {
					level[id] = level[queue[0]] + 1
					queue = append(queue, id)
				}
			}
		}
	}
	return level
}

// List is a list of GUIDs that OpenSM reads, one a line.
type List string

// Lists.
const (
	Roots   List = "root-guids"    // switches of the highest level, for up/down routing and fat trees
	Compute List = "cn-guids"      // port GUIDs of compute nodes
	IO      List = "io-guids"      // port GUIDs of service nodes
	Allowed List = "allowed-guids" // port GUIDs of all adapters in use
)

// Lists returns the names of all lists.
func Lists() []List { return []List{Roots, Compute, IO, Allowed} }

// GUIDs writes a list.
func GUIDs(s *topospec.Spec, list List) (string, error) {
	r := s.Revision()
	level := levels(s)
	top := 0
	for i := range r.Devices {
		if d := &r.Devices[i]; d.Kind == topospec.KindSwitch && d.Stock == topospec.InUse && level[i] < 1<<20 {
			top = max(top, level[i])
		}
	}
	if !slices.Contains(Lists(), list) {
		return "", fmt.Errorf("list %.40q: want one of %q", string(list), Lists())
	}
	var b strings.Builder
	for i := range r.Devices {
		d := &r.Devices[i]
		adapter := d.Kind == topospec.KindHCA || d.Kind == topospec.KindAny
		service := d.Role == topospec.RoleSM || d.Role == topospec.RoleService
		switch {
		case d.Stock != topospec.InUse:
		case list == Roots && d.Kind == topospec.KindSwitch && level[i] == top:
			fmt.Fprintf(&b, "%v\n", d.GUID)
		case list == Compute && adapter && !service, list == IO && adapter && service, list == Allowed && adapter:
			for port, slot := range s.PortsOf(topospec.DeviceID(i)) {
				if l, _ := s.LinkAt(slot); l != nil {
					fmt.Fprintf(&b, "%v\n", portGUID(d, port))
				}
			}
		}
	}
	return b.String(), nil
}
