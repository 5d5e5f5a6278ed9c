package route_test

import (
	"reflect"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/ftree"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// cables returns one end of every cable between switches.
func cables(f *topo.Fabric) (ends []topo.PortID) {
	for i, p := range f.Ports() {
		id := i
		if p.Peer > id && f.NodeOf(id).Type == ib.NodeSwitch && f.NodeOf(p.Peer).Type == ib.NodeSwitch {
			ends = append(ends, id)
		}
	}
	return ends
}

// fatal is the part of testing.TB and rapid.T that helpers need.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func mustFirst(t fatal, f *topo.Fabric, prev *route.Tables) route.Choice {
	t.Helper()
	return mustFirstOf(t, minhop.Engine{}, f, prev)
}

func mustFirstOf(t fatal, e route.Engine, f *topo.Fabric, prev *route.Tables) route.Choice {
	t.Helper()
	c, err := route.First(f, prev, e)
	if err != nil {
		t.Fatal(err)
	}
	// First may have judged what changed only: the whole must say the same.
	whole := route.Check(f, c.Tables)
	if len(whole.Waits) != len(c.Report.Waits) || len(whole.Waits) > 0 && !whole.Waits[0].Equal(c.Report.Waits[0]) {
		t.Fatalf("judging what changed finds other dependencies than judging the whole")
	}
	whole.Waits = c.Report.Waits
	if !reflect.DeepEqual(whole, c.Report) {
		t.Fatalf("judging what changed says %+v, judging the whole %+v", c.Report, whole)
	}
	return c
}

// TestFlapsLeaveNoTrace: cables and spines are lost and put back in any order, and a host with them. The tables are always
// right, and with all cables back they are the first ones again. Where a spine was lost they are right, but need not be as
// even: its own entries are spread again, over the cables that it has then.
func TestFlapsLeaveNoTrace(t *testing.T) {
	for _, e := range []route.Engine{minhop.Engine{}, updn.Engine{}, ftree.Engine{}} {
		t.Run(e.Name(), func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { flap(t, e) }) })
	}
}

func flap(t *rapid.T, e route.Engine) {
	k := topotest.FatTree3(54, 6)
	if draw(t)(1) == 0 {
		k = topotest.FatTree2(48, 16)
	}
	f := k.Fabric()
	ends := cables(f)
	first := mustFirstOf(t, e, f, nil)
	now, spines, restore := first, false, func() {}
	lost := make(map[topo.PortID]topo.PortID)
	var pulled topo.PortID = topo.None
	for range 2 + draw(t)(8) {
		p := ends[draw(t)(len(ends)-1)]
		peer, is := lost[p]
		switch what := draw(t)(9); {
		case is:
			restore()
			delete(lost, p)
			k.Connect(p, peer)
		case what == 0 && pulled == topo.None:
			pulled = k.PortOf(k.Hosts[draw(t)(len(k.Hosts)-1)], 1)
			lost[pulled] = k.Port(pulled).Peer
			k.Disconnect(pulled)
		case what == 1 && len(lost) == 0:
			spines = true
			for p, peer := range spineOf(f, draw(t)) {
				lost[p] = peer
				k.Disconnect(p)
			}
			if draw(t)(1) == 0 {
				restore = sync.OnceFunc(removeSwitch(k, f.Port(anyOf(lost)).Node))
			}
		case what == 2:
			restore()
			for p, peer := range lost {
				delete(lost, p)
				k.Connect(p, peer)
			}
			pulled = topo.None
		case len(lost) < 2: // with three, two leaves of three links up can be left without a common way
			lost[p] = k.Port(p).Peer
			k.Disconnect(p)
		}
		if draw(t)(3) == 0 {
			continue // with the next change
		}
		f := k.Fabric()
		now = mustFirstOf(t, e, f, now.Tables)
		if e.Name() == "minhop" {
			sameHops(t, f, now.Tables, mustFirstOf(t, e, f, nil).Tables)
		}
	}
	restore()
	for p, peer := range lost {
		k.Connect(p, peer)
	}
	now = mustFirstOf(t, e, k.Fabric(), now.Tables)
	if most := first.Report.WorstLoad; now.Report.WorstLoad > most && !spines {
		t.Fatalf("worst link: %d routes, before the flaps %d", now.Report.WorstLoad, most)
	}
	if !spines && e.Name() == "minhop" && !equalTables(f, now.Tables, first.Tables) {
		t.Fatal("the tables are not what they were")
	}
}

func anyOf(cables map[topo.PortID]topo.PortID) topo.PortID {
	for p := range cables {
		return p
	}
	return topo.None
}

// sameHops: routes from CAs are as long as if all was routed again.
func sameHops(t *rapid.T, f *topo.Fabric, is, want *route.Tables) {
	s := &slow{f: f, t: is}
	for _, from := range f.Switches() {
		if !s.hosts(from) {
			continue
		}
		for _, home := range f.Switches() {
			if a, b := is.Hops(from, home), want.Hops(from, home); a != b {
				t.Fatalf("from switch %v to %v: %d links, routed anew %d", f.Node(from).GUID, f.Node(home).GUID, a, b)
			}
		}
	}
}

// spineOf returns the cables of a switch at the top.
func spineOf(f *topo.Fabric, draw func(int) int) map[topo.PortID]topo.PortID {
	var tops []topo.NodeID
	for _, id := range f.Switches() {
		if level := f.Node(id).GUID >> 32 & 0xff; level == 3 || level == 2 && f.NodeByGUID(topotest.SwitchGUID(3, 1)) == topo.None {
			tops = append(tops, id)
		}
	}
	n := f.Node(tops[draw(len(tops)-1)])
	cables := make(map[topo.PortID]topo.PortID)
	for i := range int(n.NumPorts) {
		if p := n.FirstPort + topo.PortID(i+1); f.Port(p).Peer != topo.None {
			cables[p] = f.Port(p).Peer
		}
	}
	return cables
}

// TestManyFlaps: 200 cables are lost, each when the one before comes back. The worst link always carries at most a fifth
// more than if all was routed again. In the end, with all cables back, it carries no more.
func TestManyFlaps(t *testing.T) {
	for _, e := range []route.Engine{minhop.Engine{}, updn.Engine{}, ftree.Engine{}} {
		t.Run(e.Name(), func(t *testing.T) { flapOften(t, e) })
	}
}

func flapOften(t *testing.T, e route.Engine) {
	k := topotest.FatTree3(432, 12)
	f := k.Fabric()
	ends := cables(f)
	now := mustFirstOf(t, e, f, nil)
	draw := uint32(1)
	pick := func() topo.PortID {
		draw = draw*1664525 + 1013904223
		return ends[int(draw>>8)%len(ends)]
	}
	down := pick()
	peer := k.Port(down).Peer
	k.Disconnect(down)
	for i := range 200 {
		next := pick()
		for next == down {
			next = pick()
		}
		nextPeer := k.Port(next).Peer
		k.Disconnect(next)
		k.Connect(down, peer)
		down, peer = next, nextPeer
		now = mustFirstOf(t, e, k.Fabric(), now.Tables)
		if i%20 != 0 {
			continue
		}
		fresh := mustFirstOf(t, e, k.Fabric(), nil)
		if most := fresh.Report.WorstLoad * 6 / 5; now.Report.WorstLoad > most {
			t.Errorf("flap %d: worst link %d routes, want at most %d", i, now.Report.WorstLoad, most)
		}
	}
	k.Connect(down, peer)
	now = mustFirstOf(t, e, k.Fabric(), now.Tables)
	if want := int64(432 - 6); now.Report.WorstLoad != want {
		t.Errorf("all cables back: worst link %d routes, want %d", now.Report.WorstLoad, want)
	}
}

// TestLostCableChangesFewBlocks counts what one cable costs on a tree of 1,944
// hosts: the leaf moves what went up there, and every other leaf the few LIDs
// that came down there.
func TestLostCableChangesFewBlocks(t *testing.T) {
	k := topotest.FatTree3(1944, 36)
	f := k.Fabric()
	leaf := f.NodeByGUID(topotest.SwitchGUID(1, 50))
	agg := f.NodeByGUID(topotest.SwitchGUID(2, 40))
	tests := []struct {
		name   string
		sw     topo.NodeID
		port   int
		blocks int // at most
	}{
		{"leaf to aggregation", leaf, 22, 160},
		{"aggregation to core", agg, 30, 20},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := mustFirst(t, f, nil).Tables
			p := f.PortOf(tt.sw, ib.PortNum(tt.port))
			peer := f.Port(p).Peer
			k.Disconnect(p)
			cut := k.Fabric()
			after := mustFirst(t, cut, before).Tables
			blocks, switches := 0, 0
			for _, id := range cut.Switches() {
				n := len(route.ChangedBlocks(after.LFT(id), before.LFT(id)))
				blocks += n
				if n > 0 {
					switches++
				}
			}
			t.Logf("%d blocks on %d switches", blocks, switches)
			if blocks > tt.blocks {
				t.Errorf("%d blocks change on %d switches, want at most %d", blocks, switches, tt.blocks)
			}
			k.Connect(p, peer)
			if back := mustFirst(t, k.Fabric(), after).Tables; !equalTables(f, back, before) {
				t.Error("with the cable back the tables are not what they were")
			}
		})
	}
}

// TestOneHostOneColumn: a host that is new gets a column, and no other LID
// moves, also while a cable is lost.
func TestOneHostOneColumn(t *testing.T) {
	k := topotest.FatTree3(423, 12)
	f := k.Fabric()
	now := mustFirst(t, f, nil)
	k.Cut(f.NodeByGUID(topotest.SwitchGUID(1, 1)), 7)
	now = mustFirst(t, k.Fabric(), now.Tables)
	host := k.Host(1)
	k.Link(host, f.NodeByGUID(topotest.SwitchGUID(1, 71)))
	f = k.Fabric()
	next := mustFirst(t, f, now.Tables)
	lid := f.Port(f.PortOf(host, 1)).LID
	changed := 0
	for _, id := range f.Switches() {
		was, is := now.Tables.LFT(id), next.Tables.LFT(id)
		for l, port := range is {
			if l >= len(was) && port == ib.NoPort || l < len(was) && was[l] == port {
				continue
			}
			if changed++; ib.LID(l) != lid {
				t.Fatalf("switch %v LID %d changed too", f.Node(id).GUID, l)
			}
		}
	}
	if changed != len(f.Switches()) {
		t.Errorf("%d entries changed, want one on each of %d switches", changed, len(f.Switches()))
	}
}

// TestLIDsOfOnePortPart: from any leaf, the LIDs of one port lead over different
// switches, and no link carries more than its share.
func TestLIDsOfOnePortPart(t *testing.T) {
	k := topotest.FatTree3(432, 12)
	for _, h := range k.Hosts {
		k.SetLMC(h, 1, 2)
	}
	f := k.Fabric()
	c := mustFirst(t, f, nil)
	if want := int64(4 * (432 - 6)); c.Report.WorstLoad != want {
		t.Errorf("worst link %d routes, want %d", c.Report.WorstLoad, want)
	}
	for _, h := range k.Hosts {
		p := f.PortOf(h, 1)
		for _, leaf := range f.Switches() {
			if f.Node(leaf).GUID>>32&0xFF != 1 || leaf == c.Tables.Home(f.Port(p).LID) {
				continue
			}
			ways := make(map[ib.PortNum]bool)
			for i := range ib.LID(4) {
				ways[c.Tables.LFT(leaf)[f.Port(p).LID+i]] = true
			}
			if len(ways) != 4 {
				t.Fatalf("switch %v sends to the four LIDs of %v over ports %v", f.Node(leaf).GUID, f.Port(p).GUID, ways)
			}
		}
	}
}
