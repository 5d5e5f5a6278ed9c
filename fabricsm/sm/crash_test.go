package sm_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestCrashAtEveryStep: a subnet manager that is killed after any step of a
// bring-up with a tenant is followed by one that ends as it should have.
func TestCrashAtEveryStep(t *testing.T) {
	for step := 1; ; step++ {
		l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 4})
		e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, uint64(step))
		w := watch(e)
		h := w.hosts[0]
		in := sm.Intent{Revision: 1, Grants: []sm.Grant{h.grant(0x8001)}}
		e.start()
		e.want(in)
		for e.steps < step && e.next(e.now.Add(time.Second)) {
		}
		done := e.view != nil && e.view.Settled
		e.start()
		e.want(in)
		e.mustSettle(time.Minute)
		w.checkEnd()
		if done {
			if step < 30 {
				t.Errorf("a bring-up of %d steps, want more to crash at", step)
			}
			return
		}
	}
}

// TestSlowNodeHoldsNobodyUp: one of some 200 switches answers after five seconds, the
// others are brought up as fast as without it.
func TestSlowNodeHoldsNobodyUp(t *testing.T) {
	bringUp := func(slow bool) time.Duration {
		l, err := netlist.FatTree3(netlist.Shape{Hosts: 648, Radix: 18})
		e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
		hs := hosts(l)
		at := ""
		if slow {
			at = hs[len(hs)/2].peer
			e.hostile = map[string]liar{at: func([]ib.PortNum, *sm.Request) (mad.MAD, bool) {
				return mad.MAD{}, e.now.Sub(epoch) < 5*time.Second
			}}
		}
		down := func(h endPort) bool {
			return h.peer != at && e.fab.PortInfo(h.node.Name, h.num).PortState != ib.PortActive
		}
		e.start()
		for e.now.Sub(epoch) < 4*time.Second {
			e.run(10 * time.Millisecond)
			if !slices.ContainsFunc(hs, down) {
				break
			}
		}
		return e.now.Sub(epoch)
	}
	alone, beside := bringUp(false), bringUp(true)
	if alone > time.Second {
		t.Fatalf("the fabric needs %v by itself, so this test shows nothing", alone)
	}
	if beside > alone+100*time.Millisecond {
		t.Errorf("the others are up after %v beside a slow switch, %v without it", beside, alone)
	}
}
