package layered

import (
	"testing"

	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// TestFirstFit: a pair is above the first layer only because it closes a cycle in every layer below.
func TestFirstFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := topotest.Random(8, func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }).Fabric()
		tables, err := minhop.Engine{}.Route(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := route.NewGraph(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := newDealer(g, tables, route.MaxLayers)
		if !d.deal() {
			return // it needs more lanes than there can be
		}
		d.publish(tables, d.used())
		if err := route.Check(f, tables).Err(); err != nil {
			t.Fatal(err)
		}
		for p, layer := range d.layer {
			for below := range layer {
				down := func(a, b int32) uint8 {
					if pair(a, b) == p {
						return below
					}
					return d.layer[pair(a, b)]
				}
				tables.SetLayers(g, d.used(), down)
				if route.Check(f, tables).CreditLoop == nil {
					t.Fatalf("pair %d is in layer %d, and layer %d would do", p, layer, below)
				}
			}
		}
	})
}

// TestLanesAreThoseOfLinks: hosts' links and cut cables do not count.
func TestLanesAreThoseOfLinks(t *testing.T) {
	k := topotest.Torus(3, 3, 1)
	set := func(id topo.PortID, c ib.VLCap) {
		p := k.Port(id)
		p.VLCap = c
		k.SetPort(id, p)
	}
	set(k.PortOf(0, 5), 1)
	set(k.PortOf(0, 1), 1)
	k.Cut(0, 1)
	if most, narrow := Lanes(k.Fabric(), 20); most != route.MaxLayers || narrow != topo.None {
		t.Errorf("%d lanes, limited by port %d", most, narrow)
	}
	set(k.PortOf(0, 3), 3)
	if most, narrow := Lanes(k.Fabric(), 20); most != 4 || narrow != k.PortOf(0, 3) {
		t.Errorf("%d lanes, limited by port %d, want 4 by port %d", most, narrow, k.PortOf(0, 3))
	}
}
