package driver

import (
	"testing"
	"time"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// lasting is a Fence that is always open.
type lasting struct{}

func (lasting) Left() time.Duration { return time.Hour }

// TestLeavesAlthoughWoken: the end of a term counts also where the core is stepped right
// after it. Else the instance holds the port and never stands for election again.
func TestLeavesAlthoughWoken(t *testing.T) {
	list, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	port, err := sim.NewWith(list, sim.Options{}).Attach("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	l := newLoop(Options{Port: port, Fence: lasting{}})
	defer l.stop()
	l.begin(nil)
	l.leave()
	l.step(&sm.Woken{})
	if !l.resigned {
		t.Error("the driver goes on after the end of its term")
	}
}
