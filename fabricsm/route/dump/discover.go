package dump

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Origin says where and when a fabric was read. A zero Time is left out.
type Origin struct {
	Time time.Time
	Port ib.GUID // port that it was seen from
}

// Discovered writes a fabric in the format of ibnetdiscover: every node that has a link, with its links. Switches come
// first, each type in the order of GUIDs, while ibnetdiscover uses the order of its search. If several nodes have one GUID,
// which the format cannot distinguish, only the first is written. Errors are those of the writer.
func Discovered(w io.Writer, f *topo.Fabric, o Origin) error {
	b := bufio.NewWriter(w)
	d := discovered{b: b, f: f}
	d.header(o)
	for _, t := range []ib.NodeType{ib.NodeSwitch, ib.NodeCA, ib.NodeRouter} {
		for _, id := range f.ByGUID() {
			if d.keeps(id) && f.Node(id).Type == t {
				d.node(id)
			}
		}
	}
	return b.Flush()
}

type discovered struct {
	b *bufio.Writer
	f *topo.Fabric
}

func (d *discovered) header(o Origin) {
	fmt.Fprint(d.b, "#\n")
	if !o.Time.IsZero() {
		fmt.Fprintf(d.b, "# Topology file: generated on %s\n", o.Time.Format(time.ANSIC))
	}
	if id := d.f.PortByGUID(o.Port); id != topo.None {
		fmt.Fprintf(d.b, "#\n# Initiated from node %016x port %016x\n", uint64(d.f.NodeOf(id).GUID), uint64(o.Port))
	}
}

// keeps reports whether a node is the first with its GUID.
func (d *discovered) keeps(id topo.NodeID) bool {
	return d.f.NodeByGUID(d.f.Node(id).GUID) == id
}

// words returns the keywords of a node type, and the letter of node names.
func words(t ib.NodeType) (guid, node, letter string) {
	switch t {
	case ib.NodeSwitch:
		return "switchguid", "Switch", "S"
	case ib.NodeRouter:
		return "rtguid", "Rt", "R"
	default:
		return "caguid", "Ca", "H"
	}
}

func (d *discovered) node(id topo.NodeID) {
	n := d.f.Node(id)
	guid, kind, letter := words(n.Type)
	fmt.Fprintf(d.b, "\nvendid=0x%x\ndevid=0x%x\nsysimgguid=0x%x\n%s=0x%x", n.VendorID, n.DeviceID, uint64(n.SystemImageGUID), guid, uint64(n.GUID))
	if n.Type == ib.NodeSwitch {
		fmt.Fprintf(d.b, "(%x)", uint64(d.f.Port(n.FirstPort).GUID))
	}
	fmt.Fprintf(d.b, "\n%s\t%d \"%s-%016x\"\t\t# \"%s\"", kind, n.NumPorts, letter, uint64(n.GUID), printable(n.Description))
	if n.Type == ib.NodeSwitch {
		zero, port := "base", d.f.Port(n.FirstPort)
		if n.EnhancedPort0 {
			zero = "enhanced"
		}
		fmt.Fprintf(d.b, " %s port 0 lid %d lmc %d", zero, port.LID, port.LMC)
	}
	fmt.Fprint(d.b, "\n")
	for i := 1; i <= int(n.NumPorts); i++ {
		d.port(n.FirstPort + topo.PortID(i))
	}
}

func (d *discovered) port(id topo.PortID) {
	far := d.f.LinkUp(id)
	if far == topo.None || !d.keeps(d.f.Port(far).Node) {
		return
	}
	p, q := d.f.Port(id), d.f.Port(far)
	own := ""
	fmt.Fprintf(d.b, "[%d]", p.Num)
	if d.f.NodeOf(id).Type != ib.NodeSwitch {
		fmt.Fprintf(d.b, "(%x) ", uint64(p.GUID))
		own = fmt.Sprintf("lid %d lmc %d ", p.LID, p.LMC)
	}
	peer := d.f.NodeOf(far)
	_, _, letter := words(peer.Type)
	fmt.Fprintf(d.b, "\t\"%s-%016x\"[%d]", letter, uint64(peer.GUID), q.Num)
	owner := q
	if peer.Type == ib.NodeSwitch {
		owner = d.f.Port(peer.FirstPort)
	} else {
		fmt.Fprintf(d.b, "(%x) ", uint64(q.GUID))
	}
	fmt.Fprintf(d.b, "\t\t# %s\"%s\" lid %d %s%v\n", own, printable(peer.Description), owner.LID, width(p.Width), p.Speed)
}

// GUIDs writes OpenSM's guid2lid: each end port with its first and last LID.
// Errors are those of the writer.
func GUIDs(w io.Writer, f *topo.Fabric) error {
	b := bufio.NewWriter(w)
	last := ib.GUID(0)
	for _, id := range f.EndPorts() {
		p := f.Port(id)
		if p.LID == 0 || p.GUID == last {
			continue
		}
		last = p.GUID
		fmt.Fprintf(b, "%v 0x%04x 0x%04x\n\n", p.GUID, uint16(p.LID), uint16(p.LID)+1<<p.LMC-1)
	}
	return b.Flush()
}
