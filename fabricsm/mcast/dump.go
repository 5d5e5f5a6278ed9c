package mcast

import (
	"bufio"
	"fmt"
	"io"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// WriteFDBs writes trees as OpenSM's opensm.mcfdbs: for every switch that is part
// of any, by GUID, the multicast LIDs and the ports that it sends each to. Errors
// are those of the writer.
func WriteFDBs(w io.Writer, f *topo.Fabric, trees []Tree) error {
	type line struct {
		mlid  ib.LID
		ports Ports
	}
	lines := make(map[topo.NodeID][]line)
	for _, t := range trees {
		for _, b := range t.Branches {
			lines[b.Switch] = append(lines[b.Switch], line{t.MLID, b.Ports})
		}
	}
	b := bufio.NewWriter(w)
	for _, id := range f.Switches() {
		if len(lines[id]) == 0 {
			continue
		}
		fmt.Fprintf(b, "\nSwitch %v\nLID    : Out Port(s)\n", f.Node(id).GUID)
		for _, l := range lines[id] {
			fmt.Fprintf(b, "0x%04X :", uint16(l.mlid))
			l.ports.Each(func(n ib.PortNum) { fmt.Fprintf(b, " 0x%03X ", n) })
			fmt.Fprintln(b)
		}
	}
	return b.Flush()
}
