package path_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/portindex"
)

const counts = mad.MultiPathComponentSGIDCount | mad.MultiPathComponentDGIDCount

// manyQuestion is the data of a MultiPathRecord.
func manyQuestion(t testing.TB, r mad.MultiPathRecord, src, dst []ib.GID) []byte {
	t.Helper()
	r.SGIDCount, r.DGIDCount = uint8(len(src)), uint8(len(dst))
	data := make([]byte, 24)
	if err := mad.Encode(data, &r); err != nil {
		t.Fatal(err)
	}
	for _, g := range append(src[:len(src):len(src)], dst...) {
		data = append(data, g[:]...)
	}
	return data
}

// TestMulti asks for paths between sets of ports.
func TestMulti(t *testing.T) {
	l := newLab(t)
	for i := range l.k.Hosts {
		p := l.k.Port(l.port(i))
		p.LMC, p.LID = 1, ib.LID(0x40+2*i)
		l.k.SetPort(l.port(i), p)
		l.keys(i, 0x8001)
	}
	l.open()
	g := []ib.GID{l.gid(0), l.gid(1), l.gid(2), l.gid(3)}
	nobody := ib.MakeGID(ib.DefaultPrefix, 0xDEAD)
	type pair = [2]ib.LID
	for _, c := range []struct {
		name     string
		r        mad.MultiPathRecord
		mask     mad.ComponentMask
		src, dst []ib.GID
		trust    bool
		want     []pair
		status   mad.Status
	}{
		{name: "all", mask: counts, src: g[:2], dst: g[2:3], want: []pair{{0x40, 0x44}, {0x41, 0x45}, {0x40, 0x45}, {0x41, 0x44}, {0x42, 0x44}, {0x43, 0x45}, {0x42, 0x45}, {0x43, 0x44}}},
		{name: "some", mask: counts | mad.MultiPathComponentNumbPath, r: mad.MultiPathRecord{NumbPath: 3}, src: g[:2], dst: g[2:3], want: []pair{{0x40, 0x44}, {0x41, 0x45}, {0x40, 0x45}}},
		{name: "none", mask: counts | mad.MultiPathComponentNumbPath, src: g[:2], dst: g[2:3]},
		{
			name: "independent", mask: counts | mad.MultiPathComponentNumbPath | mad.MultiPathComponentIndependenceSelector, r: mad.MultiPathRecord{NumbPath: 6, IndependenceSelector: 1},
			src: g[:2], dst: g[2:], want: []pair{{0x40, 0x44}, {0x42, 0x46}, {0x40, 0x46}, {0x42, 0x44}, {0x41, 0x45}, {0x40, 0x45}},
		},
		{
			name: "independent, all", mask: counts | mad.MultiPathComponentIndependenceSelector, r: mad.MultiPathRecord{IndependenceSelector: 1},
			src: g[:2], dst: g[2:3], want: []pair{{0x40, 0x44}, {0x42, 0x44}, {0x41, 0x45}, {0x40, 0x45}, {0x41, 0x44}, {0x43, 0x45}, {0x42, 0x45}, {0x43, 0x44}},
		},
		{name: "with a P_Key", mask: counts | mad.MultiPathComponentPKey, r: mad.MultiPathRecord{PKey: 0x8002}, src: g[:2], dst: g[2:]},
		{name: "nobody among them", mask: counts | mad.MultiPathComponentNumbPath, r: mad.MultiPathRecord{NumbPath: 1}, src: []ib.GID{nobody, g[0]}, dst: g[2:3], want: []pair{{0x40, 0x44}}},
		{name: "the same, trusted", mask: counts, trust: true, src: []ib.GID{nobody, g[0]}, dst: g[2:3], status: mad.StatusInvalidGID},
		{name: "nobody", mask: counts, src: []ib.GID{nobody}, dst: []ib.GID{nobody}},
		{name: "without counts", src: g[:1], dst: g[2:3], status: mad.StatusInsufficientComponents},
		{name: "no sources", mask: counts, dst: g[2:3], status: mad.StatusInvalidRequest},
		{name: "no destinations", mask: counts, src: g[2:3], status: mad.StatusInvalidRequest},
		{name: "half a ServiceID", mask: counts | mad.MultiPathComponentServiceID8MSB, src: g[:1], dst: g[2:3], status: mad.StatusInsufficientComponents},
		{name: "an MTU that is none", mask: counts | mad.MultiPathComponentMTU | mad.MultiPathComponentMTUSelector, src: g[:1], dst: g[2:3], status: mad.StatusInvalidRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, status := l.e.GetMulti(l.b, l.asker(0, c.trust), c.mask, manyQuestion(t, c.r, c.src, c.dst))
			if status != c.status {
				t.Fatalf("status %v, want %v", status, c.status)
			}
			if status != mad.StatusOK {
				return
			}
			got := list(t, &table)
			if len(got) != len(c.want) {
				t.Fatalf("%d paths, want %d: %+v", len(got), len(c.want), got)
			}
			for i, w := range c.want {
				if (pair{got[i].SLID, got[i].DLID}) != w {
					t.Errorf("path %d is %v to %v, want %v", i, got[i].SLID, got[i].DLID, w)
				}
			}
		})
	}
	data := manyQuestion(t, mad.MultiPathRecord{}, g[:2], g[2:])
	if _, status := l.e.GetMulti(l.b, l.asker(0, false), counts, data[:len(data)-1]); status != mad.StatusInvalidRequest {
		t.Errorf("GIDs cut off: %v", status)
	}
}

// TestMultiIsPaths: for two GIDs GetMulti returns the same as GetTable.
func TestMultiIsPaths(t *testing.T) {
	l := newLab(t).open()
	for x := range 4 {
		for y := range 4 {
			for _, a := range []*portindex.Asker{l.asker(0, false), l.asker(2, false), l.asker(3, true)} {
				r := mad.PathRecord{SGID: l.gid(x), DGID: l.gid(y), PKey: 0x8001, SL: 1, Rate: ib.Rate100, Reversible: true}
				one, s1 := l.e.GetTable(l.b, nil, a, request(&r, byGID|mad.PathComponentPKey|mad.PathComponentSL|rate|mad.PathComponentReversible))
				m := mad.MultiPathRecord{PKey: 0x8001, SL: 1, Rate: ib.Rate100, Reversible: true}
				many, s2 := l.e.GetMulti(l.b, a, counts|mad.MultiPathComponentPKey|mad.MultiPathComponentSL|mad.MultiPathComponentRate|mad.MultiPathComponentRateSelector|mad.MultiPathComponentReversible,
					manyQuestion(t, m, []ib.GID{r.SGID}, []ib.GID{r.DGID}))
				got, want := list(t, &many), list(t, &one)
				if s1 != s2 || len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
					t.Errorf("%d to %d: %v %+v, want %v %+v", x, y, s2, got, s1, want)
				}
			}
		}
	}
}

// FuzzQuestions: every query is answered, within bounds.
func FuzzQuestions(f *testing.F) {
	l := newLab(f)
	l.cfg.FullWorld, l.cfg.Policy = true, policy(f, levels)
	mgid := ib.GID{0xFF, 0x12, 15: 1}
	l.groups[mgid] = path.Group{MLID: 0xC001, PKey: 0x8001, MTU: ib.MTU2048, Rate: ib.Rate10}
	l.open()
	for _, r := range []mad.PathRecord{{SGID: l.gid(0), DGID: l.gid(2)}, {DGID: mgid}, {SLID: l.lid(1), DLID: l.lid(2), MTU: 4, Rate: 3, NumbPath: 2}} {
		f.Add(uint64(byGID), true, request(&r, 0).SAData())
		f.Add(^uint64(0), false, request(&r, 0).SAData())
		f.Add(uint64(0), true, request(&r, 0).SAData())
	}
	f.Add(uint64(counts), false, manyQuestion(f, mad.MultiPathRecord{NumbPath: 1, IndependenceSelector: 1}, []ib.GID{l.gid(0), l.gid(1)}, []ib.GID{l.gid(2)}))
	f.Fuzz(func(t *testing.T, mask uint64, trusted bool, data []byte) {
		var m mad.MAD
		m.SetComponentMask(mad.ComponentMask(mask))
		copy(m.SAData(), data)
		a := l.asker(0, trusted)
		table, status := l.e.GetTable(l.b, l.groups, a, &m)
		if n := len(list(t, &table)); n > 36 || status != mad.StatusOK && n > 0 {
			t.Errorf("table: %d records, status %v", n, status)
		}
		many, status := l.e.GetMulti(l.b, a, mad.ComponentMask(mask), data)
		for _, r := range list(t, &many) {
			check(t, l, trusted, &r)
		}
		if status != mad.StatusOK && many.Steps() > 10_000 {
			t.Errorf("%d steps for status %v", many.Steps(), status)
		}
		if status, _ := l.e.Get(l.b, l.groups, a, &m); status == mad.StatusOK {
			var r mad.PathRecord
			if err := mad.Decode(m.SAData(), &r); err != nil {
				t.Fatal(err)
			}
			check(t, l, trusted, &r)
		}
	})
}

// check checks the invariants of a path.
func check(t *testing.T, l *lab, trusted bool, r *mad.PathRecord) {
	t.Helper()
	if r.DGID.IsMulticast() {
		return
	}
	x, y := l.b.ByLID(r.SLID), l.b.ByLID(r.DLID)
	if x == nil || y == nil {
		t.Fatalf("a path to nobody: %+v", r)
	}
	me := l.b.EndPort(l.port(0))
	if _, ok := portindex.Common(x, y); !ok || !trusted && !(portindex.Sees(me, x, false) && portindex.Sees(me, y, false)) {
		t.Errorf("a path that the asker may not know of: %+v", r)
	}
	if r.MTU.Bytes() == 0 || r.Rate.Mbps() == 0 || r.MTUSelector != mad.SelectExactly {
		t.Errorf("a path without MTU or rate: %+v", r)
	}
}
