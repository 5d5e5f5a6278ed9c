package sm_test

import (
	"fmt"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// endPort is an end port of the netlist with its cable.
type endPort struct {
	node  *netlist.Node
	num   ib.PortNum
	place ib.Place // as the netlist cables it
	peer  string
	pnum  ib.PortNum
}

// hosts returns all CA ports but that of the SM, in the order of the netlist.
func hosts(list *netlist.Netlist) (out []endPort) {
	byName := make(map[string]*netlist.Node, len(list.Nodes)) // Find looks through all nodes
	for i := range list.Nodes {
		byName[list.Nodes[i].Name] = &list.Nodes[i]
	}
	for i := range list.Nodes {
		n := &list.Nodes[i]
		if n.Type != ib.NodeCA || n.Name == "sm" {
			continue
		}
		for num := 1; num < len(n.Ports); num++ {
			p := n.Ports[num]
			if p.Peer == "" {
				continue
			}
			out = append(out, endPort{
				node: n, num: ib.PortNum(num), peer: p.Peer, pnum: p.PeerPort,
				place: ib.Place{Switch: byName[p.Peer].GUID, Port: p.PeerPort},
			})
		}
	}
	return out
}

func (h *endPort) grant(k ib.PKey) sm.Grant {
	return sm.Grant{GUID: h.node.PortGUID(h.num), PKey: k, Place: h.place}
}

func list(t testing.TB, l *netlist.Netlist, err error) *netlist.Netlist {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// inactive lists cabled ports that are not Active in a view.
func inactive(v *sm.View) (bad []string) {
	f := v.Fabric
	for i := range f.Ports() {
		p := f.Port(i)
		if f.NodeOf(i).Type != 0 && p.Peer != topo.None && p.State != ib.PortActive {
			bad = append(bad, fmt.Sprintf("%v/%d %v", f.NodeOf(i).GUID, p.Num, p.State))
		}
	}
	return bad
}
