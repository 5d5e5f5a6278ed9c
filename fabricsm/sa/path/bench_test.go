package path_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// tree is a fat tree of NDR links with tenants of 16 hosts each.
func tree(tb testing.TB, hosts int) (*topotest.Kit, *sm.View) {
	k := topotest.FatTree3(hosts, 36)
	if hosts <= 36 {
		k = topotest.FatTree2(hosts, 36)
	}
	f := k.Fabric()
	for id := range topo.PortID(f.NumPorts()) {
		p := k.Port(id)
		p.Width, p.Speed, p.MTUCap, p.NeighborMTU = ib.Width4x, ib.NDR, ib.MTU4096, ib.MTU4096
		k.SetPort(id, p)
	}
	f = k.Fabric()
	var s sm.Sketch
	for i, h := range k.Hosts {
		p := f.PortOf(h, 1)
		s.SetPKeys(p, ib.DefaultPKeyLimited, 0x8001+ib.PKey(i/16))
		s.SetPKeys(f.SwitchPortOf(p), ib.DefaultPKeyLimited, 0x8001+ib.PKey(i/16))
	}
	c, err := route.First(f, nil, minhop.Engine{})
	if err != nil {
		tb.Fatal(err)
	}
	return k, s.View(f, c.Tables)
}

// question returns a query like that of rdma_cm.
func question(f *topo.Fabric, x, y topo.NodeID) *mad.MAD {
	m := &mad.MAD{}
	m.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, Attr: mad.AttrPathRecord, TID: 1})
	m.SetComponentMask(mad.PathComponentDGID | mad.PathComponentSGID | mad.PathComponentReversible | mad.PathComponentNumbPath | mad.PathComponentTClass)
	r := mad.PathRecord{
		SGID: ib.MakeGID(ib.DefaultPrefix, f.Port(f.PortOf(x, 1)).GUID), DGID: ib.MakeGID(ib.DefaultPrefix, f.Port(f.PortOf(y, 1)).GUID),
		Reversible: true, NumbPath: 1,
	}
	if mad.Encode(m.SAData(), &r) != nil {
		panic("encode")
	}
	return m
}

// BenchmarkPathRecord asks for paths between random hosts of a tenant, with the query read from its MAD and the answer
// written to one.
func BenchmarkPathRecord(b *testing.B) {
	for _, hosts := range []int{36, 1944, 10368} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			k, v := tree(b, hosts)
			bk := portindex.New(nil, v)
			e, err := path.New(path.Config{})
			if err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			type ask struct {
				m *mad.MAD
				a portindex.Asker
			}
			asks := make([]ask, 1<<14)
			for i := range asks {
				x := rng.IntN(hosts)
				y := min(x/16*16+rng.IntN(16), hosts-1)
				p := v.Fabric.PortOf(k.Hosts[x], 1)
				asks[i] = ask{question(v.Fabric, k.Hosts[x], k.Hosts[y]), portindex.Asker{Port: p, LID: v.Fabric.Port(p).LID}}
			}
			var m mad.MAD
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				q := &asks[i&(len(asks)-1)]
				i++
				m = *q.m
				status, _ := e.Get(bk, nil, &q.a, &m)
				m.Respond(status)
				if status != mad.StatusOK {
					b.Fatal(status)
				}
			}
		})
	}
}

// BenchmarkWholeWorld reads the table of all paths, row by row: one operation is a row.
func BenchmarkWholeWorld(b *testing.B) {
	_, v := tree(b, 1944)
	e, err := path.New(path.Config{FullWorld: true})
	if err != nil {
		b.Fatal(err)
	}
	bk, a := portindex.New(nil, v), &portindex.Asker{Port: topo.None, Trusted: true}
	var m mad.MAD
	c, status := e.GetTable(bk, nil, a, &m)
	if status != mad.StatusOK {
		b.Fatal(status)
	}
	rec := make([]byte, path.RecordSize)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.Next(rec); !ok {
			if c, status = e.GetTable(bk, nil, a, &m); status != mad.StatusOK {
				b.Fatal(status)
			}
		}
	}
}
