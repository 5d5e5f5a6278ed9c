package keymgr_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

var lives = flag.Uint64("keymgr.lives", 4, "random lives to run")

// TestRandomLives: devices and the manager restart, cables are pulled, devices fall silent, packets are lost, and keys
// rotate. No key is ever shown except to its device, or before it is saved. In the end every device is on its own key.
func TestRandomLives(t *testing.T) {
	for seed := range *lives {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 4})
			e := newEnv(t, must(t, l, err), sim.Modern(), seed)
			e.rotating()
			e.SM.AuditPeriod = 30 * time.Second
			e.start()
			e.live(60)
			for i := range l.Nodes {
				e.heal(l.Nodes[i].Name)
			}
			e.bad = chaos{}
			e.Run(75 * time.Minute) // devices that did not answer are asked again
			e.settle(10 * time.Minute)
			e.checkKeys()
			if t.Failed() {
				t.Fatalf("status %+v, problems %v", e.KeyStatus(), eventsOf[*sm.ClassKeyProblem](e.told()))
			}
		})
	}
}

func (e *env) heal(node string) {
	e.t.Helper()
	if err := e.Fabric.SetFault(node, sim.Fault{}); err != nil {
		e.t.Fatal(err)
	}
}

// live makes a number of random events happen to the fabric.
func (e *env) live(turns int) {
	e.t.Helper()
	for range turns {
		n := &e.List.Nodes[e.rng.IntN(len(e.List.Nodes))]
		var err error
		switch e.rng.IntN(7) {
		case 0:
			if n.Name != "sm" {
				err = e.Fabric.Reboot(n.Name)
			}
		case 1:
			if num := 1 + e.rng.IntN(len(n.Ports)-1); n.Ports[num].Peer != "" {
				err = e.Fabric.Bounce(n.Name, ib.PortNum(num))
			}
		case 2:
			if n.Name != "sm" {
				err = e.Fabric.SetFault(n.Name, sim.Fault{Silent: true})
			}
		case 3:
			e.heal(n.Name)
		case 4:
			e.bad = chaos{lose: 0.2 * e.rng.Float64(), twice: 0.1, delay: 0.1}
		case 5:
			e.bad = chaos{}
		case 6:
			e.start()
		}
		if err != nil {
			e.t.Fatal(err)
		}
		e.Run(time.Duration(e.rng.IntN(60_000)) * time.Millisecond)
	}
}
