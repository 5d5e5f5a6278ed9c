package dfsssp_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dfsssp"
	"portcullis/fabricsm/route/routetest"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// random is an irregular fabric that is the same in every run.
func random(switches int, seed uint64) *topotest.Kit {
	return topotest.Random(switches, func(most int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed>>33) % (most + 1)
	})
}

// TestGolden holds how few lanes are enough and how even the load is then.
func TestGolden(t *testing.T) {
	tests := []struct {
		name  string
		kit   *topotest.Kit
		lanes int
		worst int64
	}{
		{"one switch", topotest.Single(4, 36), 1, 0},
		{"two levels", topotest.FatTree2(324, 36), 1, 306},
		{"three levels", topotest.FatTree3(432, 12), 1, 426},
		{"ring of 5", topotest.Torus(5, 1, 1), 2, 3},
		{"ring of 12", topotest.Torus(12, 1, 1), 2, 20},
		{"torus 4x4", topotest.Torus(4, 4, 2), 1, 32},
		{"torus 5x5", topotest.Torus(5, 5, 2), 3, 60},
		{"torus 6x6", topotest.Torus(6, 6, 4), 4, 576},
		{"torus 8x8", topotest.Torus(8, 8, 4), 4, 2656},
		{"irregular", random(60, 3), 2, 3450},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.kit.Fabric()
			if tt.lanes > 1 {
				_, err := dfsssp.Engine{Lanes: tt.lanes - 1}.Route(f, nil)
				if err == nil || !strings.Contains(err.Error(), "virtual lanes; allow more, or use updn") {
					t.Errorf("%d lanes: error %v", tt.lanes-1, err)
				}
			}
			tables, r := routetest.Must(t, dfsssp.Engine{Lanes: tt.lanes}, f, nil)
			if tables.Layers() != tt.lanes || r.WorstLoad != tt.worst {
				t.Errorf("%d lanes, worst link %d routes; want %d and %d", tables.Layers(), r.WorstLoad, tt.lanes, tt.worst)
			}
		})
	}
}

// TestSpareLanesShareTheRoutes: a fabric that needs more than one lane has
// its routes on all that there are, and none has far more than its share.
func TestSpareLanesShareTheRoutes(t *testing.T) {
	f := topotest.Torus(6, 6, 2).Fabric()
	tables, _ := routetest.Must(t, dfsssp.Engine{Lanes: 8}, f, nil)
	if tables.Layers() != 8 {
		t.Fatalf("%d lanes are used of 8", tables.Layers())
	}
	count := make(map[ib.SL]int)
	for i, a := range f.Switches() {
		for _, b := range f.Switches()[:i] {
			count[tables.PairSL(a, b)]++
		}
	}
	for sl := range ib.SL(8) {
		if mean := 36 * 35 / 2 / 8; count[sl] == 0 || count[sl] > 3*mean/2 {
			t.Errorf("lane %d has %d pairs of switches, the mean is %d", sl, count[sl], mean)
		}
	}
}

// TestFewestLanesOfLinksCount: a link with two lanes lets all have two.
func TestFewestLanesOfLinksCount(t *testing.T) {
	k := topotest.Torus(6, 6, 2)
	id := k.PortOf(3, 1)
	p := k.Port(id)
	p.VLCap = 2
	k.SetPort(id, p)
	_, err := dfsssp.Engine{Lanes: 8}.Route(k.Fabric(), nil)
	const want = "shortest paths: these routes need more virtual lanes than the 2 that switch 0x0010000100000004 port 1 carries"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLostCableMovesLittle: pairs whose path did not use a lost cable keep path and service level, except a few that a new
// cycle moves to another lane.
func TestLostCableMovesLittle(t *testing.T) {
	k := topotest.Torus(6, 6, 2)
	f := k.Fabric()
	before, _ := routetest.Must(t, dfsssp.Engine{Lanes: 8}, f, nil)
	k.Cut(f.Switches()[7], 1)
	after, _ := routetest.Must(t, dfsssp.Engine{Lanes: 8}, k.Fabric(), before)
	entries, moved := 0, 0
	for _, sw := range f.Switches() {
		for lid, port := range before.LFT(sw) {
			if port == ib.NoPort {
				continue
			}
			entries++
			if after.LFT(sw)[lid] != port {
				moved++
			}
		}
	}
	levels := 0
	for i, a := range f.Switches() {
		for _, b := range f.Switches()[:i] {
			if before.PairSL(a, b) != after.PairSL(a, b) {
				levels++
			}
		}
	}
	if moved == 0 || moved > entries/20 || levels > 36*35/2/20 {
		t.Errorf("%d of %d entries and %d of %d service levels changed", moved, entries, levels, 36*35/2)
	}
}

// TestSeveralLIDs: with LMC the LIDs of a port are reached over several ways.
func TestSeveralLIDs(t *testing.T) {
	k := topotest.FatTree2(36, 36)
	for _, h := range k.Hosts {
		k.SetLMC(h, 1, 2)
	}
	f := k.Fabric()
	tables, _ := routetest.Must(t, dfsssp.Engine{Lanes: 8}, f, nil)
	leaf := f.Port(f.Port(f.PortOf(k.Hosts[0], 1)).Peer).Node
	base := f.Port(f.PortOf(k.Hosts[35], 1)).LID
	ports := make(map[ib.PortNum]bool)
	for i := range ib.LID(4) {
		ports[tables.LFT(leaf)[base+i]] = true
	}
	if len(ports) != 4 {
		t.Errorf("4 LIDs of a port leave the leaf by %d ports", len(ports))
	}
}

// TestRandomFabrics: the checker accepts the tables of the engine, also after changes, and equal fabrics get equal tables.
func TestRandomFabrics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }
		k := topotest.Random(12, draw)
		var prev *route.Tables
		for range 3 {
			f := k.Fabric()
			e := dfsssp.Engine{Lanes: 8}
			tables, err := e.Route(f, prev)
			if err != nil {
				t.Fatal(err)
			}
			if err := route.Check(f, tables).Err(); err != nil {
				t.Fatal(err)
			}
			again, err := e.Route(f, prev)
			if err != nil {
				t.Fatal(err)
			}
			for _, sw := range f.Switches() {
				if string(portBytes(again.LFT(sw))) != string(portBytes(tables.LFT(sw))) {
					t.Fatalf("switch %v: the same fabric got other tables", f.Node(sw).GUID)
				}
			}
			prev = tables
			k.Disconnect(topo.PortID(draw(k.NumPorts() - 1)))
		}
	})
}

func portBytes(row []ib.PortNum) []byte {
	b := make([]byte, len(row))
	for i, p := range row {
		b[i] = byte(p)
	}
	return b
}

// BenchmarkRoute has the largest of the lab's trees, and fabrics that need
// several lanes.
func BenchmarkRoute(b *testing.B) {
	for name, k := range map[string]*topotest.Kit{
		"ft3-5184": topotest.FatTree3(5184, 36), "torus-8x8": topotest.Torus(8, 8, 18), "irregular-200": random(200, 3),
	} {
		f := k.Fabric()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (dfsssp.Engine{Lanes: 8}).Route(f, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
