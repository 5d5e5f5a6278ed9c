package proof_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/sim/netlist"
)

// large is a tree of three levels with 10,368 hosts of 1,000 tenants, each in neighbouring places.
func large(tb testing.TB) *bed {
	tb.Helper()
	const hosts, tenants = 10_368, 1000
	l, err := netlist.FatTree3(netlist.Shape{Hosts: hosts, Radix: 36})
	return grow(tb, l, err, func(h int) int { return (h - 2) * tenants / (hosts - 2) })
}

// BenchmarkProve proves a large fabric under all assumptions. MB-input and MB-live are what the fabric and the result hold;
// cpu-s is the processor time, which other load of the machine does not change.
func BenchmarkProve(b *testing.B) {
	before := heap()
	bed := large(b)
	input := heap() - before
	spread := bed.Devices[bed.hosts[5000]].Ports[1]
	for _, bb := range []struct {
		name  string
		plant func()
		open  int // ordered pairs that are open where only switches are counted on
	}{
		{"clean", func() {}, 0},
		{"stray", func() {
			p := bed.front(bed.hosts[5000])
			p.PKeys.Value = append(p.PKeys.Value, keyOf(3).Full())
		}, 2},
		{"all limited members are full", func() {
			bed.front(bed.hosts[5000]).PKeys.Value = spread.PKeys.Value
			for _, dev := range bed.hosts {
				bed.Devices[dev].Ports[1].PKeys.Value[0], bed.front(dev).PKeys.Value[0] = ib.DefaultPKeyFull, ib.DefaultPKeyFull
			}
		}, 999_000},
		{"nothing is enforced", func() {
			for _, dev := range bed.hosts {
				bed.front(dev).Check.Value = proof.Checks{}
			}
		}, 999_000},
	} {
		bb.plant()
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				start, busy := heap(), cpu(b)
				r, err := proof.Prove(bed.Fabric)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(cpu(b)-busy, "cpu-s")
				if got := len(r.Open(proof.Switches)); got != bb.open {
					b.Fatalf("%d pairs are open, want %d", got, bb.open)
				}
				b.ReportMetric(float64(heap()-start)/1e6, "MB-live")
				b.ReportMetric(float64(input)/1e6, "MB-input")
				runtime.KeepAlive(r)
			}
		})
	}
}

// cpu is the processor time of the process in seconds.
func cpu(tb testing.TB) float64 {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
