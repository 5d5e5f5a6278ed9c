package netlist

import (
	"bufio"
	"fmt"
	"io"

	"portcullis/fabricsm/ib"
)

// header returns the keywords of a node type.
func header(t ib.NodeType) (guid, node string) {
	switch t {
	case ib.NodeSwitch:
		return "switchguid", "Switch"
	case ib.NodeRouter:
		return "rtguid", "Rt"
	default:
		return "caguid", "Ca"
	}
}

// WriteTo writes the netlist in a form that ibsim and Parse read.
func (l *Netlist) WriteTo(w io.Writer) (int64, error) {
	c := &counter{w: w}
	b := bufio.NewWriter(c)
	names := make(map[string]*Node, len(l.Nodes))
	for i := range l.Nodes {
		names[l.Nodes[i].Name] = &l.Nodes[i]
	}
	for i := range l.Nodes {
		l.Nodes[i].write(b, names)
	}
	err := b.Flush()
	return c.n, err
}

// write writes one node. The errors of b come out at its Flush.
func (n *Node) write(b *bufio.Writer, names map[string]*Node) {
	guidWord, nodeWord := header(n.Type)
	if n.VendorID != 0 {
		fmt.Fprintf(b, "vendid=0x%x\n", n.VendorID)
	}
	if n.DeviceID != 0 {
		fmt.Fprintf(b, "devid=0x%x\n", n.DeviceID)
	}
	if n.SystemImageGUID != n.GUID {
		fmt.Fprintf(b, "sysimgguid=%v\n", n.SystemImageGUID)
	}
	fmt.Fprintf(b, "%s=%v\n%s %d \"%s\"\t# \"%s\"", guidWord, n.GUID, nodeWord, n.NumPorts(), n.Name, n.Description)
	if n.Type == ib.NodeSwitch {
		kind := "base"
		if n.EnhancedPort0 {
			kind = "enhanced"
		}
		fmt.Fprintf(b, " %s port 0 lid %d lmc %d", kind, n.Ports[0].LID, n.Ports[0].LMC)
	}
	b.WriteByte('\n')
	for i := 1; i < len(n.Ports); i++ {
		n.writePort(b, ib.PortNum(i), names)
	}
	b.WriteByte('\n')
}

func (n *Node) writePort(b *bufio.Writer, num ib.PortNum, names map[string]*Node) {
	p := &n.Ports[num]
	if p.Peer == "" {
		return
	}
	own := ""
	if n.Type != ib.NodeSwitch {
		own = fmt.Sprintf("lid %d lmc %d ", p.LID, p.LMC)
	}
	var lid ib.LID
	description := p.Peer
	if peer := names[p.Peer]; peer != nil {
		description = peer.Description
		lid = peer.Ports[0].LID
		if peer.Type != ib.NodeSwitch && int(p.PeerPort) < len(peer.Ports) {
			lid = peer.Ports[p.PeerPort].LID
		}
	}
	fmt.Fprintf(b, "[%d]\t\"%s\"[%d]\t# %s\"%s\" lid %d %v\n", num, p.Peer, p.PeerPort, own, description, lid, p.Link)
}

// counter counts the bytes that are written through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
