package dnup_test

import (
	"testing"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dnup"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// hosted is two leaves below two spines, with a host on one of the spines, and
// a switch on top of the spines that has none.
func hosted() *topotest.Kit {
	k := topotest.FatTree2(72, 36)
	f := k.Fabric()
	spine := f.NodeByGUID(topotest.SwitchGUID(2, 1))
	top := k.Switch(3, 1, 8)
	k.Cut(spine, 36)
	k.Cut(spine, 35)
	k.Link(k.Host(1), spine)
	k.Link(spine, top)
	return k
}

func TestRoute(t *testing.T) {
	tests := []struct {
		name string
		kit  *topotest.Kit
		hops int
	}{
		{"one switch", topotest.Single(3, 8), 0},
		{"two levels", topotest.FatTree2(324, 36), 2},
		{"three levels", topotest.FatTree3(54, 6), 4},
		{"a host on a spine", hosted(), 2},
		{"islands", topotest.Islands(2), 0},
		{"row", topotest.Chain(5, 1), 4},
		{"ring of hosts", topotest.Torus(5, 1, 1), 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.kit.Fabric()
			tables, err := dnup.Engine{}.Route(f, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := route.Check(f, tables)
			if err := r.Err(); err != nil || r.MaxHops != tt.hops {
				t.Errorf("longest route %d hops, want %d; %v", r.MaxHops, tt.hops, err)
			}
		})
	}
}

// TestLostCablesDoNotCloseCircles: a tree that lost cables at random is routed, or the checker reports an error.
func TestLostCablesDoNotCloseCircles(t *testing.T) {
	k := topotest.FatTree3(54, 6)
	f := k.Fabric()
	accepted := 0
	for i, sw := range f.Switches() {
		port := f.PortOf(sw, 5)
		peer := f.Port(port).Peer
		if peer == topo.None || i%3 != 0 {
			continue
		}
		k.Disconnect(port)
		cut := k.Fabric()
		tables, err := dnup.Engine{}.Route(cut, nil)
		if err != nil {
			t.Fatal(err)
		}
		if route.Check(cut, tables).Err() == nil {
			accepted++
		}
		k.Connect(port, peer)
	}
	if accepted == 0 {
		t.Error("no tree with one cable lost was accepted")
	}
}
