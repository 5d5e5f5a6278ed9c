package path_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/topo"
)

// everything describes all visible properties of an answer: status, the MAD, records and the number of steps.
func everything(t testing.TB, l *lab, a *portindex.Asker, r mad.PathRecord, mask mad.ComponentMask) string {
	t.Helper()
	m := request(&r, mask)
	status, steps := l.e.Get(l.b, l.groups, a, m)
	if status != mad.StatusOK {
		clear(m[:]) // it holds the query, which differs
	}
	table, tstatus := l.e.GetTable(l.b, l.groups, a, request(&r, mask))
	records := list(t, &table)
	all := fmt.Sprintf("%v %d %x; %v %d %d", status, steps, m[:], tstatus, len(records), table.Steps())
	data := make([]byte, 24+32)
	multi := mad.MultiPathRecord{SGIDCount: 1, DGIDCount: 1}
	if err := mad.Encode(data, &multi); err != nil {
		t.Fatal(err)
	}
	copy(data[24:], r.SGID[:])
	copy(data[40:], r.DGID[:])
	c, mstatus := l.e.GetMulti(l.b, a, mad.MultiPathComponentSGIDCount|mad.MultiPathComponentDGIDCount, data)
	n := len(list(t, &c))
	return all + fmt.Sprintf("; %v %d %d", mstatus, n, c.Steps())
}

// TestUnknownIsAsForeign: a port of another tenant and one that does not exist are
// answered alike, with as many steps, whichever end is named, and how.
func TestUnknownIsAsForeign(t *testing.T) {
	l := newLab(t)
	l.keys(0, 0x7fff, 0x8001, 0x8003, 0x8004, 0x8005)
	l.keys(3, 0x7fff, 0x8002, 0x8006, 0x8007)
	l.groups[ib.GID{0xFF, 0x12, 15: 1}] = path.Group{MLID: 0xC001, PKey: 0x8002, MTU: ib.MTU2048, Rate: ib.Rate10}
	l.s.SetAliases(l.port(3), 0xA3)
	l.open()
	own, foreign, alias, nobody := l.gid(0), l.gid(3), ib.MakeGID(ib.DefaultPrefix, 0xA3), ib.MakeGID(ib.DefaultPrefix, 0xDEAD)
	type q = mad.PathRecord
	for _, c := range []struct {
		name string
		mask mad.ComponentMask
		r    []q
	}{
		{"destination", byGID, []q{{SGID: own, DGID: foreign}, {SGID: own, DGID: alias}, {SGID: own, DGID: nobody}, {SGID: own, DGID: ib.MakeGID(ib.DefaultPrefix, 0x5555)}}},
		{"source", byGID, []q{{DGID: own, SGID: foreign}, {DGID: own, SGID: nobody}}},
		{"both", byGID, []q{{DGID: foreign, SGID: foreign}, {DGID: nobody, SGID: nobody}, {DGID: foreign, SGID: nobody}}},
		{"LID", mad.PathComponentSGID | mad.PathComponentDLID, []q{{SGID: own, DLID: l.lid(3)}, {SGID: own, DLID: 0x3000}}},
		{"GID and LID", byGID | mad.PathComponentDLID, []q{
			{SGID: own, DGID: foreign, DLID: l.lid(3)}, {SGID: own, DGID: foreign, DLID: l.lid(2)}, {SGID: own, DGID: nobody, DLID: l.lid(3)}, {SGID: own, DGID: nobody, DLID: 0x3000},
		}},
		{"own GID, foreign LID", byGID | mad.PathComponentSLID, []q{{SGID: own, DGID: l.gid(2), SLID: l.lid(3)}, {SGID: own, DGID: l.gid(2), SLID: 0x3000}}},
		{"with its P_Key", byGID | mad.PathComponentPKey, []q{{SGID: own, DGID: foreign, PKey: 0x8002}, {SGID: own, DGID: nobody, PKey: 0x8002}}},
		{"group", mad.PathComponentDGID, []q{{SGID: own, DGID: ib.GID{0xFF, 0x12, 15: 1}}, {SGID: own, DGID: ib.GID{0xFF, 0x12, 15: 2}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := everything(t, l, l.asker(0, false), c.r[0], c.mask)
			for _, r := range c.r[1:] {
				if got := everything(t, l, l.asker(0, false), r, c.mask); got != want {
					t.Errorf("%v, %v:\n%s, but a foreign one:\n%s", r.SGID, r.DGID, got, want)
				}
			}
		})
	}
}

// TestUnknownIsAsForeignAnywhere does the same on random fabrics: an end port without a common partition with the requester
// is the same as a missing one.
func TestUnknownIsAsForeignAnywhere(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		k, v := drawn(t, rng)
		l := &lab{t: t, k: k, v: v, b: portindex.New(nil, v)}
		var err error
		if l.e, err = path.New(path.Config{}); err != nil {
			t.Fatal(err)
		}
		ends := v.Fabric.EndPorts()
		for range 40 {
			r, mask := ask(v.Fabric, v, rng)
			a := &portindex.Asker{Port: ends[rng.IntN(len(ends))]}
			me, other := l.b.EndPort(a.Port), l.b.ByGUID(r.DGID.GUID())
			if mask&byGID != byGID || me == nil || other == nil || r.DGID.Prefix() != ib.DefaultPrefix || portindex.Sees(me, other, false) {
				continue
			}
			compared++
			want := everything(t, l, a, r, mask)
			was := r.DGID
			r.DGID = ib.MakeGID(ib.DefaultPrefix, ib.GUID(0xE000_0000_0000_0000+rng.Uint64()>>8))
			if got := everything(t, l, a, r, mask); got != want {
				t.Fatalf("seed %d: %v gives %s, but nobody %s", seed, was, want, got)
			}
		}
	}
	if compared < 100 {
		t.Errorf("%d questions compared", compared)
	}
}

// TestGetDoesNotAllocate: neither an answer nor a refusal makes garbage, with a QoS
// policy, groups and a route to be followed.
func TestGetDoesNotAllocate(t *testing.T) {
	l := newLab(t)
	l.cfg.Policy = policy(t, levels)
	l.cfg.Partitions = map[ib.PKey]ib.SL{1: 1}
	mgid := ib.GID{0xFF, 0x12, 15: 1}
	l.groups[mgid] = path.Group{MLID: 0xC001, PKey: 0x8001, MTU: ib.MTU2048, Rate: ib.Rate10}
	f := l.k.Fabric()
	l.link(f.PortOf(f.Switches()[0], 4), ib.EDR, ib.MTU2048)
	l.open()
	var groups path.Groups = l.groups
	for name, r := range map[string]mad.PathRecord{
		"a path":  {SGID: l.gid(0), DGID: l.gid(2)},
		"foreign": {SGID: l.gid(0), DGID: l.gid(3)},
		"nobody":  {SGID: l.gid(0), DGID: ib.MakeGID(ib.DefaultPrefix, 0xDEAD)},
		"group":   {SGID: l.gid(0), DGID: mgid},
	} {
		asked := request(&r, byGID)
		a := l.asker(0, false)
		var m mad.MAD
		if n := testing.AllocsPerRun(200, func() {
			m = *asked
			l.e.Get(l.b, groups, a, &m)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	table, _ := l.e.GetTable(l.b, groups, l.asker(0, false), request(&mad.PathRecord{SGID: l.gid(0)}, mad.PathComponentSGID))
	rec := make([]byte, path.RecordSize)
	if n := testing.AllocsPerRun(200, func() { table.Next(rec) }); n != 0 {
		t.Errorf("a row of a table: %v allocations", n)
	}
}

// BenchmarkForeign asks for a port of another tenant, and for one that does not exist.
func BenchmarkForeign(b *testing.B) {
	k, v := tree(b, 1944)
	bk := portindex.New(nil, v)
	e, err := path.New(path.Config{})
	if err != nil {
		b.Fatal(err)
	}
	f := v.Fabric
	a := &portindex.Asker{Port: f.PortOf(k.Hosts[0], 1)}
	rng := rand.New(rand.NewPCG(1, 1))
	var foreign, nobody []*mad.MAD
	for range 1 << 12 {
		m := question(f, k.Hosts[0], k.Hosts[16+rng.IntN(1900)])
		foreign = append(foreign, m)
		n := *m
		binary.BigEndian.PutUint64(n.SAData()[16:], rng.Uint64()|1<<63) // of the DGID
		nobody = append(nobody, &n)
	}
	for name, asks := range map[string][]*mad.MAD{"foreign": foreign, "nobody": nobody} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var m mad.MAD
			i := 0
			for b.Loop() {
				m = *asks[i&(len(asks)-1)]
				i++
				if status, _ := e.Get(bk, nil, a, &m); status != mad.StatusNoRecords {
					b.Fatal(status)
				}
			}
		})
	}
}

// TestBooksWithoutAnything: an empty book answers too, and one without routes.
func TestBooksWithoutAnything(t *testing.T) {
	e, err := path.New(path.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t)
	unrouted := l.s.View(l.k.Fabric(), nil)
	for _, b := range []*portindex.Book{portindex.Empty(portindex.Rules{}), portindex.New(nil, unrouted)} {
		nothing(t, e, b)
	}
}

func nothing(t *testing.T, e *path.Engine, b *portindex.Book) {
	t.Helper()
	r := mad.PathRecord{SGID: ib.MakeGID(ib.DefaultPrefix, 1), DGID: ib.MakeGID(ib.DefaultPrefix, 2)}
	for _, trusted := range []bool{false, true} {
		a := &portindex.Asker{Port: topo.None, Trusted: trusted}
		if status, _ := e.Get(b, nil, a, request(&r, byGID)); status == mad.StatusOK {
			t.Error("a path in an empty book")
		}
		r.SLID, r.DLID = 1, 3
		if status, _ := e.Get(b, nil, a, request(&r, mad.PathComponentSLID|mad.PathComponentDLID)); status == mad.StatusOK {
			t.Error("a path without routes")
		}
		c, _ := e.GetTable(b, nil, a, request(&r, mad.PathComponentSGID))
		if len(list(t, &c)) != 0 {
			t.Error("records in an empty book")
		}
	}
}
