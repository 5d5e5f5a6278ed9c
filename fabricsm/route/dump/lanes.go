package dump

import (
	"bufio"
	"fmt"
	"io"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// PathSLs writes the service level from every CA to every LID of another, for ibdmchk's option -c. Each line has node GUID,
// LID and level. For a CA with several ports the first that has a LID counts, as the format has nodes only. Errors are
// those of the writer.
func PathSLs(w io.Writer, f *topo.Fabric, t *route.Tables) error {
	b := bufio.NewWriter(w)
	owner := owners(f)
	for _, id := range f.ByGUID() {
		from := firstLID(f, id)
		if from == 0 {
			continue
		}
		for l := 1; l <= int(t.MaxLID); l++ {
			to := ib.LID(l)
			if port := owner[to]; port != 0 && f.NodeOf(port-1).Type == ib.NodeCA {
				fmt.Fprintf(b, "%v %d %d\n", f.Node(id).GUID, to, t.SL(from, to))
			}
		}
	}
	return b.Flush()
}

// firstLID returns the LID of a CA's first port that has one, 0 without one and for a node that is not a CA.
func firstLID(f *topo.Fabric, id topo.NodeID) ib.LID {
	n := f.Node(id)
	if n.Type != ib.NodeCA {
		return 0
	}
	for i := 1; i <= int(n.NumPorts); i++ {
		if lid := f.Port(n.FirstPort + topo.PortID(i)).LID; lid != 0 {
			return lid
		}
	}
	return 0
}

// SL2VL writes the virtual lanes of every switch for ibdmchk's option -d: node
// GUID, ingress and egress port, and the lanes of all service levels, two to a
// byte. Errors are those of the writer.
func SL2VL(w io.Writer, f *topo.Fabric, t *route.Tables) error {
	b := bufio.NewWriter(w)
	for _, id := range f.Switches() {
		n := f.Node(id)
		for in := 0; in <= int(n.NumPorts); in++ {
			for out := 1; out <= int(n.NumPorts); out++ {
				if in == out {
					continue
				}
				fmt.Fprintf(b, "%v %d %d", n.GUID, in, out)
				vl := t.SwitchLanes(id, ib.PortNum(in), ib.PortNum(out))
				for sl := 0; sl < len(vl); sl += 2 {
					fmt.Fprintf(b, " 0x%x%x", uint8(vl[sl]), uint8(vl[sl+1]))
				}
				b.WriteByte('\n')
			}
		}
	}
	return b.Flush()
}
