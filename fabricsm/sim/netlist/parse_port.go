package netlist

import (
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// port reads a line such as
//
//	[1](20000000000001)	"leaf1"[4](10000100000001) w=3	# lid 0 lmc 0 "leaf1" lid 0 4xEDR
//
// in which the parentheses, the masks and the comment may be left out.
func (p *parser) port(line string) {
	if p.node == nil {
		p.fail("port line outside a node: a node ends with an empty line")
		return
	}
	num, rest, ok := cutBracket(line)
	if !ok || num == 0 || int(num) >= len(p.node.Ports) {
		p.fail("want a port from 1 to %d of %q in brackets", p.node.NumPorts(), p.node.Name)
		return
	}
	port := &p.node.Ports[num]
	if port.Peer != "" {
		p.fail("port %d of %q has a cable already", num, p.node.Name)
		return
	}
	_, rest, _ = strings.Cut(rest, "\"")
	peer, rest, closed := strings.Cut(rest, "\"")
	if !closed || peer == "" || strings.ContainsAny(peer, "#@") {
		p.fail("want the node at the other end in quotes, and its port in brackets")
		return
	}
	port.PeerPort = 1
	if strings.HasPrefix(rest, "[") {
		if port.PeerPort, rest, ok = cutBracket(rest); !ok || port.PeerPort == 0 {
			p.fail("want the port at the other end in brackets, from 1 to %d", maxPorts)
			return
		}
	}
	port.Peer = peer
	p.portLine[portKey{len(p.list.Nodes) - 1, num}] = p.line
	options, comment, _ := strings.Cut(rest, "#")
	p.portComment(port, comment)
	p.portOptions(port, options)
}

// cutBracket reads "[number]" at the start of s.
func cutBracket(s string) (ib.PortNum, string, bool) {
	number, rest, ok := strings.Cut(s[1:], "]")
	v, err := strconv.ParseUint(number, 10, 8)
	if !ok || err != nil || v > maxPorts {
		return 0, s, false
	}
	return ib.PortNum(v), rest, true
}

// portComment reads our LID (not for a switch), the description of the peer,
// which is of no use, its LID and the link, the last word.
func (p *parser) portComment(port *Port, comment string) {
	before, quoted, hasPeer := strings.Cut(comment, "\"")
	_, after, _ := strings.Cut(quoted, "\"")
	if p.node.Type != ib.NodeSwitch {
		p.lidAndLMC(port, before)
	}
	if !hasPeer {
		return
	}
	fields := strings.Fields(after)
	if len(fields) < 3 || fields[0] != "lid" {
		p.fail("comment of a port: want the description in quotes, then a LID and a link such as lid 0 4xEDR")
		return
	}
	link, err := ParseLink(fields[2])
	if err != nil {
		p.fail("%w", err)
		return
	}
	port.Link = link
}

// portOptions reads the masks w=, s= and e=, which win over the comment.
func (p *parser) portOptions(port *Port, options string) {
	for _, f := range strings.Fields(options) {
		key, value, isOption := strings.Cut(f, "=")
		if !isOption {
			continue // the GUID in parentheses
		}
		v, err := strconv.ParseUint(value, 0, 5)
		switch {
		case err != nil:
			p.fail("port option %q: want a mask", f)
		case key == "w" && v >= 1:
			port.Link.Width = ib.LinkWidth(v)
		case key == "s" && v <= 7:
			port.Link.Speed = ib.LinkSpeed(v)
			if v == 0 {
				port.Link.Speed = 4
			}
		case key == "e" && v <= 15:
			port.Link.SpeedExt = ib.LinkSpeedExt(v)
		default:
			p.fail("port option %q: want w=1..31, s=0..7 or e=0..15", f)
		}
	}
}
