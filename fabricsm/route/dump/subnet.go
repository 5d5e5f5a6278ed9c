package dump

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Subnet writes opensm-subnet.lst: one line for each direction of every cable
// that is up, by node GUID and port. Errors are those of the writer.
func Subnet(w io.Writer, f *topo.Fabric) error { return SubnetSeenFrom(w, f, 0) }

// SubnetSeenFrom is Subnet that marks the node of the subnet manager's port, as
// OpenSM does.
func SubnetSeenFrom(w io.Writer, f *topo.Fabric, sm ib.GUID) error {
	b := bufio.NewWriter(w)
	own := topo.NodeID(topo.None)
	if id := f.PortByGUID(sm); id != topo.None {
		own = f.Port(id).Node
	}
	for _, id := range f.ByGUID() {
		n := f.Node(id)
		for i := 1; i <= int(n.NumPorts); i++ {
			near := n.FirstPort + topo.PortID(i)
			if far := f.LinkUp(near); far != topo.None {
				writeEnd(b, f, near, own, "%06X")
				writeEnd(b, f, far, own, "%08X")
				p := f.Port(near)
				fmt.Fprintf(b, "PHY=%s LOG=%s SPD=%s\n", width(p.Width), state(p.State), speed(p.Speed))
			}
		}
	}
	return b.Flush()
}

// writeEnd describes one end of a cable. Numbers are hexadecimal, also that of the port. OpenSM writes two digits more for
// the vendor at the far end.
func writeEnd(w io.Writer, f *topo.Fabric, id topo.PortID, own topo.NodeID, vendor string) {
	p, n, kind := f.Port(id), f.NodeOf(id), "CA"
	owner := p // of the LID and the GUID
	switch n.Type {
	case ib.NodeSwitch:
		owner, kind = f.Port(n.FirstPort), "SW"
	case ib.NodeRouter:
		kind = "RT"
	case ib.NodeCA:
	}
	mark := ""
	if p.Node == own {
		mark = "-SM"
	}
	fmt.Fprintf(w, "{ %s%s Ports:%02X SystemGUID:%016x NodeGUID:%016x PortGUID:%016x VenID:%s DevID:%04X Rev:%08X {%s} LID:%04X PN:%02X } ",
		kind, mark, n.NumPorts, uint64(n.SystemImageGUID), uint64(n.GUID), uint64(owner.GUID),
		fmt.Sprintf(vendor, n.VendorID), n.DeviceID, n.Revision, printable(n.Description), uint16(owner.LID), uint8(p.Num))
}

// printable makes a description harmless in a line with braces and quotes.
func printable(description string) string {
	if description == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`{}'"`, r) {
			return '_'
		}
		return r
	}, description)
}

func width(w ib.LinkWidth) string {
	if n := w.Lanes(); n > 0 {
		return fmt.Sprintf("%dx", n)
	}
	return "??"
}

// speed returns the rate of one lane in Gb/s.
func speed(s ib.Speed) string {
	if rate := s.LaneRate(); rate > 0 {
		return fmt.Sprint(float64(rate) / 1000)
	}
	return "??"
}

func state(s ib.PortState) string {
	switch s {
	case ib.PortInit:
		return "INI"
	case ib.PortArmed:
		return "ARM"
	case ib.PortActive:
		return "ACT"
	case ib.PortDown:
		return "DWN"
	default:
		return "???"
	}
}
