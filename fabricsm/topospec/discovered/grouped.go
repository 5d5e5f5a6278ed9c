package discovered

import (
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Limits of an input.
const (
	maxSize = 512 << 20
	maxLine = 1024
)

// Parse reads the grouped form of ibnetdiscover, or a netlist of ibsim, which
// names nodes and may leave GUIDs to be counted from the last assignment. source is
// what problems call the input, fabric the name of the fabric.
//
// Every link must be there from both sides, and every node once: otherwise the
// input is cut, or two devices claim one GUID.
func Parse(source, fabric string, data []byte) (*topospec.Revision, error) {
	p := &groupedParser{collector: newCollector(source, fabric), named: map[string]int{}, peers: map[[2]int]peer{}}
	p.next[0], p.next[1] = 0x100000, 0x200000 // where ibsim begins to count
	if len(data) > maxSize {
		p.Add(0, "", fmt.Sprintf("%d bytes, the most is %d", len(data), maxSize), "")
		return nil, p.Err()
	}
	for text := range strings.Lines(string(data)) {
		p.line++
		text = strings.TrimRight(text, "\r\n")
		if len(text) > maxLine {
			p.Add(p.line, "", fmt.Sprintf("%d bytes, the most is %d", len(text), maxLine), "")
			continue
		}
		if p.statement(text); p.Full() {
			break
		}
	}
	p.resolve()
	if err := p.Err(); err != nil {
		return nil, err
	}
	return p.revision()
}

// peer is the peer that a port line names, before all nodes are known.
type peer struct {
	name string
	port ib.PortNum
}

type groupedParser struct {
	*collector
	line   int
	inside bool // of a node's ports
	named  map[string]int
	peers  map[[2]int]peer // by device and index of its link
	system ib.GUID
	base   [3]ib.GUID // of CAs, switches, routers: the last assignment
	next   [3]ib.GUID
}

func (p *groupedParser) statement(text string) {
	switch {
	case strings.TrimSpace(text) == "":
		p.inside = false
	case text[0] == '#':
	case text[0] == '[':
		p.port(text)
	default:
		p.inside = false
		p.keyword(text)
	}
}

func (p *groupedParser) keyword(text string) {
	end := strings.IndexFunc(text, func(r rune) bool { return r < 'A' || r > 'z' || r == '[' })
	if end < 0 {
		end = len(text)
	}
	word, rest := text[:end], text[end:]
	switch word {
	case "Switch":
		p.header(ib.NodeSwitch, rest)
	case "Ca", "Hca":
		p.header(ib.NodeCA, rest)
	case "Rt":
		p.header(ib.NodeRouter, rest)
	case "caguid", "hcaguid", "hcaguids":
		p.guid(0, rest)
	case "switchguid":
		p.guid(1, rest)
	case "rtguid":
		p.guid(2, rest)
	case "sysimgguid":
		if g, err := ib.ParseGUID(strings.TrimSpace(strings.TrimPrefix(rest, "="))); err == nil {
			p.system = g
		} else {
			p.Add(p.line, word, err.Error(), "")
		}
	case "vendid", "devid", "width", "speed", "extspeed":
	case "DR", "Topology", "Chassis", "Non", "Chassis:":
	default:
		p.Add(p.line, "", fmt.Sprintf("%.60q is no line of ibnetdiscover or of a netlist", text), "want the output of ibnetdiscover without --ports, or a netlist in one file")
	}
}

// guid reads "=0x..." or, from the last one on, "+0x...", as netlists have it.
func (p *groupedParser) guid(kind int, rest string) {
	value, _, _ := strings.Cut(strings.TrimLeft(rest, "=+"), "(")
	g, err := ib.ParseGUID(strings.TrimSpace(value))
	if err != nil || rest == "" || rest[0] != '=' && rest[0] != '+' {
		p.Add(p.line, "", fmt.Sprintf("GUID %.40q", rest), "want = and 0x with up to 16 hexadecimal digits")
		return
	}
	if rest[0] == '=' {
		p.base[kind], g = g, 0
	}
	p.next[kind] = p.base[kind] + g
}

func kindIndex(t ib.NodeType) int {
	return [...]int{ib.NodeCA: 0, ib.NodeSwitch: 1, ib.NodeRouter: 2}[t]
}

// header reads the number of ports, the name, and the description behind '#'.
func (p *groupedParser) header(t ib.NodeType, rest string) {
	count, rest, _ := strings.Cut(strings.TrimLeft(rest, " \t"), "\"")
	ports, err := strconv.ParseUint(strings.TrimSpace(count), 10, 8)
	name, tail, closed := strings.Cut(rest, "\"")
	if err != nil || ports == 0 || ports > 254 || !closed || name == "" {
		p.Add(p.line, "", "want a number of ports from 1 to 254 and a name in quotes", "")
		return
	}
	if first, twice := p.named[name]; twice {
		p.Add(p.line, fmt.Sprintf("node %.60q", name), fmt.Sprintf("it is there twice, also in line %d", p.devices[first].line), "two devices claim one GUID: find the one that lies, then discover again")
		return
	}
	k := kindIndex(t)
	d := device{guid: p.next[k], typ: t, ports: uint8(ports), description: name, system: p.system, line: p.line}
	if g, err := ib.ParseGUID("0x" + strings.TrimLeft(name, "SHR-")); err == nil && len(name) == 18 && name[1] == '-' {
		d.guid = g
	}
	if _, comment, ok := strings.Cut(tail, "#"); ok {
		if _, quoted, ok := strings.Cut(comment, "\""); ok {
			if text, _, _ := strings.Cut(quoted, "\""); text != "" {
				d.description = text
			}
		}
	}
	p.next[k] = d.guid + 1
	if t != ib.NodeSwitch {
		p.next[k] += ib.GUID(ports)
		d.portGUIDs = make([]ib.GUID, ports)
	}
	p.system = 0
	if why := topospec.Malformed(d.guid); why != "" {
		p.Add(p.line, fmt.Sprintf("node %.60q", name), fmt.Sprintf("its GUID %v %s", d.guid, why), "")
		return
	}
	before := len(p.devices)
	if p.add(d); len(p.devices) > before {
		p.named[name], p.inside = before, true
	}
}

// port reads "[1](portguid) "peer"[2](portguid) # ...".
func (p *groupedParser) port(text string) {
	if !p.inside {
		p.Add(p.line, "", "a port outside a node", "an empty line ends a node")
		return
	}
	d := &p.devices[len(p.devices)-1]
	num, rest, ok := bracket(text)
	if !ok || uint8(num) > d.ports {
		p.Add(p.line, "node "+d.guid.String(), fmt.Sprintf("%.20q: want a port from 1 to %d in brackets", text, d.ports), "")
		return
	}
	for _, l := range d.links {
		if l.port == num {
			p.Add(p.line, "node "+d.guid.String(), fmt.Sprintf("port %d is there twice, also in line %d", num, l.line), "")
			return
		}
	}
	if own, after, ok := strings.Cut(rest, ")"); ok && strings.HasPrefix(own, "(") && d.typ != ib.NodeSwitch {
		if g, err := ib.ParseGUID("0x" + own[1:]); err == nil {
			d.portGUIDs[num-1], rest = g, after
		}
	}
	_, rest, _ = strings.Cut(rest, "\"")
	name, rest, closed := strings.Cut(rest, "\"")
	if !closed || name == "" {
		p.Add(p.line, "node "+d.guid.String(), fmt.Sprintf("port %d: want its peer in quotes", num), "")
		return
	}
	far := ib.PortNum(1)
	if strings.HasPrefix(rest, "[") {
		if far, _, ok = bracket(rest); !ok {
			p.Add(p.line, "node "+d.guid.String(), fmt.Sprintf("port %d: want the port of its peer in brackets", num), "")
			return
		}
	}
	p.peers[[2]int{len(p.devices) - 1, len(d.links)}] = peer{name, far}
	d.links = append(d.links, cable{port: num, line: p.line})
}

// bracket reads "[number]" at the start of s.
func bracket(s string) (ib.PortNum, string, bool) {
	number, rest, ok := strings.Cut(s[1:], "]")
	v, err := strconv.ParseUint(number, 10, 8)
	if !ok || err != nil || v == 0 || v == 255 {
		return 0, s, false
	}
	return ib.PortNum(v), rest, true
}

// resolve turns the names of peers into GUIDs.
func (p *groupedParser) resolve() {
	for i := range p.devices {
		d := &p.devices[i]
		for k := range d.links {
			to := p.peers[[2]int{i, k}]
			j, ok := p.named[to.name]
			if !ok {
				p.Add(d.links[k].line, "node "+d.guid.String(), fmt.Sprintf("port %d leads to %.60q, which the input does not describe", d.links[k].port, to.name), "the input is cut off or was filtered: discover again")
				continue
			}
			d.links[k].peer = topospec.End{GUID: p.devices[j].guid, Port: to.port}
		}
	}
}
