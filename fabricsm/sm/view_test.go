package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestViewsAreNotSettledTooLong: a view never says "settled" while work is out,
// not even for the time between two views.
func TestViewsAreNotSettledTooLong(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	setsOut := func() (n int) {
		for id := range e.out {
			if e.asked[ib.TID(id)] {
				n++
			}
		}
		return n
	}
	e.onStep = func() {
		if e.view != nil && e.view.Settled && setsOut() > 0 {
			t.Fatalf("settled at %v by the view of %v, with Sets out", e.now.Sub(epoch), e.view.Time.Sub(epoch))
		}
	}
	e.start()
	e.mustSettle(10 * time.Second)
	h := hosts(l)[0]
	for rev := range int64(6) {
		in := sm.Intent{Revision: rev + 1}
		if rev%2 == 0 {
			in.Grants = []sm.Grant{h.grant(0x8001)}
		}
		e.want(in)
		if e.view.Settled {
			t.Errorf("revision %d: settled right after the intent changed", rev+1)
		}
		e.mustSettle(time.Second)
		if e.view.Revision != rev+1 || e.view.Pending != 0 {
			t.Errorf("settled view: revision %d, %d requests out", e.view.Revision, e.view.Pending)
		}
	}
	cut(e, h.node.Name)
	e.run(time.Millisecond)
	e.mustSettle(time.Second)
}
