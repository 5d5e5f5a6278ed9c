package keymgr_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
)

// TestBringUp: every device gets a key of its own for each class, and a restart
// changes nothing and guesses nothing.
func TestBringUp(t *testing.T) {
	fabrics(t, func(t *testing.T, l *netlist.Netlist) {
		e := newEnv(t, l, sim.Modern(), 1)
		e.start()
		e.settle(time.Minute)
		e.checkKeys()
		sets := e.sent[mad.MethodSet]
		e.takeEvents()
		e.start()
		e.settle(time.Minute)
		e.checkKeys()
		if n := e.sent[mad.MethodSet] - sets; n != 0 {
			t.Errorf("%d Sets after a restart on a settled fabric, want none", n)
		}
		e.Run(5 * time.Minute)
		e.checkKeys()
		if n := e.sent[mad.MethodSet] - sets; n != 0 {
			t.Errorf("%d Sets in five minutes of a settled fabric, want none", n)
		}
		for _, p := range endPorts(l) {
			for _, kind := range kinds {
				if k, _ := e.Fabric.ClassKey(p.node, p.num, classes[kind]); k.Violations != 0 || k.NodeViolations != 0 {
					t.Errorf("%s/%d counted %d requests with a wrong %v", p.node, p.num, k.Violations, kind)
				}
			}
		}
	})
}
