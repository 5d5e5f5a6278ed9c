package dfp_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dfp"
	"portcullis/fabricsm/route/routetest"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// TestGolden holds lanes, balance and length of routes of whole fabrics. Data
// between leaves is on lane 0.
func TestGolden(t *testing.T) {
	tests := []struct {
		name  string
		kit   *topotest.Kit
		lanes int
		worst int64
		hops  int
	}{
		{"2 groups", topotest.DragonflyPlus(2, 2, 2, 4, 4), 1, 24, 3},
		{"4 groups, a link between each two", topotest.DragonflyPlus(4, 3, 3, 2, 1), 2, 36, 3},
		{"4 groups, a link to each spine", topotest.DragonflyPlus(4, 3, 3, 2, 3), 1, 24, 3},
		{"9 groups", topotest.DragonflyPlus(9, 4, 4, 4, 2), 2, 152, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.kit.Fabric()
			tables, r := routetest.Must(t, dfp.Engine{Lanes: 8}, f, nil)
			if tables.Layers() != tt.lanes || r.WorstLoad != tt.worst || r.MaxHops != tt.hops {
				t.Errorf("%d lanes, worst link %d routes, longest %d hops; want %d, %d and %d", tables.Layers(), r.WorstLoad, r.MaxHops, tt.lanes, tt.worst, tt.hops)
			}
			for i, a := range tt.kit.Hosts {
				for _, b := range tt.kit.Hosts[:i] {
					if sl := tables.SL(f.Port(f.PortOf(a, 1)).LID, f.Port(f.PortOf(b, 1)).LID); sl != 0 {
						t.Fatalf("data between hosts %d and %d has service level %d", a, b, sl)
					}
				}
			}
		})
	}
}

// group returns the group of a switch of the kit by its GUID.
func group(g ib.GUID, leaves, spines int) int {
	index := int(g&0xffff) - 1
	if g>>32&0xf == 1 {
		return index / leaves
	}
	return index / spines
}

// TestLosses: after any losses, as long as groups hold together, all is reached
// and no packet changes groups more often than it must.
func TestLosses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }
		groups, leaves, spines := 2+draw(3), 1+draw(3), 1+draw(3)
		k := topotest.DragonflyPlus(groups, leaves, spines, 2, 1+draw(2*spines))
		list := make(map[ib.GUID]int)
		f := k.Fabric()
		for _, id := range f.Switches() {
			list[f.Node(id).GUID] = group(f.Node(id).GUID, leaves, spines)
		}
		var prev *route.Tables
		for range 4 {
			f = k.Fabric()
			for _, e := range []dfp.Engine{{Lanes: 8}, {Lanes: 8, Groups: list}} {
				tables, err := e.Route(f, prev)
				if err != nil {
					if !strings.Contains(err.Error(), "in parts") && !strings.Contains(err.Error(), "no group") && !strings.Contains(err.Error(), "one group") {
						t.Fatal(err)
					}
					continue
				}
				if err := route.Check(f, tables).Err(); err != nil {
					t.Fatal(err)
				}
				if len(e.Groups) > 0 {
					checkChanges(t, f, tables, list, groups)
				}
				prev = tables
			}
			sw := f.Switches()[draw(len(f.Switches())-1)]
			for port := 1; port <= int(f.Node(sw).NumPorts); port++ {
				id := f.PortOf(sw, ib.PortNum(port))
				if peer := f.LinkUp(id); peer != topo.None && f.NodeOf(peer).Type == ib.NodeSwitch && draw(2) == 0 {
					k.Disconnect(id)
				}
			}
		}
	})
}

// checkChanges walks all routes between hosts and compares the groups they pass
// with the fewest there can be.
func checkChanges(t *rapid.T, f *topo.Fabric, tables *route.Tables, of map[ib.GUID]int, groups int) {
	far := make([][]int, groups)
	for a := range far {
		far[a] = make([]int, groups)
		for b := range far[a] {
			if far[a][b] = groups; a == b {
				far[a][b] = 0
			}
		}
	}
	groupOf := func(id topo.NodeID) int { return of[f.Node(id).GUID] }
	for i := range f.Ports() {
		peer := f.LinkUp(i)
		if n := f.NodeOf(i); peer != topo.None && n.Type == ib.NodeSwitch && f.NodeOf(peer).Type == ib.NodeSwitch {
			if a, b := groupOf(f.Port(i).Node), groupOf(f.Port(peer).Node); a != b {
				far[a][b] = 1
			}
		}
	}
	for via := range far {
		for a := range far {
			for b := range far {
				far[a][b] = min(far[a][b], far[a][via]+far[via][b])
			}
		}
	}
	for lid := ib.LID(1); lid <= tables.MaxLID; lid++ {
		home := tables.Home(lid)
		for _, sw := range f.Switches() {
			changes, at := 0, sw
			for at != home && tables.LFT(at)[lid] != ib.NoPort {
				next := f.Port(f.LinkUp(f.PortOf(at, tables.LFT(at)[lid]))).Node
				if groupOf(next) != groupOf(at) {
					changes++
				}
				at = next
			}
			if at == home && changes != far[groupOf(sw)][groupOf(home)] {
				t.Fatalf("switch %v LID %v: %d changes of group, %d are enough", f.Node(sw).GUID, lid, changes, far[groupOf(sw)][groupOf(home)])
			}
		}
	}
}

func TestNoDragonfly(t *testing.T) {
	lonely := topotest.DragonflyPlus(2, 2, 2, 1, 2)
	sp := lonely.Switch(2, 99, 4)
	f := lonely.Fabric()
	lonely.Link(sp, f.NodeByGUID(topotest.SwitchGUID(2, 1)))
	split := topotest.DragonflyPlus(2, 2, 1, 1, 2)
	f = split.Fabric()
	split.Cut(f.NodeByGUID(topotest.SwitchGUID(1, 1)), 2)
	list := map[ib.GUID]int{}
	for _, id := range f.Switches() {
		list[f.Node(id).GUID] = group(f.Node(id).GUID, 2, 1)
	}
	tests := []struct {
		name string
		kit  *topotest.Kit
		e    dfp.Engine
		want string
	}{
		{"tree", topotest.FatTree2(36, 36), dfp.Engine{}, "it is one group"},
		{"torus", topotest.Torus(4, 4, 1), dfp.Engine{}, "and both have CAs; leaves are cabled to spines only"},
		{"spine without leaves", lonely, dfp.Engine{}, "is in no group: list the groups"},
		{"one switch", topotest.Single(2, 4), dfp.Engine{}, "it is one group"},
		{"not listed", topotest.Chain(2, 1), dfp.Engine{Groups: map[ib.GUID]int{topotest.SwitchGUID(1, 1): 1}}, "switch 0x0010000100000002 is in no group of the list"},
		{"a group in parts", split, dfp.Engine{Groups: list}, "is in parts: 2 of its 3 switches"},
		{"one lane", topotest.DragonflyPlus(3, 2, 2, 2, 1), dfp.Engine{Lanes: 1}, "routes between groups: these routes need more than 1 virtual lanes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.e.Route(tt.kit.Fabric(), nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func BenchmarkRoute(b *testing.B) {
	f := topotest.DragonflyPlus(17, 16, 16, 16, 16).Fabric()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (dfp.Engine{Lanes: 8}).Route(f, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestOneLane: whatever is lost, with one lane there are tables that the checker
// accepts, or it is said that one is not enough.
func TestOneLane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }
		k := topotest.DragonflyPlus(2+draw(3), 1+draw(3), 1+draw(3), 2, 1+draw(5))
		var prev *route.Tables
		for range 4 {
			f := k.Fabric()
			tables, err := dfp.Engine{Lanes: 1}.Route(f, prev)
			switch {
			case err == nil:
				if err := route.Check(f, tables).Err(); err != nil {
					t.Fatal(err)
				}
				prev = tables
			case !strings.Contains(err.Error(), "these routes need more than 1 virtual lanes") && !strings.Contains(err.Error(), "no group") && !strings.Contains(err.Error(), "one group"):
				t.Fatal(err)
			}
			sw := f.Switches()[draw(len(f.Switches())-1)]
			for port := 1; port <= int(f.Node(sw).NumPorts); port++ {
				id := f.PortOf(sw, ib.PortNum(port))
				if peer := f.LinkUp(id); peer != topo.None && f.NodeOf(peer).Type == ib.NodeSwitch && draw(2) == 0 {
					k.Disconnect(id)
				}
			}
		}
	})
}
