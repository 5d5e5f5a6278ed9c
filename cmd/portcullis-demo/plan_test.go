package main

import (
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
)

func TestPlanIsUnambiguous(t *testing.T) {
	guids, places := map[ib.GUID]string{}, map[ib.Place]string{}
	for _, h := range plannedHosts() {
		for _, a := range h.hcas {
			for _, g := range []ib.GUID{a.nodeGUID, a.portGUID} {
				if other := guids[g]; other != "" {
					t.Errorf("GUID %v of %s is also that of %s", g, a.node, other)
				}
				guids[g] = a.node
			}
			if other := places[a.place]; other != "" {
				t.Errorf("%s and %s are cabled to %v", a.node, other, a.place)
			}
			places[a.place] = a.node
		}
	}
	if got, want := len(places), hostCount*hcasPerHost; got != want {
		t.Errorf("got %d cabled HCAs, want %d", got, want)
	}
}

// The proofs walk directed routes; a route to the wrong port would prove
// nothing. Here they are walked over the netlist that ibsim gets.
func TestRoutesLeadWhereTheySay(t *testing.T) {
	fabric, err := netlist.Parse("plan", []byte(netlistText(plannedHosts())))
	if err != nil {
		t.Fatal(err)
	}
	walk := func(route string) *netlist.Node {
		at := fabric.Find(smNodeName)
		for _, hop := range strings.Split(route, ",")[1:] {
			port, err := ib.ParsePortNum(hop)
			if err != nil || int(port) > at.NumPorts() || at.Ports[port].Peer == "" {
				t.Fatalf("route %s: no cable on port %s of %s", route, hop, at.Name)
			}
			at = fabric.Find(at.Ports[port].Peer)
		}
		return at
	}
	for _, h := range plannedHosts() {
		for _, a := range h.hcas {
			if got := walk(toHCA(a)); got.GUID != a.nodeGUID || got.PortGUID(1) != a.portGUID {
				t.Errorf("route %s ends at %s, want %s", toHCA(a), got.Name, a.node)
			}
			if got := walk(toLeaf(a.leaf)); got.GUID != a.place.Switch {
				t.Errorf("route %s ends at %s, want the leaf of %s", toLeaf(a.leaf), got.Name, a.node)
			}
		}
	}
}
