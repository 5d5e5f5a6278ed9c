package sm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// BenchmarkTakeOver has a manager begin on a settled fabric with M_Keys, until hosts have answers: all ports
// name it, and no forwarding table was asked for. It measures the cost for the core apart from that of routing.
func BenchmarkTakeOver(b *testing.B) {
	for _, size := range []int{1944, 10368} {
		b.Run(fmt.Sprint(size, " hosts"), func(b *testing.B) {
			l, err := netlist.FatTree3(netlist.Shape{Hosts: size, Radix: 36})
			l = list(b, l, err)
			cfg := keyed(b)
			cfg.AnswersEarly, cfg.IntentWait, cfg.Window = true, time.Second, 256
			e := newEnv(b, l, sim.Options{}, cfg, 1)
			in := sm.Intent{Revision: 1}
			for i, h := range hosts(l) {
				in.Grants = append(in.Grants, h.grant(ib.PKey(0x8001+i%dealtOver)))
			}
			e.start()
			e.want(in)
			e.mustSettle(time.Minute)
			facts := slices.Clone(e.facts)
			for b.Loop() {
				e.facts, e.steps, e.smps = slices.Clone(facts), 0, make(map[string]int)
				e.meter.on = true
				e.start()
				e.want(in)
				for (e.view == nil || e.view.Early == nil) && e.next(e.now.Add(time.Second)) {
				}
				e.meter.on = false
			}
			all := 0
			for _, n := range e.smps {
				all += n
			}
			each := float64(b.N)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(e.meter.core.Milliseconds())/each, "core-ms/op")
			b.ReportMetric(float64(e.meter.core.Nanoseconds())/each/float64(all), "core-ns/SMP")
			b.ReportMetric(float64(e.meter.route.Milliseconds())/each, "route-ms/op")
			b.ReportMetric(float64(all), "SMPs/op")
		})
	}
}
