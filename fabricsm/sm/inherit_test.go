package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestRoutesAreAdopted checks that routes of another master, or of a run before, are examined before routing. This is done
// only if there are any: in a fabric without routes it would cost as much as routing.
func TestRoutesAreAdopted(t *testing.T) {
	e := newEnv(t, tree(t, 16, 8), sim.Options{}, sm.Config{}, 1)
	adopted, jobs := false, 0
	e.onStep = func() {
		if e.job != nil {
			jobs++
			adopted = adopted || e.job.Adopts()
		}
	}
	e.start()
	e.mustSettle(10 * time.Second)
	if jobs == 0 || adopted {
		t.Errorf("fresh fabric: %d steps with a routing job, adopting %t; want some, and false", jobs, adopted)
	}
	e.start()
	e.mustSettle(10 * time.Second)
	if !adopted {
		t.Error("restart on a routed fabric: the tables that were found were not looked at")
	}
}
