package route_test

import (
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dor"
	"portcullis/fabricsm/route/ftree"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/turnrule"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

func draw(t *rapid.T) func(int) int {
	return func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }
}

func mustRoute(t *rapid.T, e route.Engine, f *topo.Fabric, prev *route.Tables) *route.Tables {
	tables, err := e.Route(f, prev)
	if err != nil {
		t.Fatalf("%s: %v", e.Name(), err)
	}
	return tables
}

// TestEnginesAgainstSlowJudge routes random fabrics, also after random cuts,
// and compares engine and checker with the slow judge.
func TestEnginesAgainstSlowJudge(t *testing.T) {
	for _, e := range []route.Engine{minhop.Engine{}, updn.Engine{}, dor.Engine{Lanes: 8}} {
		t.Run(e.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				k := topotest.Random(9, draw(t))
				var prev *route.Tables
				for range 3 {
					f := k.Fabric()
					tables := mustRoute(t, e, f, prev)
					checkTables(t, e, f, tables)
					if !equalTables(f, tables, mustRoute(t, e, f, prev)) {
						t.Fatal("two runs differ")
					}
					prev = tables
					k.Disconnect(topo.PortID(draw(t)(k.NumPorts() - 1)))
				}
			})
		})
	}
}

func checkTables(t *rapid.T, e route.Engine, f *topo.Fabric, tables *route.Tables) {
	s := judgeSlowly(f, tables)
	if len(s.faults) > 0 {
		t.Fatalf("%d faults, the first: %s", len(s.faults), s.faults[0])
	}
	report := route.Check(f, tables)
	if got, want := report.CreditLoop != nil, s.creditLoop(); got != want && !(got && hasAway(f, tables)) {
		t.Fatalf("credit loop: the checker says %v, the slow judge %v", got, want)
	}
	if e.Name() != "minhop" && report.Err() != nil {
		t.Fatalf("%s is refused: %v", e.Name(), report.Err())
	}
	if report.CreditLoop == nil && report.Err() != nil {
		t.Fatalf("the slow judge finds no fault, the checker: %v", report.Err())
	}
	if e.Name() != "updn" {
		checkShortest(t, s)
	}
}

// hasAway reports whether some LID is routed whose owner is away: the checker
// counts their routes too.
func hasAway(f *topo.Fabric, tables *route.Tables) bool {
	s := &slow{f: f, t: tables}
	owners := s.owners()
	for lid := ib.LID(1); lid <= tables.MaxLID; lid++ {
		if _, here := owners[lid]; !here && tables.Home(lid) != topo.None {
			return true
		}
	}
	return false
}

func checkShortest(t *rapid.T, s *slow) {
	for lid, owner := range s.owners() {
		for _, sw := range s.f.Switches() {
			if !s.hosts(sw) || !s.hosts(s.home(owner)) {
				continue // on a tree it may have to go round where it would have to turn
			}
			path, _ := s.walk(sw, lid)
			if want := s.distance(sw, s.home(owner)); want >= 0 && len(path) != want {
				t.Fatalf("switch %v LID %v: %d hops, the shortest way has %d", s.f.Node(sw).GUID, lid, len(path), want)
			}
		}
	}
}

func equalTables(f *topo.Fabric, a, b *route.Tables) bool {
	return a.MaxLID == b.MaxLID && !slices.ContainsFunc(f.Switches(), func(id topo.NodeID) bool {
		return !slices.Equal(a.LFT(id), b.LFT(id))
	})
}

// TestLostLinkMovesOnlyItsPaths: a route that did not use the lost cable stays
// as it is, all the way.
func TestLostLinkMovesOnlyItsPaths(t *testing.T) {
	for _, e := range []route.Engine{minhop.Engine{}, updn.Engine{}, ftree.Engine{}, dor.Engine{Lanes: 8}} {
		t.Run(e.Name(), func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { loseLink(t, e) }) })
	}
}

// proven returns tables from [route.First], so that only changes are judged next time. If those are not accepted, it
// returns the tables of the engine.
func proven(t *rapid.T, e route.Engine, f *topo.Fabric) *route.Tables {
	if c, err := route.First(f, nil, e); err == nil {
		return c.Tables
	}
	return mustRoute(t, e, f, nil)
}

func loseLink(t *rapid.T, e route.Engine) {
	k := topotest.Random(9, draw(t))
	if draw(t)(1) == 1 || e.Name() == "ftree" {
		k = topotest.FatTree3(54, 6)
	}
	f := k.Fabric()
	before := proven(t, e, f)
	lost := topo.PortID(draw(t)(k.NumPorts() - 1))
	peer := f.Port(lost).Peer
	if e.Name() == "dor" && parallel(f, lost) {
		return // the neighbour that the lowest port leads to may be another now
	}
	k.Disconnect(lost)
	cut := k.Fabric()
	if (e.Name() == "updn" || e.Name() == "ftree") && !keepsOrder(t, e, cut, before) {
		return // the only link up of a switch was lost: the switches above have to change
	}
	if e.Name() == "minhop" && !slices.Equal(levels(t, f), levels(t, cut)) {
		return // a tree of other levels has other ways
	}
	after := mustRoute(t, e, cut, before)
	was, is := &slow{f: f, t: before}, &slow{f: cut, t: after}
	for lid, owner := range was.owners() {
		if owner == lost || owner == peer {
			continue
		}
		for _, sw := range f.Switches() {
			path, end := was.walk(sw, lid)
			if end != owner || slices.ContainsFunc(path, func(h hop) bool {
				p := f.PortOf(h.sw, h.port)
				return p == lost || p == peer
			}) {
				continue
			}
			if now, _ := is.walk(sw, lid); !slices.Equal(now, path) {
				t.Fatalf("switch %v LID %v: path %v became %v", f.Node(sw).GUID, lid, path, now)
			}
		}
	}
}

// keepsOrder reports whether the order that tables were made in still is one.
func keepsOrder(t *rapid.T, e route.Engine, f *topo.Fabric, before *route.Tables) bool {
	g, err := route.NewGraph(f, before)
	if err != nil {
		t.Fatal(err)
	}
	_, _, ok := turnrule.Kept(g, e.Name(), before, nil)
	return ok
}

// parallel reports whether another cable joins the same two nodes.
func parallel(f *topo.Fabric, p topo.PortID) bool {
	if f.Port(p).Peer == topo.None {
		return false
	}
	n, far := f.NodeOf(p), f.Port(f.Port(p).Peer).Node
	for i := 1; i <= int(n.NumPorts); i++ {
		other := n.FirstPort + topo.PortID(i)
		if peer := f.Port(other).Peer; other != p && peer != topo.None && f.Port(peer).Node == far {
			return true
		}
	}
	return false
}

// TestGainedLinkMovesOnlyToItself: an entry that is still right changes only to
// use the new cable.
func TestGainedLinkMovesOnlyToItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := topotest.Random(9, draw(t))
		f := k.Fabric()
		before := mustRoute(t, minhop.Engine{}, f, nil)
		a, b := f.Switches()[draw(t)(len(f.Switches())-1)], f.Switches()[draw(t)(len(f.Switches())-1)]
		if a == b {
			return
		}
		k.Link(a, b)
		g := k.Fabric()
		if !slices.Equal(levels(t, f), levels(t, g)) {
			return // on a tree fewer of the shortest paths will do
		}
		after := mustRoute(t, minhop.Engine{}, g, before)
		s := &slow{f: g, t: after}
		for lid, owner := range s.owners() {
			for _, sw := range f.Switches() {
				was, is := before.LFT(sw)[lid], after.LFT(sw)[lid]
				if !s.hosts(sw) || !s.hosts(s.home(owner)) {
					continue
				}
				if was == is || was == ib.NoPort || f.LinkUp(f.PortOf(sw, is)) == topo.None {
					continue
				}
				next := g.Port(g.LinkUp(g.PortOf(sw, was))).Node
				if s.distance(next, s.home(owner)) == s.distance(sw, s.home(owner))-1 {
					t.Fatalf("switch %v LID %v: port %d was right and became %d", f.Node(sw).GUID, lid, was, is)
				}
			}
		}
	})
}

// levels are those of a tree, nil if a fabric is none.
func levels(t *rapid.T, f *topo.Fabric) []int32 {
	g, err := route.NewGraph(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	tree, ok := turnrule.NewTree(g)
	if !ok {
		return nil
	}
	return tree.Basis()
}

// TestSpineReturns: when a spine fails its routes are spread over the others, and it gets its share again when it is back.
func TestSpineReturns(t *testing.T) {
	k := topotest.FatTree2(324, 36)
	f := k.Fabric()
	spine := f.NodeByGUID(topotest.SwitchGUID(2, 3))
	var cables [][2]topo.PortID
	for i := 1; i <= 36; i++ {
		p := f.PortOf(spine, ib.PortNum(i))
		cables = append(cables, [2]topo.PortID{p, f.Port(p).Peer})
	}
	engine := minhop.Engine{}
	load := func(f *topo.Fabric, prev *route.Tables) (*route.Tables, int64) {
		tables, err := engine.Route(f, prev)
		if err != nil {
			t.Fatal(err)
		}
		r := route.Check(f, tables)
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		return tables, r.WorstLoad
	}
	tables, whole := load(f, nil)
	for _, c := range cables {
		k.Disconnect(c[0])
	}
	// The 18 LIDs of a leaf come down over 16 links: some carry two.
	tables, broken := load(k.Fabric(), tables)
	if most := 2 * whole; broken > most {
		t.Errorf("worst link with a spine lost: %d routes, want at most %d", broken, most)
	}
	for _, c := range cables {
		k.Connect(c[0], c[1])
	}
	if _, back := load(k.Fabric(), tables); back > whole*8/5 {
		t.Errorf("worst link after the spine is back: %d routes, it was %d", back, whole)
	}
}

// TestCoresDoNotDecide: tables are the same however many cores there are.
func TestCoresDoNotDecide(t *testing.T) {
	k := topotest.FatTree3(432, 12)
	f := k.Fabric()
	k.Cut(f.NodeByGUID(topotest.SwitchGUID(2, 5)), 8)
	cut := k.Fabric()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first [3]*route.Tables
	for cores := 1; cores <= 4; cores++ {
		runtime.GOMAXPROCS(cores)
		for i, e := range []route.Engine{minhop.Engine{}, updn.Engine{}, ftree.Engine{}} {
			tables, err := e.Route(f, nil)
			if err == nil {
				tables, err = e.Route(cut, tables)
			}
			if err != nil {
				t.Fatal(err)
			}
			if first[i] == nil {
				first[i] = tables
			}
			if !equalTables(f, tables, first[i]) {
				t.Errorf("%s: %d cores give other tables than one", e.Name(), cores)
			}
		}
	}
}

// TestRebootChangesOneSwitch: routes to a host that went away stay, except the last hop, and are whole again when it
// returns.
func TestRebootChangesOneSwitch(t *testing.T) {
	k := topotest.FatTree2(36, 36)
	f := k.Fabric()
	engine := minhop.Engine{}
	before, err := engine.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	host := f.PortOf(k.Hosts[7], 1)
	leafPort := f.Port(host).Peer
	lid := f.Port(host).LID
	k.Disconnect(host)
	down := k.Fabric()
	away, err := engine.Route(down, before)
	if err != nil {
		t.Fatal(err)
	}
	if err := route.Check(down, away).Err(); err != nil {
		t.Fatalf("with the host away: %v", err)
	}
	for _, sw := range f.Switches() {
		changed := route.ChangedBlocks(away.LFT(sw), before.LFT(sw))
		if atLeaf := sw == f.Port(leafPort).Node; (len(changed) > 0) != atLeaf {
			t.Errorf("switch %v: blocks %v changed", f.Node(sw).GUID, changed)
		}
	}
	if got := away.LFT(f.Port(leafPort).Node)[lid]; got != ib.NoPort {
		t.Errorf("the leaf still sends LID %v to port %d", lid, got)
	}
	k.Connect(host, leafPort)
	back, err := engine.Route(k.Fabric(), away)
	if err != nil {
		t.Fatal(err)
	}
	if !equalTables(f, back, before) {
		t.Error("after the host came back the tables are not what they were")
	}
}

// TestLostCablesKeepTheEngine: on fat trees minhop goes on whatever cables
// between switches are lost, as long as two leaves have a way up and down.
func TestLostCablesKeepTheEngine(t *testing.T) {
	kits := []func() *topotest.Kit{
		func() *topotest.Kit { return topotest.FatTree2(48, 16) },
		func() *topotest.Kit { return topotest.FatTree3(108, 12) },
		func() *topotest.Kit { return topotest.FatTree3(128, 8) },
	}
	rapid.Check(t, func(t *rapid.T) {
		k := kits[draw(t)(len(kits)-1)]()
		f := k.Fabric()
		var links []topo.PortID
		for i, p := range f.Ports() {
			if p.Peer != topo.None && f.NodeOf(i).Type == ib.NodeSwitch && f.NodeOf(p.Peer).Type == ib.NodeSwitch {
				links = append(links, i)
			}
		}
		var prev *route.Tables
		for range 2 {
			for range draw(t)(2) {
				k.Disconnect(links[draw(t)(len(links)-1)])
			}
			c, err := route.First(k.Fabric(), prev, minhop.Engine{})
			if err != nil {
				t.Fatal(err)
			}
			prev = c.Tables
		}
	})
}
