package driver_test

import (
	"testing"
	"testing/synctest"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestRunEndsAll: no goroutine is left of a run with subnet administration, on a port that cannot be polled. Both receivers report
// that the port was closed, and Run listens to neither any more. A goroutine that is left fails the test.
func TestRunEndsAll(t *testing.T) {
	list, err := netlist.Single(netlist.Shape{Hosts: 2, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			port, err := sim.New(list).Attach("sm", true)
			if err != nil {
				t.Fatal(err)
			}
			config := sa.DefaultConfig()
			config.Key = pairKey
			agent, err := sa.New(config)
			if err != nil {
				t.Fatal(err)
			}
			err = driver.Run(t.Context(), driver.Options{Port: port, Core: sm.Config{Enforcement: sm.Accepted}, SA: agent, Store: &driver.Memory{}, Until: driver.UntilSettled}, nil)
			if err != nil {
				t.Error(err)
			}
		})
	}
}
