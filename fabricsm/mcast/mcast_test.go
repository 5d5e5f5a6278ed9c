package mcast_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dor"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

func TestGroundOfFabrics(t *testing.T) {
	for _, tt := range []struct {
		name    string
		kit     *topotest.Kit
		engines []route.Engine
		order   string
		tops    int
	}{
		{"one switch", topotest.Single(4, 36), nil, "none", 1},
		{"two levels", topotest.FatTree2(324, 36), nil, "levels", 9},
		{"two levels, up-down", topotest.FatTree2(324, 36), []route.Engine{updn.Engine{}}, "levels", 9},
		{"three levels", topotest.FatTree3(54, 6), nil, "levels", 9},
		{"chain", topotest.Chain(5, 1), nil, "levels", 1},
		{"torus, up-down", topotest.Torus(4, 4, 1), nil, "distance from 0x0010000100000001", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gr := ground(t, tt.kit, tt.engines...)
			if len(gr.Islands) != 1 || gr.Islands[0].Order != tt.order || gr.Islands[0].Tops != tt.tops || gr.SL != 0 {
				t.Errorf("%+v, SL %d; want order %q with %d tops", gr.Islands, gr.SL, tt.order, tt.tops)
			}
		})
	}
}

func TestLayeredRoutesLeaveALane(t *testing.T) {
	k := multicast(topotest.Torus(4, 4, 1), 1024)
	f, tables, report := routed(t, k, dor.Engine{Lanes: 4})
	gr, err := mcast.NewGround(f, tables, report)
	if err != nil {
		t.Fatal(err)
	}
	if tables.Layers() < 2 || int(gr.SL) != tables.Layers() {
		t.Errorf("%d layers, multicast has SL %d", tables.Layers(), gr.SL)
	}
	b := newBed(t, gr)
	for h := range 16 {
		b.join(first, h, mcast.FullMember)
	}
	b.flush()
	b.judge(report, gr.SL)
}

// TestTrees draws what trees of a fabric with three levels look like.
func TestTrees(t *testing.T) {
	k := topotest.FatTree3(54, 6)
	gr := ground(t, k)
	for _, tt := range []struct {
		name     string
		full     []int
		sendOnly []int
		switches int // of the tree
		ports    int // bits set in all of them
		height   int // links from the root to the furthest switch
	}{
		{"nobody", nil, nil, 0, 0, 0},
		{"one", []int{0}, nil, 1, 1, 0},
		{"a sender alone", nil, []int{0}, 0, 0, 0},
		{"two on one leaf", []int{0, 1}, nil, 1, 2, 0},
		{"two leaves of a pod", []int{0, 3}, nil, 3, 2 + 4, 1},
		{"two pods", []int{0, 10}, nil, 5, 2 + 8, 2},
		{"a sender on another leaf", []int{0}, []int{3}, 3, 1 + 4, 1},
		{"all", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, nil, 7, 10 + 12, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t, gr)
			b.forest.Add(first)
			for _, h := range tt.full {
				b.join(first, h, mcast.FullMember)
			}
			for _, h := range tt.sendOnly {
				b.join(first, h, mcast.SendOnlyNonMember)
			}
			b.flush()
			ports := 0
			for _, br := range b.forest.Tree(first) {
				ports += br.Ports.Count()
			}
			if n := len(b.forest.Tree(first)); n != tt.switches || ports != tt.ports {
				t.Errorf("%d switches with %d ports, want %d with %d", n, ports, tt.switches, tt.ports)
			}
			tree := b.forest.Trees()[0]
			if len(tree.Roots) != min(tt.switches, 1) {
				t.Fatalf("roots %v of %d switches", tree.Roots, tt.switches)
			}
			for _, root := range tree.Roots {
				if h := b.height(tree.Branches, root); h != tt.height {
					t.Errorf("the tree is %d links high from its root, want %d", h, tt.height)
				}
			}
			if len(b.forest.Left(first)) != 0 {
				t.Errorf("left out: %v", b.forest.Left(first))
			}
		})
	}
}

// TestRandomFabrics lets members come and go on random fabrics whose cables break, and judges all trees after each change:
// by packets that must arrive, by cycles with the unicast routes, and by the plan of a new forest.
func TestRandomFabrics(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := 0
		draw := func(most int) int { n++; return rapid.IntRange(0, most).Draw(rt, fmt.Sprint("d", n)) }
		k := topotest.Random(12, draw)
		f := multicast(k, 1024).Fabric()
		c, err := route.First(f, nil, minhop.Engine{}, updn.Engine{})
		if err != nil {
			rt.Fatal(err)
		}
		gr, err := mcast.NewGround(f, c.Tables, &c.Report)
		if err != nil && !errors.Is(err, mcast.ErrNoSafeTree) {
			rt.Fatal(err)
		}
		b := newBed(t, gr)
		hosts := len(k.Hosts)
		if hosts == 0 {
			return
		}
		for range 30 {
			mlid := first + ib.LID(draw(3))
			state := []mcast.JoinState{0, mcast.FullMember, mcast.NonMember, mcast.SendOnlyNonMember}[draw(3)]
			h := draw(hosts - 1)
			if p := b.f.PortByGUID(topotest.HostGUID(h) + 1); p == topo.None || b.f.SwitchPortOf(p) == topo.None {
				continue
			}
			b.join(mlid, h, state)
			b.flush()
			if len(b.forest.Left(mlid)) > 0 {
				rt.Fatalf("switches %v are left out; islands %+v", b.forest.Left(mlid), gr.Islands)
			}
		}
		b.judge(&c.Report, gr.SL)
		again := newBed(t, gr)
		for mlid, m := range b.members {
			again.forest.Add(mlid)
			for _, p := range m.Receives {
				at := f.Port(f.Port(p).Peer)
				again.forest.Seat(mlid, at.Node, at.Num, mcast.FullMember)
			}
			for _, p := range m.Sends {
				at := f.Port(f.Port(p).Peer)
				again.forest.Seat(mlid, at.Node, at.Num, mcast.SendOnlyNonMember)
			}
		}
		again.flush()
		for mlid := range b.members {
			if d := cmp.Diff(b.forest.Tree(mlid), again.forest.Tree(mlid), cmpopts.EquateEmpty()); d != "" {
				rt.Fatalf("a restart plans other trees (-had +planned):\n%s", d)
			}
		}
	})
}

// TestJoinChangesOneBranch counts what one member costs.
func TestJoinChangesOneBranch(t *testing.T) {
	b := newBed(t, ground(t, topotest.FatTree3(54, 6)))
	for _, h := range []int{0, 10, 20, 30} {
		b.join(first, h, mcast.FullMember)
	}
	b.flush()
	for _, tt := range []struct {
		name  string
		host  int
		state mcast.JoinState
		most  int // switches whose mask changes
	}{
		{"joins on a leaf of the tree", 1, mcast.FullMember, 1},
		{"joins on another leaf of a pod", 4, mcast.FullMember, 2},
		{"joins in another pod", 40, mcast.FullMember, 3},
		{"only sends now", 40, mcast.SendOnlyNonMember, 1},
		{"leaves", 40, 0, 3},
		{"leaves the leaf", 4, 0, 2},
		{"leaves where others stay", 1, 0, 1},
	} {
		b.join(first, tt.host, tt.state)
		if n := b.flush(); n == 0 || n > tt.most {
			t.Errorf("%s: %d switches change, want 1 to %d", tt.name, n, tt.most)
		}
	}
}

// TestLostLinkMovesOnlyItsTrees holds that trees which did not use a link stay
// when it goes.
func TestLostLinkMovesOnlyItsTrees(t *testing.T) {
	k := topotest.FatTree3(54, 6)
	b := newBed(t, ground(t, k))
	rng := rand.New(rand.NewPCG(1, 2))
	for g := range 60 {
		for range 2 + g%8 {
			b.join(first+ib.LID(g), rng.IntN(54), mcast.FullMember)
		}
	}
	b.flush()
	leaf := b.f.NodeByGUID(topotest.SwitchGUID(1, 2))
	const port = 5
	uses := make(map[ib.LID]bool)
	before := make(map[ib.LID][]mcast.Branch)
	for _, tree := range b.forest.Trees() {
		before[tree.MLID] = tree.Branches
		m := b.mask(leaf, tree.MLID)
		uses[tree.MLID] = m.Has(port)
	}
	k.Cut(leaf, port)
	gr := ground(t, k)
	b.stand(gr)
	moved := 0
	for _, tree := range b.forest.Trees() {
		if cmp.Equal(before[tree.MLID], tree.Branches) {
			continue
		}
		moved++
		if !uses[tree.MLID] {
			t.Errorf("0x%04x did not use the cable, and moved", uint16(tree.MLID))
		}
	}
	if moved == 0 {
		t.Error("no tree moved: none had used the cable")
	}
	_, _, report := routed(t, k)
	b.judge(report, gr.SL)
}

// TestGroupsAreSpread counts the trees over each link of a fat tree.
func TestGroupsAreSpread(t *testing.T) {
	b := newBed(t, ground(t, topotest.FatTree2(324, 36)))
	for g := range 900 {
		for _, h := range []int{0, 20, 40} {
			b.join(first+ib.LID(g), h, mcast.FullMember)
		}
	}
	b.flush()
	load := make(map[string]int)
	for _, tree := range b.forest.Trees() {
		for _, br := range tree.Branches {
			br.Ports.Each(func(n ib.PortNum) { load[fmt.Sprint(br.Switch, "/", n)]++ })
		}
	}
	_, leaf, _ := b.host(0)
	worst, sum := 0, 0
	for n := ib.PortNum(19); n <= 36; n++ {
		l := load[fmt.Sprint(leaf, "/", n)]
		worst, sum = max(worst, l), sum+l
	}
	if sum != 900 || worst > 2*900/18 {
		t.Errorf("%d trees over the 18 cables of a leaf, %d over the worst", sum, worst)
	}
}

func TestNoRoom(t *testing.T) {
	k := topotest.FatTree2(324, 36)
	f := multicast(k, 8).Fabric()
	n := k.Node(f.NodeByGUID(topotest.SwitchGUID(2, 1)))
	n.MulticastFDBCap = 0
	k.SetNode(f.NodeByGUID(n.GUID), n)
	f = k.Freeze()
	c, err := route.First(f, nil, minhop.Engine{})
	if err != nil {
		t.Fatal(err)
	}
	gr, err := mcast.NewGround(f, c.Tables, &c.Report)
	if err != nil {
		t.Fatal(err)
	}
	if got := mcast.Ceiling(f); got != first+8 {
		t.Errorf("ceiling %v, want %v", got, first+8)
	}
	b := newBed(t, gr)
	for g := range 9 {
		for _, h := range []int{0, 20, 40} {
			b.join(first+ib.LID(g), h, mcast.FullMember)
		}
	}
	b.flush()
	for g := range 8 {
		if l := b.forest.Left(first + ib.LID(g)); len(l) > 0 {
			t.Errorf("group %d leaves out %v", g, l)
		}
		if m := b.mask(f.NodeByGUID(n.GUID), first+ib.LID(g)); !m.IsEmpty() {
			t.Errorf("group %d goes over a switch without multicast", g)
		}
	}
	if l := b.forest.Left(first + 8); len(l) != 3 {
		t.Errorf("a group above the ceiling leaves out %v, want all three leaves", l)
	}
	delete(b.members, first+8)
	b.judge(&c.Report, 0)
}

func TestPortsPositions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var p, q mcast.Ports
		want := make([]uint16, 16)
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 255), 0, 20).Draw(rt, "ports") {
			p.Add(ib.PortNum(n))
			want[n/16] |= 1 << (n % 16)
		}
		for i := range want {
			if p.Position(i) != want[i] {
				rt.Fatalf("position %d is %04x, want %04x", i, p.Position(i), want[i])
			}
			q.SetPosition(i, want[i])
		}
		if p != q {
			rt.Fatalf("set by position: %v, want %v", q, p)
		}
	})
}

// BenchmarkForest plans 1,000 groups on a fat tree with 5,184 hosts: all of them from the beginning, for one member more,
// and for a cable that breaks.
func BenchmarkForest(b *testing.B) {
	k := topotest.FatTree3(5184, 36)
	f, tables, report := routed(b, k, minhop.Engine{})
	gr, err := mcast.NewGround(f, tables, report)
	if err != nil {
		b.Fatal(err)
	}
	for _, members := range []int{16, 5184} {
		e := newBed(b, gr)
		for g := range 1000 {
			mlid := first + ib.LID(g)
			e.forest.Add(mlid)
			for i := range members {
				_, sw, num := e.host((g*7 + i*(5184/members)) % 5184)
				e.forest.Seat(mlid, sw, num, mcast.FullMember)
			}
		}
		e.forest.Flush(func(mcast.Change) {})
		b.Run(fmt.Sprintf("all of %d members each", members), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				e.forest.SetGround(gr)
				e.forest.Flush(func(c mcast.Change) { b.Fatalf("%v changed", c) })
			}
		})
		_, sw, num := e.host(5)
		b.Run(fmt.Sprintf("join and leave of one among %d", members), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				e.forest.Seat(first+500, sw, num, 0)
				e.forest.Flush(func(mcast.Change) {})
				e.forest.Seat(first+500, sw, num, mcast.FullMember)
				e.forest.Flush(func(mcast.Change) {})
			}
		})
	}
	b.Run("ground", func(b *testing.B) {
		for range b.N {
			if _, err := mcast.NewGround(f, tables, report); err != nil {
				b.Fatal(err)
			}
		}
	})
}
