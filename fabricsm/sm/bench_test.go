package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// BenchmarkBringUp brings three-level fabrics up in process, from nothing to
// settled; the simulator's own work is part of the time.
func BenchmarkBringUp(b *testing.B) {
	for name, shape := range map[string]netlist.Shape{
		"54 hosts":  {Hosts: 54, Radix: 6},
		"648 hosts": {Hosts: 648, Radix: 18},
	} {
		b.Run(name, func(b *testing.B) {
			l, err := netlist.FatTree3(shape)
			l = list(b, l, err)
			smps := 0
			for b.Loop() {
				e := newEnv(b, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
				e.start()
				e.mustSettle(time.Minute)
				smps = 0
				for _, n := range e.smps {
					smps += n
				}
			}
			b.ReportMetric(float64(smps), "SMPs")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(smps), "us/SMP")
		})
	}
}
