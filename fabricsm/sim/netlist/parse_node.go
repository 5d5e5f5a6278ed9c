package netlist

import (
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// header reads the rest of a node's first line: number of ports, name, and the
// description that ibnetdiscover puts behind '#'.
func (p *parser) header(t ib.NodeType, rest string) {
	count, rest, _ := strings.Cut(strings.TrimLeft(rest, " \t"), "\"")
	ports, err := strconv.ParseUint(strings.TrimSpace(count), 10, 8)
	name, tail, closed := strings.Cut(rest, "\"")
	switch {
	case err != nil || ports < 1 || ports > maxPorts:
		p.fail("want a number of ports, 1 to %d, and the name in quotes", maxPorts)
	case !closed || name == "":
		p.fail("want the name of the node in quotes")
	case len(name) > maxName:
		p.fail("node name %q has %d bytes, the most is %d", name, len(name), maxName)
	case strings.ContainsAny(name, "#@\x00"):
		p.fail("node name %q: the characters # and @ are reserved", name)
	case len(p.list.Nodes) >= maxNodes:
		p.fail("more than %d nodes: %w", maxNodes, ErrTooLarge)
	default:
		p.addNode(t, name, int(ports), tail)
	}
}

func (p *parser) addNode(t ib.NodeType, name string, ports int, tail string) {
	if first, taken := p.byName[name]; taken {
		p.fail("node %q is defined in line %d already", name, p.list.Nodes[first].Line)
		return
	}
	counter := p.next[t]
	n := Node{
		Type: t, Name: name, Description: name, GUID: counter.next, SystemImageGUID: p.system,
		VendorID: p.vendor, DeviceID: p.device, Ports: make([]Port, ports+1), Line: p.line,
	}
	if !n.GUID.Valid() || n.GUID+ib.GUID(ports) < n.GUID {
		p.fail("node %q has no valid GUID: put an assignment such as caguid=0x0020000000000000 before it", name)
		return
	}
	if other, taken := p.guids[n.GUID]; taken {
		p.fail("GUID %v of node %q is used by %q, too", n.GUID, name, other)
		return
	}
	for i := range n.Ports {
		n.Ports[i].Link = p.link
	}
	if n.SystemImageGUID == 0 {
		n.SystemImageGUID = n.GUID
	}
	// A switch takes one GUID, the others one for each port, too. The vendor
	// and the system image hold for one node, the device for all that follow.
	counter.next++
	if t != ib.NodeSwitch {
		counter.next += ib.GUID(ports)
	}
	p.vendor, p.system = 0, 0
	p.describe(&n, tail)
	p.byName[name], p.guids[n.GUID] = len(p.list.Nodes), name
	p.list.Nodes = append(p.list.Nodes, n)
	p.node = &p.list.Nodes[len(p.list.Nodes)-1]
}

// describe reads the text after '#' of a header: the description in quotes and, for a switch, its port 0.
func (p *parser) describe(n *Node, tail string) {
	_, comment, _ := strings.Cut(tail, "#")
	if _, quoted, ok := strings.Cut(comment, "\""); ok {
		var text string
		text, comment, _ = strings.Cut(quoted, "\"")
		if text != "" && len(text) <= 64 {
			n.Description = text
		}
	}
	if n.Type == ib.NodeSwitch {
		n.EnhancedPort0 = strings.Contains(comment, "enhanced port 0")
		p.lidAndLMC(&n.Ports[0], comment)
	}
}

// lidAndLMC reads "lid N lmc N" where it stands.
func (p *parser) lidAndLMC(port *Port, s string) {
	fields := strings.Fields(s)
	for i := 0; i+1 < len(fields); i++ {
		switch fields[i] {
		case "lid":
			lid, err := ib.ParseLID(fields[i+1])
			if err != nil || lid != 0 && !lid.IsUnicast() {
				p.fail("lid %q: want 0 to %v", fields[i+1], ib.MaxUnicastLID)
				return
			}
			port.LID = lid
		case "lmc":
			lmc, err := strconv.ParseUint(fields[i+1], 10, 3)
			if err != nil {
				p.fail("lmc %q: want 0 to 7", fields[i+1])
				return
			}
			port.LMC = ib.LMC(lmc)
		}
	}
	if port.LID != 0 && int(port.LID)+1<<port.LMC-1 > int(ib.MaxUnicastLID) {
		p.fail("lid %v with lmc %d goes beyond %v", port.LID, port.LMC, ib.MaxUnicastLID)
	}
}

// guidBase reads "=0x..." or, relative to the last such base, "+0x...".
// ibnetdiscover repeats the value in parentheses.
func (p *parser) guidBase(t ib.NodeType, rest string) {
	if rest == "" || rest[0] != '=' && rest[0] != '+' {
		p.fail("want = or + and a GUID")
		return
	}
	value, _, _ := strings.Cut(rest[1:], "(")
	g, err := ib.ParseGUID(strings.TrimSpace(value))
	if err != nil {
		p.fail("%w", err)
		return
	}
	if rest[0] == '=' {
		p.next[t].base, g = g, 0
	}
	p.next[t].next = p.next[t].base + g
}

// assignment reads "=NUMBER" of the words that apply to the following nodes.
func (p *parser) assignment(word, rest string) {
	limits := map[string]struct{ low, high uint64 }{
		"vendid": {0, 1<<24 - 1}, "devid": {0, 1<<16 - 1}, "sysimgguid": {0, 1<<64 - 1},
		"width": {1, 31}, "speed": {1, 7}, "extspeed": {0, 15},
	}
	limit := limits[word]
	text, ok := strings.CutPrefix(rest, "=")
	v, err := strconv.ParseUint(strings.TrimSpace(text), 0, 64)
	if !ok || err != nil || v < limit.low || v > limit.high {
		p.fail("%s%s: want = and a number from %d to %d", word, rest, limit.low, limit.high)
		return
	}
	switch word {
	case "vendid":
		p.vendor = uint32(v)
	case "devid":
		p.device = uint16(v)
	case "sysimgguid":
		p.system = ib.GUID(v)
	case "width":
		p.link.Width = ib.LinkWidth(v)
	case "speed":
		p.link.Speed = ib.LinkSpeed(v)
	case "extspeed":
		p.link.SpeedExt = ib.LinkSpeedExt(v)
	}
}
