package sm_test

import (
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestTablesChangeWhileTheyAreWritten has switches take longer over a Set than tables stay as they are: each answer shows a
// block that is no longer wanted. That is no refusal.
func TestTablesChangeWhileTheyAreWritten(t *testing.T) {
	l := tree(t, 12, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	late := hosts(l)[4:]
	for _, h := range late {
		if err := e.fab.Unlink(h.node.Name, h.num); err != nil {
			t.Fatal(err)
		}
	}
	e.start()
	e.mustSettle(10 * time.Second)
	groups := wanted{}
	e.step(groups.set(e))
	e.mustSettle(10 * time.Second)
	for i := range l.Nodes {
		if n := &l.Nodes[i]; strings.HasPrefix(n.Name, "spine") { // changes are seen on leaves
			if err := e.fab.SetFault(n.Name, sim.Fault{Delay: 100 * time.Millisecond}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, h := range late {
		if err := e.fab.Restore(h.node.Name, h.num); err != nil {
			t.Fatal(err)
		}
		e.arrive(e.st.Take(nil))
		for _, member := range []int{0, 3} { // which a spine is between
			groups.join(e, ib.MinMulticastLID+ib.LID(i), hosts(l)[member].node.Name, mcast.FullMember)
		}
		e.run(30 * time.Millisecond)
	}
	e.mustSettle(time.Minute)
	for _, ev := range e.events {
		if bad, ok := ev.(*sm.BadAnswer); ok {
			t.Error(bad)
		}
	}
	groups.judge(e)
}
