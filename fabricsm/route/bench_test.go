package route_test

import (
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/ftree"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// BenchmarkFirst routes and judges whole fabrics, the last of 40,000 LIDs.
func BenchmarkFirst(b *testing.B) {
	for _, e := range []route.Engine{minhop.Engine{}, updn.Engine{}, ftree.Engine{}} {
		for _, size := range []struct{ hosts, radix int }{{648, 36}, {1944, 36}, {5184, 36}, {10368, 36}, {37000, 64}} {
			b.Run(fmt.Sprintf("%s/hosts=%d", e.Name(), size.hosts), func(b *testing.B) {
				f := deepTables(topotest.FatTree3(size.hosts, size.radix)).Fabric()
				b.ReportAllocs()
				var least time.Duration
				for b.Loop() {
					before := cpuTime()
					firstOf(b, e, f, nil)
					if took := cpuTime() - before; least == 0 || took < least {
						least = took
					}
				}
				b.ReportMetric(float64(least.Microseconds())/1000, "cpu-ms")
			})
		}
	}
}

// deepTables lets all switches have an entry for every LID.
func deepTables(k *topotest.Kit) *topotest.Kit {
	for id := range topo.NodeID(k.NumNodes()) {
		n := k.Node(id)
		n.LinearFDBCap = uint16(ib.MaxUnicastLID) + 1
		k.SetNode(id, n)
	}
	return k
}
