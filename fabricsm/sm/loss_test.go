package sm_test

import (
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestSettlesDespiteLoss: where three of ten packets are lost on every path, both
// ways, the fabric comes up whole within minutes, and then nothing is written any
// more.
func TestSettlesDespiteLoss(t *testing.T) {
	const most = 3 * time.Minute
	for _, size := range []int{32, 96} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%d hosts, seed %d", size, seed), func(t *testing.T) {
				l := tree(t, size, 16)
				e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, seed)
				e.bad = chaos{lose: 0.3}
				e.start()
				hs := hosts(l)
				in := sm.Intent{Revision: 1}
				for i := range hs {
					in.Grants = append(in.Grants, hs[i].grant(0x8001))
				}
				e.want(in)
				whole := func() (missing []string) {
					for _, h := range hs {
						if e.fab.PortInfo(h.node.Name, h.num).PortState != ib.PortActive || e.fab.PortInfo(h.peer, h.pnum).PortState != ib.PortActive {
							missing = append(missing, h.node.Name)
						}
					}
					return missing
				}
				for until := e.now.Add(most); e.now.Before(until) && (len(whole()) > 0 || !e.view.Settled || len(e.problems()) > 0); {
					e.run(time.Second)
				}
				if missing := whole(); len(missing) > 0 || !e.view.Settled || len(e.problems()) > 0 {
					t.Fatalf("after %v: settled %v, not Active %v, problems %q", e.now.Sub(epoch), e.view.Settled, missing, e.problems())
				}
				if bad := inactive(e.view); len(bad) > 0 {
					t.Errorf("not Active: %v", bad)
				}
				sets := e.sets()
				e.run(5 * time.Minute)
				if n := e.sets() - sets; n > 0 {
					t.Errorf("%d Sets after the fabric was settled: %v", n, e.smps)
				}
			})
		}
	}
}
