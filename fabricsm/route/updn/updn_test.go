package updn

import (
	"testing"

	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/routetest"
	"portcullis/fabricsm/topo/topotest"
)

// TestGolden tests that up-down routing of regular fabrics is as short and as even as shortest paths, and its cost
// elsewhere.
func TestGolden(t *testing.T) {
	tests := []struct {
		name  string
		kit   *topotest.Kit
		worst int64
		hops  int
	}{
		{"one switch", topotest.Single(4, 36), 0, 0},
		{"two levels, 324 hosts", topotest.FatTree2(324, 36), 324 - 18, 2},
		{"three levels, 1944 hosts", topotest.FatTree3(1944, 36), 1944 - 18, 4},
		{"chain of 20", topotest.Chain(20, 1), 10 * 10, 19},
		{"ring of 6", topotest.Torus(6, 1, 1), 7, 4},
		{"torus 4x4", topotest.Torus(4, 4, 1), 20, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, r := routetest.Must(t, Engine{}, tt.kit.Fabric(), nil)
			if r.WorstLoad != tt.worst || r.MaxHops != tt.hops {
				t.Errorf("worst link %d routes, longest route %d hops; want %d and %d", r.WorstLoad, r.MaxHops, tt.worst, tt.hops)
			}
		})
	}
}

// TestRoots puts listed switches on top.
func TestRoots(t *testing.T) {
	var spines []ib.GUID
	for i := range 10 {
		spines = append(spines, topotest.SwitchGUID(2, i+1))
	}
	tests := []struct {
		name  string
		kit   *topotest.Kit
		roots []ib.GUID
		worst int64
		hops  int
		err   string
	}{
		{"nine spines, a tenth away", topotest.FatTree2(324, 36), spines, 324 - 18, 2, ""},
		{"some spines", topotest.FatTree2(324, 36), spines[:3], 3 * (324 - 18), 2, ""},
		{"a corner of a torus", topotest.Torus(4, 4, 1), []ib.GUID{topotest.SwitchGUID(1, 6)}, 17, 4, ""},
		{"two islands, one root", topotest.Islands(3), []ib.GUID{topotest.SwitchGUID(1, 2)}, 0, 0, ""},
		{
			"none is there", topotest.Single(3, 4), spines, 0, 0,
			"none of the 10 listed roots is a switch of the fabric, not 0x0010000200000001 either; list node GUIDs of switches",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.kit.Fabric()
			tables, err := Engine{Roots: tt.roots}.Route(f, nil)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.err {
				t.Fatalf("got %q, want %q", got, tt.err)
			}
			if err != nil {
				return
			}
			r := route.Check(f, tables)
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
			if r.WorstLoad != tt.worst || r.MaxHops != tt.hops {
				t.Errorf("worst link %d routes, longest route %d hops; want %d and %d", r.WorstLoad, r.MaxHops, tt.worst, tt.hops)
			}
		})
	}
}

// TestRootsInTheWrongPlace: with CAs on two roots, packets between them go down and up again, and the checker rejects the
// cycle that this closes.
func TestRootsInTheWrongPlace(t *testing.T) {
	f := topotest.Torus(6, 1, 1).Fabric()
	tables, err := Engine{Roots: []ib.GUID{topotest.SwitchGUID(1, 1), topotest.SwitchGUID(1, 3), topotest.SwitchGUID(1, 5)}}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := route.Check(f, tables)
	if r.CreditLoop == nil || len(r.Findings) > 0 {
		t.Errorf("credit loop %v, findings %v; want a loop and nothing else", r.CreditLoop, r.Findings)
	}
}

// TestNeverUpAfterDown follows every route on random fabrics.
func TestNeverUpAfterDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := topotest.Random(14, func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }).Fabric()
		tables, err := Engine{}.Route(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := route.NewGraph(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		pos := make(map[int32]int)
		for i, s := range rank(g, nil) {
			pos[s] = i
		}
		if len(pos) != len(g.IDs) {
			t.Fatalf("%d of %d switches have a rank", len(pos), len(g.IDs))
		}
		for lid := ib.LID(1); lid <= tables.MaxLID; lid++ {
			for s := range g.IDs {
				follow(t, g, tables, pos, int32(s), lid)
			}
		}
	})
}

func follow(t *rapid.T, g *route.Graph, tables *route.Tables, pos map[int32]int, s int32, lid ib.LID) {
	descending := false
	for {
		e := g.EdgeAt(s, tables.LFT(g.IDs[s])[lid])
		if e < 0 {
			return
		}
		up := pos[g.To[e]] < pos[s]
		if up && descending {
			t.Fatalf("switch %v sends LID %v up after it came down", g.GUID(s), lid)
		}
		descending = !up
		s = g.To[e]
	}
}

// TestIDs: if two neighbours are equally far from the root, packets to the hosts behind both go up to the one with the
// lower number.
func TestIDs(t *testing.T) {
	k := topotest.Torus(5, 1, 1) // 0 is the root, 2 and 3 are equally far from it
	f := k.Fabric()
	root := []ib.GUID{topotest.SwitchGUID(1, 1)}
	third, fourth := topotest.SwitchGUID(1, 3), topotest.SwitchGUID(1, 4)
	before := func(ids map[ib.GUID]int) bool {
		g, err := route.NewGraph(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := Engine{Roots: root, IDs: ids}
		listed, err := e.present(g)
		if err != nil {
			t.Fatal(err)
		}
		order := e.byID(g, listed, rank(g, listed))
		place := make(map[ib.GUID]int)
		for i, s := range order {
			place[g.GUID(s)] = i
		}
		if place[root[0]] != 0 || place[third] < 3 || place[fourth] < 3 {
			t.Errorf("places %v: the root is first, and what is farthest is last", place)
		}
		tables, err := e.Route(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := route.Check(f, tables).Err(); err != nil {
			t.Error(err)
		}
		return place[third] < place[fourth]
	}
	if !before(map[ib.GUID]int{third: 1, fourth: 2}) || before(map[ib.GUID]int{third: 2, fourth: 1}) || before(map[ib.GUID]int{fourth: 7}) {
		t.Error("the order of switches is not that of their numbers")
	}
}
