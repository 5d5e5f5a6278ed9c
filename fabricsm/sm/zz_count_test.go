package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

func TestZZCount(t *testing.T) {
	l, err := netlist.FatTree3(netlist.Shape{Hosts: 648, Radix: 36})
	l = list(t, l, err)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(time.Minute)
	t.Log(len(l.Nodes), e.smps, e.view.Settled)
	total := 0
	for _, n := range e.smps {
		total += n
	}
	t.Log(total)
}
