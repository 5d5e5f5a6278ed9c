package portindex_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// world is a fabric that changes, and the books of it.
type world struct {
	k      *topotest.Kit
	sketch sm.Sketch
	tables *route.Tables
	book   *portindex.Book
	view   *sm.View
}

func newWorld(k *topotest.Kit) *world { return &world{k: k} }

// keys sets the P_Keys of an end port and of the switch port before it.
func (w *world) keys(f *topo.Fabric, p topo.PortID, keys ...ib.PKey) {
	w.sketch.SetPKeys(p, keys...)
	if at := f.SwitchPortOf(p); at != topo.None {
		w.sketch.SetPKeys(at, keys...)
	}
}

// route makes tables for the current fabric.
func (w *world) route(t testing.TB) {
	c, err := route.First(w.k.Fabric(), w.tables, minhop.Engine{}, updn.Engine{})
	if err != nil {
		t.Fatal(err)
	}
	w.tables = c.Tables
}

// see makes the next view and book.
func (w *world) see() *portindex.Book {
	if w.book == nil {
		w.book = portindex.Empty(portindex.Rules{Seed: 0x5eed_5eed_5eed_5eed}) // others are made with none
	}
	w.view = w.sketch.View(w.k.Fabric(), w.tables)
	w.book = portindex.New(w.book, w.view)
	return w.book
}

// naive returns the contents of a book, computed by a full search.
func naive(v *sm.View) (byLID map[ib.LID]topo.PortID, byGUID map[ib.GUID]topo.PortID, keys map[topo.PortID][]ib.PKey) {
	byLID, byGUID, keys = make(map[ib.LID]topo.PortID), make(map[ib.GUID]topo.PortID), make(map[topo.PortID][]ib.PKey)
	f := v.Fabric
	for _, aliases := range []bool{false, true} {
		for id, p := range f.Ports() {
			if p.LID == 0 || p.GUID == 0 || !f.IsEndPort(id) {
				continue
			}
			guids := []ib.GUID{p.GUID}
			if aliases {
				guids = v.Aliases(id)
			}
			for _, g := range guids {
				if _, taken := byGUID[g]; !taken && g != 0 {
					byGUID[g] = id
				}
			}
			for i := range ib.LID(1) << p.LMC {
				if _, taken := byLID[p.LID+i]; !taken {
					byLID[p.LID+i] = id
				}
			}
			keys[id] = naiveKeys(v, id)
		}
	}
	return byLID, byGUID, keys
}

func naiveKeys(v *sm.View, id topo.PortID) []ib.PKey {
	f := v.Fabric
	own, _ := v.PKeys(id)
	at := f.SwitchPortOf(id)
	best := make(map[ib.PKey]ib.PKey)
	for _, k := range own {
		ok := f.Port(id).Num == 0
		switch {
		case ok:
		case at == topo.None || f.NodeOf(at).PartitionEnforcementCap == 0:
			ok = k.Base() == 0x7fff
		default:
			held, _ := v.PKeys(at)
			ok = slices.Contains(held, k)
		}
		if ok {
			best[k.Base()] |= k
		}
	}
	var all []ib.PKey
	for base := ib.PKey(1); base <= 0x7fff; base++ {
		if k, ok := best[base]; ok {
			all = append(all, k)
		}
	}
	return all
}

func (w *world) judge(t *testing.T) {
	t.Helper()
	byLID, byGUID, keys := naive(w.view)
	for lid := range ib.LID(0x400) {
		got := w.book.ByLID(lid)
		want, ok := byLID[lid]
		if (got != nil) != ok || ok && got.Port != want {
			t.Fatalf("LID %v leads to %+v, want %v %v", lid, got, want, ok)
		}
		if w.book.Routes.Reaches(lid) != (ok && reaches(w.view, want, lid)) {
			t.Fatalf("LID %v reached: %v", lid, w.book.Routes.Reaches(lid))
		}
	}
	for g, want := range byGUID {
		if got := w.book.ByGUID(g); got == nil || got.Port != want {
			t.Fatalf("GUID %v leads to %+v, want %v", g, got, want)
		}
		if got := w.book.ByGUID(g ^ 0x5555_0000_0000_0000); got != nil {
			t.Fatalf("a GUID that nobody has leads to %+v", got)
		}
	}
	for p := range topo.PortID(w.view.Fabric.NumPorts()) {
		e := w.book.EndPort(p)
		if want, ok := keys[p]; (e != nil) != ok || ok && !slices.Equal(e.PKeys, want) {
			t.Fatalf("port %v: %+v, want the P_Keys %v", p, e, want)
		}
	}
	fresh := portindex.New(nil, w.view)
	if a, b := w.book.EndPorts(), fresh.EndPorts(); len(a) != len(keys) || len(a) != len(b) {
		t.Fatalf("%d end ports, made anew %d, want %d", len(a), len(b), len(keys))
	}
	all := slices.Collect(w.book.All())
	for i, e := range slices.Collect(fresh.All()) {
		a, b := fmt.Sprintf("%+v", *all[i]), fmt.Sprintf("%+v", *e)
		if trim(a) != trim(b) {
			t.Fatalf("end port %s, made anew %s", a, b)
		}
	}
	a, b := w.book.Routes, fresh.Routes
	if a.Sound != b.Sound || a.MinRate != b.MinRate || a.MaxRate != b.MaxRate || a.MinMTU != b.MinMTU || a.MaxMTU != b.MaxMTU {
		t.Fatalf("routes %v %v %v %v %v, made anew %v %v %v %v %v", a.Sound, a.MinRate, a.MaxRate, a.MinMTU, a.MaxMTU, b.Sound, b.MinRate, b.MaxRate, b.MinMTU, b.MaxMTU)
	}
}

// trim leaves the address of shared things out of a text.
func trim(s string) string {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == ':' {
			return s[:i]
		}
	}
	return s
}

func reaches(v *sm.View, p topo.PortID, lid ib.LID) bool {
	f := v.Fabric
	sw, out := f.Port(p).Node, ib.PortNum(0)
	if f.Port(p).Num != 0 || f.Node(sw).Type != ib.NodeSwitch {
		at := f.SwitchPortOf(p)
		if at == topo.None || f.LinkUp(p) != at {
			return false
		}
		sw, out = f.Port(at).Node, f.Port(at).Num
	}
	lft := v.Tables.LFT(sw)
	return v.Tables.Home(lid) == sw && int(lid) < len(lft) && lft[lid] == out
}

// TestBooksFollowViews changes a fabric at random. It compares each book with a book made from the beginning, and with the
// result of a full search.
func TestBooksFollowViews(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(topotest.Random(6, func(most int) int { return rng.IntN(most + 1) }))
		for range 25 {
			for range 1 + rng.IntN(3) {
				w.change(t, rng)
			}
			w.see()
			w.judge(t)
		}
	}
}

// change changes one thing.
func (w *world) change(t *testing.T, rng *rand.Rand) {
	f := w.k.Fabric()
	p := topo.PortID(rng.IntN(f.NumPorts()))
	if ends := f.EndPorts(); rng.IntN(2) == 0 && len(ends) > 0 {
		p = ends[rng.IntN(len(ends))]
	}
	key := func() ib.PKey {
		return []ib.PKey{0, 0x8001, 1, 0x8002, 2, 0x7fff, 0xffff, 0x9000}[rng.IntN(8)]
	}
	port := w.k.Port(p)
	switch rng.IntN(10) {
	case 0:
		w.route(t)
	case 1:
		w.keys(f, p, key(), key(), key())
	case 2:
		w.sketch.SetPKeys(p, key(), key())
	case 3:
		w.sketch.SetPKeys(p)
	case 4:
		w.sketch.SetAliases(p, ib.GUID(rng.IntN(20)), ib.GUID(0x0020_0000_0000_0001+rng.IntN(3)<<8))
	case 5:
		port.Width, port.Speed, port.MTUCap = ib.LinkWidth(1<<rng.IntN(4)), ib.Speed(rng.IntN(9)), ib.MTU(rng.IntN(6))
		w.k.SetPort(p, port)
	case 6:
		port.State = []ib.PortState{ib.PortDown, ib.PortActive}[rng.IntN(2)]
		w.k.SetPort(p, port)
	case 7:
		if rng.IntN(3) == 0 {
			w.k.Disconnect(p)
		}
		if rng.IntN(5) == 0 {
			w.k.RemoveNode(port.Node)
		}
	case 8:
		n := w.k.Node(port.Node)
		n.PartitionEnforcementCap = uint16(rng.IntN(2) * 8)
		w.k.SetNode(port.Node, n)
	default:
		h := w.k.Host(1)
		if sw := f.Switches(); len(sw) > 0 && len(w.k.Hosts) < 60 {
			w.k.Link(h, sw[rng.IntN(len(sw))])
		}
	}
}

// TestTwinsTakeTurns: if several ports claim a GUID, one has it, and when that one disappears another gets it.
func TestTwinsTakeTurns(t *testing.T) {
	k := topotest.Single(4, 8)
	w := newWorld(k)
	f := k.Fabric()
	a, b, c := f.PortOf(k.Hosts[0], 1), f.PortOf(k.Hosts[1], 1), f.PortOf(k.Hosts[2], 1)
	w.sketch.SetAliases(b, 0xA1)
	w.sketch.SetAliases(c, 0xA1, f.Port(a).GUID)
	has := func(g ib.GUID, want topo.PortID) {
		t.Helper()
		if e := w.see().ByGUID(g); e == nil || e.Port != want {
			t.Errorf("%v leads to %+v, want port %v", g, e, want)
		}
		w.judge(t)
	}
	has(0xA1, b)
	has(f.Port(a).GUID, a)
	k.RemoveNode(f.Port(b).Node)
	has(0xA1, c)
	k.RemoveNode(f.Port(a).Node)
	has(f.Port(a).GUID, c)
	k.RemoveNode(f.Port(c).Node)
	if e := w.see().ByGUID(0xA1); e != nil {
		t.Errorf("%+v has an alias although it is gone", e)
	}
}

// TestBooksShare: equal hosts share their P_Keys, and a change of one host does not change the others.
func TestBooksShare(t *testing.T) {
	k := topotest.FatTree2(200, 36)
	w := newWorld(k)
	f := k.Fabric()
	for _, p := range f.EndPorts() {
		w.keys(f, p, 0x7fff, 0x8001)
	}
	w.route(t)
	old := w.see()
	x, y := old.EndPort(f.PortOf(k.Hosts[0], 1)), old.EndPort(f.PortOf(k.Hosts[199], 1))
	if &x.PKeys[0] != &y.PKeys[0] {
		t.Error("equal tables are kept twice")
	}
	w.keys(f, x.Port, 0x7fff, 0x8002)
	now := w.see()
	if got := now.EndPort(x.Port).PKeys; !slices.Equal(got, []ib.PKey{0x8002, 0x7fff}) || !slices.Equal(x.PKeys, []ib.PKey{0x8001, 0x7fff}) {
		t.Errorf("now %v, before %v", got, x.PKeys)
	}
	fresh := 0
	for e := range now.All() {
		if old.EndPort(e.Port) != e {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d end ports are new, want 1", fresh)
	}
	if portindex.New(old, w.view).ByGUID(x.GUID).PKeys[0] != 0x8002 {
		t.Error("a book made after one that is not the last is wrong")
	}
}

// TestOwnTables: a port that is not behind a port which checks P_Keys has at most the default partition. The Subnet Manager
// and ports 0 of switches are exceptions.
func TestOwnTables(t *testing.T) {
	k := topotest.Single(3, 8)
	w := newWorld(k)
	f := k.Fabric()
	sw := f.Switches()[0]
	n := k.Node(sw)
	n.PartitionEnforcementCap = 0
	k.SetNode(sw, n)
	for _, p := range f.EndPorts() {
		w.sketch.SetPKeys(p, 0xffff, 0x8001)
	}
	f = k.Fabric()
	own := f.Port(f.PortOf(k.Hosts[2], 1))
	v := w.sketch.View(f, nil)
	v.GUID, v.LID = own.GUID, own.LID
	b := portindex.New(nil, v)
	for p, want := range map[topo.PortID][]ib.PKey{
		f.PortOf(sw, 0):         {0x8001, 0xffff},
		f.PortOf(k.Hosts[0], 1): {0xffff},
		f.PortOf(k.Hosts[2], 1): {0x8001, 0xffff},
	} {
		if got := b.EndPort(p).PKeys; !slices.Equal(got, want) {
			t.Errorf("port %v may use %v, want %v", p, got, want)
		}
	}
}

// TestLookupsDoNotAllocate: the look-ups for an answer do not allocate.
func TestLookupsDoNotAllocate(t *testing.T) {
	k := topotest.FatTree2(100, 36)
	w := newWorld(k)
	f := k.Fabric()
	for _, p := range f.EndPorts() {
		w.keys(f, p, 0x7fff, 0x8001)
	}
	b := w.see()
	g := topotest.HostGUID(50) + 1
	found := 0
	if n := testing.AllocsPerRun(100, func() {
		x, y := b.ByGUID(g), b.ByLID(3)
		if k, ok := portindex.Common(x, y); ok && k == 0x8001 && portindex.Sees(x, y, false) && b.Decoy(12345) != nil && b.ByGUID(12345) == nil {
			found++
		}
	}); n != 0 || found != 101 {
		t.Errorf("%v allocations, found %d times", n, found)
	}
}

// TestAChangeCostsTheSame: a change of one host makes as much garbage in a small fabric
// as in a large one, but for directories of pages.
func TestAChangeCostsTheSame(t *testing.T) {
	var allocs [2]float64
	for i, hosts := range []int{36, 648} {
		k := topotest.FatTree2(hosts, 36)
		w := newWorld(k)
		f := k.Fabric()
		for _, p := range f.EndPorts() {
			w.keys(f, p, 0x7fff, 0x8001)
		}
		w.route(t)
		w.see()
		p, n := f.PortOf(k.Hosts[7], 1), 0
		allocs[i] = testing.AllocsPerRun(20, func() {
			n++
			w.keys(f, p, 0x7fff, 0x8001+ib.PKey(n%2))
			w.book = portindex.New(w.book, w.sketch.View(f, w.tables))
		})
	}
	if allocs[1] > allocs[0]+4 {
		t.Errorf("%v allocations in a large fabric, %v in a small one", allocs[1], allocs[0])
	}
}

func BenchmarkNew(b *testing.B) {
	for _, hosts := range []int{36, 1944, 10368} {
		k := topotest.FatTree3(hosts, 36)
		if hosts == 36 {
			k = topotest.FatTree2(hosts, 36)
		}
		w := newWorld(k)
		f := k.Fabric()
		for i, p := range f.EndPorts() {
			w.keys(f, p, 0x7fff, 0x8001+ib.PKey(i%50))
		}
		w.route(b)
		w.see()
		p := f.PortOf(k.Hosts[7], 1)
		b.Run(fmt.Sprintf("whole/%d", hosts), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				portindex.New(nil, w.view)
			}
		})
		b.Run(fmt.Sprintf("change/%d", hosts), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.keys(f, p, 0x7fff, 0x8001+ib.PKey(i%2))
				w.book = portindex.New(w.book, w.sketch.View(f, w.tables))
			}
		})
		b.Run(fmt.Sprintf("tables/%d", hosts), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				other := *w.tables
				w.book = portindex.New(w.book, w.sketch.View(f, &other))
			}
		})
	}
}

// TestReadersMeanwhile reads books while the next ones are made, for the race detector.
func TestReadersMeanwhile(t *testing.T) {
	k := topotest.FatTree2(36, 12)
	w := newWorld(k)
	f := k.Fabric()
	for _, p := range f.EndPorts() {
		w.keys(f, p, 0x7fff, 0x8001)
	}
	w.route(t)
	first := w.see()
	want := first.ByGUID(topotest.HostGUID(7) + 1).PKeys[0]
	books := make(chan *portindex.Book, 64)
	done := make(chan int)
	go func() {
		read := 0
		for b := range books {
			for e := range b.All() {
				if b.ByGUID(e.GUID) == e && b.ByLID(e.LID) == e && portindex.Sees(e, e, true) && b.Routes.Reaches(e.LID) && b.Decoy(1) != nil {
					read++
				}
			}
		}
		done <- read
	}()
	n := len(first.EndPorts())
	for i := range 50 {
		w.keys(f, f.PortOf(k.Hosts[i%36], 1), 0x7fff, 0x8001+ib.PKey(i%3))
		w.sketch.SetAliases(f.PortOf(k.Hosts[(i+5)%36], 1), ib.GUID(0xA000+i))
		books <- w.see()
	}
	close(books)
	if read := <-done; read != 50*n {
		t.Errorf("%d end ports were found again, want %d", read, 50*n)
	}
	if got := first.ByGUID(topotest.HostGUID(7) + 1).PKeys[0]; got != want {
		t.Errorf("the first book says %v now, and said %v", got, want)
	}
}
