package route_test

import (
	"fmt"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// BenchmarkLostCable routes and judges after a cable of a leaf, or of an
// aggregation switch, is lost and put back, each time of what was before.
func BenchmarkLostCable(b *testing.B) {
	for _, hosts := range []int{5184, 10368} {
		k := topotest.FatTree3(hosts, 36)
		f := k.Fabric()
		first := mustFirst(b, f, nil)
		for name, p := range map[string]topo.PortID{
			"leaf":        f.PortOf(f.NodeByGUID(topotest.SwitchGUID(1, 50)), 22),
			"aggregation": f.PortOf(f.NodeByGUID(topotest.SwitchGUID(2, 40)), 30),
		} {
			b.Run(fmt.Sprintf("%s/hosts=%d", name, hosts), func(b *testing.B) {
				b.ReportAllocs()
				now, peer := first.Tables, f.Port(p).Peer
				for b.Loop() {
					k.Disconnect(p)
					now = firstOf(b, k.Fabric(), now)
					k.Connect(p, peer)
					now = firstOf(b, k.Fabric(), now)
				}
			})
		}
	}
}

func firstOf(b *testing.B, f *topo.Fabric, prev *route.Tables) *route.Tables {
	b.Helper()
	c, err := route.First(f, prev, minhop.Engine{})
	if err != nil {
		b.Fatal(err)
	}
	return c.Tables
}

// BenchmarkFirst routes and judges whole fabrics, the last of 40,000 LIDs.
func BenchmarkFirst(b *testing.B) {
	for _, size := range []struct{ hosts, radix int }{{648, 36}, {1944, 36}, {5184, 36}, {10368, 36}, {37000, 64}} {
		k := topotest.FatTree3(size.hosts, size.radix)
		for id := range topo.NodeID(k.NumNodes()) {
			n := k.Node(id)
			n.LinearFDBCap = uint16(ib.MaxUnicastLID) + 1
			k.SetNode(id, n)
		}
		f := k.Fabric()
		b.Run(fmt.Sprintf("hosts=%d", size.hosts), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := route.First(f, nil, minhop.Engine{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
