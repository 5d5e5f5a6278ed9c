package keymgr_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm/keymgr"
)

// TestCostOfABringUp: a new device costs a fixed number of requests a class, and a restart two.
func TestCostOfABringUp(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 24, Radix: 12})
	e := newEnv(t, must(t, l, err), sim.Modern(), 1)
	e.start()
	e.settle(time.Minute)
	agents := 0
	for _, c := range e.KeyStatus().Classes {
		agents += c.Settled
	}
	total := func() int { return e.sent[mad.MethodGet] + e.sent[mad.MethodSet] }
	first := total()
	e.start()
	e.settle(time.Minute)
	again := total() - first
	// ClassPortInfo, for class 0x21 EnhancedCongestionInfo, KeyInfo, Set KeyInfo,
	// KeyInfo, ClassPortInfo, Set ClassPortInfo; switches know of neighbours as well.
	if most := agents * 8; first > most {
		t.Errorf("%d requests for %d agents, want at most %d", first, agents, most)
	}
	if most := agents * 3; again > most {
		t.Errorf("%d requests for %d agents after a restart, want at most %d", again, agents, most)
	}
	t.Logf("%d agents: %d requests, %d after a restart", agents, first, again)
}

// TestSettledCostsNothing: asking devices that are settled for their keys, again
// and again, allocates nothing, and nor does a fabric that does not change.
func TestSettledCostsNothing(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 24, Radix: 12})
	e := newEnv(t, must(t, l, err), sim.Modern(), 1)
	e.start()
	e.settle(time.Minute)
	e.Run(2 * time.Minute)
	gets, steps := e.sent[mad.MethodGet], e.steps
	e.measure = true
	e.Run(5 * time.Minute)
	for range 100 {
		e.StepKeys(&keymgr.Seen{View: e.View()})
	}
	if n := e.sent[mad.MethodGet] - gets; n < 500 {
		t.Errorf("%d Gets in five minutes, want each device asked twice in a lease", n)
	}
	if n := e.steps - steps; e.allocs > uint64(n/20) {
		t.Errorf("%d allocations in %d steps of a settled fabric", e.allocs, n)
	}
}
