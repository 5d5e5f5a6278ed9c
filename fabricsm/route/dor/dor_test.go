package dor

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/routetest"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// TestGolden holds how many lanes are needed and how even the load is.
func TestGolden(t *testing.T) {
	tests := []struct {
		name   string
		kit    *topotest.Kit
		layers int
		worst  int64
		hops   int
	}{
		{"one switch", topotest.Single(4, 36), 1, 0, 0},
		{"chain of 20", topotest.Chain(20, 1), 1, 10 * 10, 19},
		{"ring of 5", topotest.Torus(5, 1, 1), 2, 3, 2},
		{"torus 4x4", topotest.Torus(4, 4, 2), 2, 48, 4},
		{"torus 5x5", topotest.Torus(5, 5, 2), 3, 60, 4},
		{"torus 6x6", topotest.Torus(6, 6, 4), 4, 576, 6},
		{"torus 8x8", topotest.Torus(8, 8, 4), 5, 1280, 8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.kit.Fabric()
			if tt.layers > 1 {
				if _, err := (Engine{Lanes: tt.layers - 1}).Route(f, nil); err == nil {
					t.Errorf("%d lanes are enough", tt.layers-1)
				}
			}
			tables, r := routetest.Must(t, Engine{Lanes: tt.layers}, f, nil)
			if tables.Layers() != tt.layers || r.WorstLoad != tt.worst || r.MaxHops != tt.hops {
				t.Errorf("%d layers, worst link %d routes, longest route %d hops; want %d, %d and %d",
					tables.Layers(), r.WorstLoad, r.MaxHops, tt.layers, tt.worst, tt.hops)
			}
		})
	}
}

// TestDimensionOrder: on a torus packets go along x, ports 1 and 2, before y.
func TestDimensionOrder(t *testing.T) {
	f := topotest.Torus(5, 4, 1).Fabric()
	tables, err := Engine{Lanes: 8}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, home := range f.Switches() {
		lid := f.Port(f.PortOf(home, 0)).LID
		for _, sw := range f.Switches() {
			for turned := false; sw != home; {
				out := tables.LFT(sw)[lid]
				if turned && out <= 2 {
					t.Fatalf("to LID %v: switch %v turns back to x by port %d", lid, f.Node(sw).GUID, out)
				}
				turned = out > 2
				sw = f.Port(f.LinkUp(f.PortOf(sw, out))).Node
			}
		}
	}
}

// TestPortOrder: with a list, packets go along y before x, and switches that are
// not in it keep to the order of port numbers.
func TestPortOrder(t *testing.T) {
	f := topotest.Grid([3]int{4, 3, 1}, [3]bool{}, 1).Fabric()
	ports := make(map[ib.GUID][]ib.PortNum)
	for _, id := range f.Switches() {
		ports[f.Node(id).GUID] = []ib.PortNum{3, 4}
	}
	corner := f.Switches()[0]
	lid := f.Port(f.PortOf(f.Switches()[11], 0)).LID
	for _, tt := range []struct {
		name string
		e    Engine
		want ib.PortNum
	}{{"by number", Engine{}, 1}, {"y first", Engine{Ports: ports}, 3}} {
		tables, err := tt.e.Route(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := route.Check(f, tables).Err(); err != nil || tables.Layers() != 1 {
			t.Errorf("%s: %d lanes, %v", tt.name, tables.Layers(), err)
		}
		if got := tables.LFT(corner)[lid]; got != tt.want {
			t.Errorf("%s: the corner sends to the opposite one by port %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestTooFewLanes(t *testing.T) {
	const first = "dimension order: these routes need more "
	limit := func(k *topotest.Kit, port topo.PortID) *topotest.Kit {
		p := k.Port(port)
		p.VLCap = 1
		k.SetPort(port, p)
		return k
	}
	k := topotest.Torus(5, 1, 1)
	tests := []struct {
		name string
		kit  *topotest.Kit
		e    Engine
		want string
	}{
		{"none allowed", topotest.Torus(5, 1, 1), Engine{}, first + "than 1 virtual lanes; allow more, or use updn"},
		{"a large torus", topotest.Torus(12, 10, 1), Engine{Lanes: 20}, first + "than 8 virtual lanes; allow more, or use updn"},
		{
			"a port has one", limit(k, k.PortOf(2, 2)),
			Engine{Lanes: 8},
			first + "virtual lanes than the 1 that switch 0x0010000100000003 port 2 carries",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.e.Route(tt.kit.Fabric(), nil); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestSL: a pair of LIDs has one SL for both directions, and it is a lane.
func TestSL(t *testing.T) {
	f := topotest.Torus(4, 4, 1).Fabric()
	tables, err := Engine{Lanes: 8}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	vl, used := tables.SLtoVL(), make(map[ib.SL]bool)
	for a := ib.LID(1); a <= tables.MaxLID; a++ {
		for b := ib.LID(1); b <= tables.MaxLID; b++ {
			sl := tables.SL(a, b)
			used[sl] = true
			if back := tables.SL(b, a); back != sl || int(vl[sl]) != int(sl) {
				t.Fatalf("LID %v to %v has SL %d, VL %d, and back SL %d", a, b, sl, vl[sl], back)
			}
		}
	}
	if len(used) != tables.Layers() || vl[tables.Layers()] != ib.VL15 {
		t.Errorf("%d SLs in use, %d layers; the next SL goes to VL %d", len(used), tables.Layers(), vl[tables.Layers()])
	}
}
