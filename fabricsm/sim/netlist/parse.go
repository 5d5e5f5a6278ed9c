package netlist

import (
	"errors"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// ErrTooLarge means that an input is above the limits of this package.
var ErrTooLarge = errors.New("too large")

// Parse reads a netlist. name is the name of the input in error messages. All problems are reported together, each with its
// line, up to 50 of them.
func Parse(name string, data []byte) (*Netlist, error) {
	if len(data) > maxSize {
		return nil, fmt.Errorf("netlist %s: %w: %d bytes, the most is %d", name, ErrTooLarge, len(data), maxSize)
	}
	p := newParser(name)
	for line := range strings.Lines(string(data)) {
		p.line++
		p.statement(strings.TrimRight(line, "\r\n"))
		if len(p.problems) >= maxProblems {
			break
		}
	}
	if len(p.problems) == 0 {
		p.connect()
	}
	if len(p.problems) > 0 {
		return nil, errors.Join(p.problems...)
	}
	if len(p.list.Nodes) == 0 {
		return nil, fmt.Errorf("netlist %s: it describes no node", name)
	}
	return p.list, nil
}

// parser is where we are in a file.
type parser struct {
	name     string
	line     int
	problems []error

	list   *Netlist
	node   *Node // whose ports are being read, nil between records
	byName map[string]int
	guids  map[ib.GUID]string

	next     map[ib.NodeType]*guidCounter
	vendor   uint32
	device   uint16
	system   ib.GUID
	link     Link // of the ports that follow
	portLine map[portKey]int
}

// portKey is a port of the list.
type portKey struct {
	node int
	port ib.PortNum
}

// guidCounter assigns the GUIDs of one node type. The initial values are those of ibsim.
type guidCounter struct{ base, next ib.GUID }

func newParser(name string) *parser {
	return &parser{
		name: name, list: &Netlist{}, link: defaultLink,
		byName: map[string]int{}, guids: map[ib.GUID]string{}, portLine: map[portKey]int{},
		next: map[ib.NodeType]*guidCounter{
			ib.NodeCA:     {0x100000, 0x100000},
			ib.NodeSwitch: {0x200000, 0x200000},
			ib.NodeRouter: {},
		},
	}
}

// fail records a problem of the present line.
func (p *parser) fail(format string, args ...any) { p.failAt(p.line, format, args...) }

func (p *parser) failAt(line int, format string, args ...any) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, fmt.Errorf("%s:%d: %w", p.name, line, fmt.Errorf(format, args...)))
	}
}

// statement reads one line.
func (p *parser) statement(line string) {
	switch {
	case len(line) > 254:
		p.fail("line of %d bytes, the most that ibsim reads is 254", len(line))
	case strings.TrimSpace(line) == "":
		p.node = nil
	case line[0] == '#':
	case line[0] == '[':
		p.port(line)
	case line[0] == '@':
		p.fail("port aliases are not supported: name the node and port")
	default:
		p.node = nil
		p.keyword(line)
	}
}

func (p *parser) keyword(line string) {
	end := strings.IndexFunc(line, func(r rune) bool { return r < 'A' || r > 'z' })
	if end < 0 {
		end = len(line)
	}
	word, rest := line[:end], line[end:]
	switch word {
	case "Switch":
		p.header(ib.NodeSwitch, rest)
	case "Ca", "Hca":
		p.header(ib.NodeCA, rest)
	case "Rt":
		p.header(ib.NodeRouter, rest)
	case "switchguid":
		p.guidBase(ib.NodeSwitch, rest)
	case "caguid", "hcaguid", "hcaguids":
		p.guidBase(ib.NodeCA, rest)
	case "rtguid":
		p.guidBase(ib.NodeRouter, rest)
	case "vendid", "devid", "sysimgguid", "width", "speed", "extspeed":
		p.assignment(word, rest)
	case "module", "include", "do", "pdebug":
		p.fail("%q is not supported: write one file without it", word)
	default:
		p.fail("unknown statement %.40q: want a node (Switch, Ca, Rt), an assignment such as caguid=0x..., or a port such as [1] \"leaf1\"[2]", line)
	}
}

// connect checks that both ends of every cable name each other, and that no
// GUID and no LID is used twice.
func (p *parser) connect() {
	for i := range p.list.Nodes {
		n := &p.list.Nodes[i]
		for num := 1; num < len(n.Ports); num++ {
			if n.Ports[num].Peer != "" {
				p.checkCable(i, ib.PortNum(num))
			}
		}
	}
	p.checkGUIDs()
	p.checkLIDs()
}

func (p *parser) checkCable(node int, num ib.PortNum) {
	n := &p.list.Nodes[node]
	port, line := &n.Ports[num], p.portLine[portKey{node, num}]
	far, ok := p.byName[port.Peer]
	if !ok {
		p.failAt(line, "port %d of %q is cabled to %q, which is not in the netlist", num, n.Name, port.Peer)
		return
	}
	f := &p.list.Nodes[far]
	switch {
	case int(port.PeerPort) >= len(f.Ports):
		p.failAt(line, "port %d of %q is cabled to port %d of %q, which has %d ports", num, n.Name, port.PeerPort, f.Name, f.NumPorts())
	case far == node && port.PeerPort == num:
		p.failAt(line, "port %d of %q is cabled to itself", num, n.Name)
	case f.Ports[port.PeerPort].Peer != n.Name || f.Ports[port.PeerPort].PeerPort != num:
		p.failAt(line, "port %d of %q is cabled to port %d of %q, which does not name it in return", num, n.Name, port.PeerPort, f.Name)
	case port.Link.Width&f.Ports[port.PeerPort].Link.Width == 0 || port.Link.Speed&f.Ports[port.PeerPort].Link.Speed == 0:
		p.failAt(line, "port %d of %q and port %d of %q have no link width or speed in common", num, n.Name, port.PeerPort, f.Name)
	}
}

// checkGUIDs refuses a port GUID that another node has, too. Node GUIDs were
// checked as they came.
func (p *parser) checkGUIDs() {
	for i := range p.list.Nodes {
		n := &p.list.Nodes[i]
		if n.Type == ib.NodeSwitch {
			continue
		}
		for num := 1; num < len(n.Ports); num++ {
			g := n.PortGUID(ib.PortNum(num))
			if other, taken := p.guids[g]; taken && other != n.Name {
				p.failAt(n.Line, "GUID %v of port %d of %q is used by %q, too", g, num, n.Name, other)
			}
			p.guids[g] = n.Name
		}
	}
}

func (p *parser) checkLIDs() {
	taken := map[ib.LID]string{}
	for i := range p.list.Nodes {
		n := &p.list.Nodes[i]
		for num := range n.Ports {
			port := &n.Ports[num]
			if port.LID == 0 {
				continue
			}
			for lid := port.LID; lid < port.LID+1<<port.LMC; lid++ {
				if other, used := taken[lid]; used {
					p.failAt(n.Line, "LID %v of port %d of %q is used by %q, too", lid, num, n.Name, other)
				}
				taken[lid] = n.Name
			}
		}
	}
}
