package discovered

import (
	"fmt"
	"strings"
	"unicode"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// device is one node as an input describes it.
type device struct {
	guid        ib.GUID
	typ         ib.NodeType
	ports       uint8
	description string
	system      ib.GUID
	portGUIDs   []ib.GUID // by port number from 1, 0: not said
	links       []cable
	line        int
}

// cable is one port of a device, and the other end of its cable.
type cable struct {
	port ib.PortNum
	peer topospec.End
	line int
}

// collector makes a revision of devices.
type collector struct {
	topospec.Problems
	fabric  string
	devices []device
	index   map[ib.GUID]int
}

func newCollector(source, fabric string) *collector {
	return &collector{Problems: topospec.Problems{Source: source}, fabric: fabric, index: map[ib.GUID]int{}}
}

// aggregation are how aggregation nodes describe themselves: CAs inside switches,
// which a specification must not forget.
var aggregation = []string{"Mellanox Technologies Aggregation Node", "Aggregation Node"}

// add adds a device. A GUID that two blocks have is rejected, since it is not known which of them the links belong to.
func (c *collector) add(d device) {
	object := "node " + d.guid.String()
	if first, twice := c.index[d.guid]; twice {
		c.Add(d.line, object, fmt.Sprintf("it is there twice, also in line %d", c.devices[first].line), "two devices claim one GUID: find the one that lies, then discover again")
		return
	}
	if len(c.devices) >= topospec.MaxDevices {
		c.Add(d.line, object, fmt.Sprintf("more than %d devices", topospec.MaxDevices), "")
		return
	}
	c.index[d.guid] = len(c.devices)
	c.devices = append(c.devices, d)
}

func (c *collector) revision() (*topospec.Revision, error) {
	r := &topospec.Revision{Fabric: c.fabric}
	names := map[string]int{}
	for i := range c.devices {
		names[clean(c.devices[i].description)]++
	}
	for i := range c.devices {
		d := &c.devices[i]
		out := topospec.Device{GUID: d.guid, Kind: kindOf(d), Ports: d.ports, SystemImage: d.system, Line: d.line}
		if name := clean(d.description); name != "" && names[name] == 1 {
			out.Name = name
		}
		if whole(d.portGUIDs) {
			out.PortGUIDs = d.portGUIDs
		}
		if out.Kind == topospec.KindHCA {
			out.Host = hostOf(clean(d.description))
		}
		r.Devices = append(r.Devices, out)
		for _, l := range d.links {
			c.link(r, d, l)
		}
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	r.Normalize()
	return r, r.Validate(c.Source)
}

// whole reports whether the GUID of every port is known.
func whole(guids []ib.GUID) bool {
	for _, g := range guids {
		if g == 0 {
			return false
		}
	}
	return len(guids) > 0
}

// link takes a cable once, when it is found at its second end.
func (c *collector) link(r *topospec.Revision, d *device, l cable) {
	here := topospec.End{GUID: d.guid, Port: l.port}
	object := fmt.Sprintf("node %v port %d", d.guid, l.port)
	i, ok := c.index[l.peer.GUID]
	if !ok {
		c.Add(l.line, object, fmt.Sprintf("it leads to %v, which the input does not describe", l.peer.GUID), "the input is cut off or was filtered: discover again")
		return
	}
	far := &c.devices[i]
	var back topospec.End
	for _, o := range far.links {
		if o.port == l.peer.Port {
			back = o.peer
		}
	}
	switch {
	case back != here:
		c.Add(l.line, object, fmt.Sprintf("it leads to %v, which does not lead back", l.peer), "a one-sided link: the fabric changed, or a device lies; discover again")
	case here.Compare(l.peer) > 0:
	default:
		out := topospec.Link{A: here, B: l.peer, Line: l.line, Class: topospec.ClassHost}
		switch a, b := kindOf(d), kindOf(far); {
		case a == topospec.KindSwitch && b == topospec.KindSwitch:
			out.Class = topospec.ClassTrunk
		case a == topospec.KindAN || b == topospec.KindAN:
			out.Class = topospec.ClassInternal
		case a == topospec.KindRouter || b == topospec.KindRouter:
			out.Class = topospec.ClassUplink
		}
		r.Links = append(r.Links, out)
	}
}

func kindOf(d *device) topospec.Kind {
	switch d.typ {
	case ib.NodeSwitch:
		return topospec.KindSwitch
	case ib.NodeRouter:
		return topospec.KindRouter
	case ib.NodeCA:
	}
	for _, text := range aggregation {
		if strings.Contains(d.description, text) {
			return topospec.KindAN
		}
	}
	return topospec.KindHCA
}

// clean returns a description in the form of a name, empty if nothing is left.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	s = strings.TrimSpace(s)
	if len(s) > topospec.MaxText {
		return ""
	}
	return s
}

// hostOf returns the machine of a description such as "gpu-1 mlx5_0" or "gpu-1 HCA-1", empty where the driver has not named
// one.
func hostOf(description string) string {
	host, device, ok := strings.Cut(description, " ")
	if !ok || host == "localhost" || host == "(none)" || strings.Contains(device, " ") || !strings.HasPrefix(device, "mlx") && !strings.HasPrefix(device, "HCA") && !strings.HasPrefix(device, "ib") {
		return ""
	}
	return host
}
