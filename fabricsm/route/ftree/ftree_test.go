package ftree

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/routetest"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// TestWorstLink holds the balance on trees with full bisection: each link up
// from a leaf carries at least one host's share.
func TestWorstLink(t *testing.T) {
	spine := func(n int) (roots []ib.GUID) {
		for i := range n {
			roots = append(roots, topotest.SwitchGUID(2, i+1))
		}
		return roots
	}
	tests := []struct {
		name   string
		kit    *topotest.Kit
		engine Engine
		worst  int64
		hops   int
	}{
		{"one switch", topotest.Single(36, 36), Engine{}, 0, 0},
		{"two islands", topotest.Islands(3), Engine{}, 0, 0},
		{"two levels, 36 hosts", topotest.FatTree2(36, 36), Engine{}, 36 - 18, 2},
		{"two levels, 324 hosts", topotest.FatTree2(324, 36), Engine{}, 324 - 18, 2},
		{"two levels, roots listed", topotest.FatTree2(324, 36), Engine{Roots: spine(9)}, 324 - 18, 2},
		{"two levels, 648 hosts", topotest.FatTree2(648, 36), Engine{}, 648 - 18, 2},
		{"three levels, 1944 hosts", topotest.FatTree3(1944, 36), Engine{}, 1944 - 18, 4},
		{"three levels, 432 hosts", topotest.FatTree3(432, 12), Engine{}, 432 - 6, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.kit.Fabric()
			_, r := routetest.Must(t, tt.engine, f, nil)
			if r.WorstLoad != tt.worst || r.MaxHops != tt.hops {
				t.Errorf("worst link %d routes, longest route %d hops; want %d and %d", r.WorstLoad, r.MaxHops, tt.worst, tt.hops)
			}
		})
	}
}

// TestShiftsDoNotShareLinks: host i sends to host i+n, all at once, for every
// n: no link between switches carries two of those flows.
func TestShiftsDoNotShareLinks(t *testing.T) {
	for name, kit := range map[string]*topotest.Kit{
		"two levels":   topotest.FatTree2(72, 12),
		"three levels": topotest.FatTree3(54, 6),
	} {
		t.Run(name, func(t *testing.T) {
			f := kit.Fabric()
			tables, _ := routetest.Must(t, Engine{}, f, nil)
			hosts := len(kit.Hosts)
			for n := 1; n < hosts; n++ {
				used := make(map[topo.PortID]int)
				for i := range hosts {
					for _, p := range path(f, tables, kit.Hosts[i], kit.Hosts[(i+n)%hosts]) {
						if used[p]++; used[p] > 1 {
							t.Fatalf("a shift by %d: %v port %d carries two flows", n, f.NodeOf(p).GUID, f.Port(p).Num)
						}
					}
				}
			}
		})
	}
}

// path returns the switch ports towards other switches on the way from one host to another.
func path(f *topo.Fabric, tables *route.Tables, from, to topo.NodeID) (ports []topo.PortID) {
	lid := f.Port(f.PortOf(to, 1)).LID
	sw := f.Port(f.SwitchPortOf(f.PortOf(from, 1))).Node
	for {
		out := f.PortOf(sw, tables.LFT(sw)[lid])
		next := f.Port(f.LinkUp(out)).Node
		if next == to {
			return ports
		}
		ports, sw = append(ports, out), next
	}
}

// TestRefusals tests the errors for fabrics that are no fat trees.
func TestRefusals(t *testing.T) {
	twoLeaves := "switch 0x0010000100000001 (switch1_1) is cabled at port %d to switch 0x0010000100000002 (switch1_2), and both have compute nodes; " +
		"ftree wants links from one level to the next: use updn, or list what is no compute node"
	ioOnSpine := func() *topotest.Kit {
		k := topotest.FatTree2(36, 18)
		spine := k.NodeByGUID(topotest.SwitchGUID(2, 1))
		k.Cut(spine, 1)
		k.LinkPorts(k.Host(1), 1, spine, 1)
		return k
	}
	tests := []struct {
		name   string
		kit    *topotest.Kit
		engine Engine
		want   string
	}{
		{"chain", topotest.Chain(2, 1), Engine{}, fmt.Sprintf(twoLeaves, 3)},
		{"host on two leaves", topotest.DualPort(), Engine{}, fmt.Sprintf(twoLeaves, 1)},
		{"torus", topotest.Torus(4, 4, 1), Engine{}, fmt.Sprintf(twoLeaves, 1)},
		{
			"host on a spine", ioOnSpine(),
			Engine{},
			"switch 0x0010000100000001 (switch1_1) is cabled at port 11 to switch 0x0010000200000001 (switch2_1), and both have compute nodes; " +
				"ftree wants links from one level to the next: use updn, or list what is no compute node",
		},
		{
			"wrong roots", topotest.FatTree2(36, 36),
			Engine{Roots: []ib.GUID{topotest.SwitchGUID(1, 1)}},
			"switch 0x0010000100000001 (switch1_1) has compute nodes 0 levels below the roots, and switch 0x0010000100000002 (switch1_2) has them 2 levels below the roots; " +
				"ftree wants all of them equally far: list those on one of the switches as I/O nodes, or check the list of roots",
		},
		{
			"no root there", topotest.FatTree2(36, 36),
			Engine{Roots: []ib.GUID{5}},
			"none of the 1 listed roots is a switch of the fabric, not 0x0000000000000005 either; list node GUIDs of switches",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.engine.Route(tt.kit.Fabric(), nil)
			if err == nil {
				t.Fatal("it was routed")
			}
			if got, _, _ := strings.Cut(err.Error(), "\n"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestIONodes lets a host sit on a spine, by either list.
func TestIONodes(t *testing.T) {
	k := topotest.FatTree2(36, 18)
	spine := k.NodeByGUID(topotest.SwitchGUID(2, 1))
	k.Cut(spine, 1)
	disk := k.Host(1)
	k.LinkPorts(disk, 1, spine, 1)
	f := k.Fabric()
	var compute []ib.GUID
	for _, h := range k.Hosts[:36] {
		compute = append(compute, f.Port(f.PortOf(h, 1)).GUID)
	}
	for name, e := range map[string]Engine{
		"I/O nodes listed":     {IONodes: []ib.GUID{f.Port(f.PortOf(disk, 1)).GUID}},
		"compute nodes listed": {ComputeNodes: compute},
	} {
		t.Run(name, func(t *testing.T) { routetest.Must(t, e, f, nil) })
	}
}

// TestDamagedTrees: if any cables are lost, the tables are right and free of credit loops, or the tree is rejected.
func TestDamagedTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := topotest.FatTree3(54, 6)
		var prev *route.Tables
		for range 3 {
			f := k.Fabric()
			tables, err := Engine{}.Route(f, prev)
			if err != nil {
				if !strings.Contains(err.Error(), "switch 0x") {
					t.Fatalf("the refusal names no switch: %v", err)
				}
				return
			}
			if err := route.Check(f, tables).Err(); err != nil {
				t.Fatal(err)
			}
			prev = tables
			for range rapid.IntRange(1, 6).Draw(t, "cables") {
				k.Disconnect(topo.PortID(rapid.IntRange(0, k.NumPorts()-1).Draw(t, "port")))
			}
		}
	})
}

func BenchmarkRoute(b *testing.B) {
	f := topotest.FatTree3(10368, 36).Fabric()
	b.Run("hosts=10368", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := (Engine{}).Route(f, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestLostCables: the six LIDs of a leaf that lost one of its six cables come
// down over five, and one of those carries two. It is no worse anywhere else,
// and no route is longer.
func TestLostCables(t *testing.T) {
	k := topotest.FatTree3(432, 12)
	f := k.Fabric()
	k.Cut(f.NodeByGUID(topotest.SwitchGUID(1, 1)), 7)
	k.Cut(f.NodeByGUID(topotest.SwitchGUID(2, 20)), 9)
	f = k.Fabric()
	_, r := routetest.Must(t, Engine{}, f, nil)
	if most := int64(2 * (432 - 6)); r.WorstLoad > most || r.MaxHops != 4 {
		t.Errorf("worst link %d routes, longest route %d hops; want at most %d, and 4", r.WorstLoad, r.MaxHops, most)
	}
}

// TestReverseHops: a host on a spine goes down and up again to one on another.
func TestReverseHops(t *testing.T) {
	k := &topotest.Kit{}
	var nodes []ib.GUID
	leaves := []topo.NodeID{k.Switch(1, 1, 6), k.Switch(1, 2, 6)}
	for _, leaf := range leaves {
		k.Link(k.Host(1), leaf)
		k.Link(k.Host(1), leaf)
	}
	for i := range 2 {
		spine := k.Switch(2, i+1, 6)
		for _, leaf := range leaves {
			k.Link(leaf, spine)
		}
		h := k.Host(1)
		k.Link(h, spine)
		nodes = append(nodes, k.Node(h).GUID+1)
	}
	f := k.Fabric()
	for _, tt := range []struct {
		name string
		e    Engine
		want string
	}{
		{"any", Engine{IONodes: nodes}, ""},
		{"one", Engine{IONodes: nodes, LimitReverse: true, MaxReverseHops: 1}, ""},
		{"none", Engine{IONodes: nodes, LimitReverse: true}, "1 links go down before the route goes up again, and max_reverse_hops allows 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tables, err := tt.e.Route(f, nil)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %s", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := route.Check(f, tables).Err(); err != nil {
				t.Error(err)
			}
		})
	}
}
