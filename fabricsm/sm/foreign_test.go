package sm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestRogueMaster: a host that claims to be master takes nothing away from ours,
// stands among the problems while it is there, and cannot flood the log.
func TestRogueMaster(t *testing.T) {
	e := newEnv(t, tree(t, 4, 4), sim.Options{}, sm.Config{AuditPeriod: 50 * time.Millisecond}, 1)
	r := e.addRogue("h1", mad.SMInfo{Priority: 15, SMState: ib.SMMaster})
	e.start()
	e.mustSettle(10 * time.Second)
	if e.view.State != ib.SMMaster {
		t.Fatalf("we are %v", e.view.State)
	}
	rogue := func(p string) bool { return strings.Contains(p, r.st.GUID().String()) }
	if !slices.ContainsFunc(e.problems(), rogue) {
		t.Errorf("problems %q do not name the rogue", e.problems())
	}
	e.takeEvents()
	asked := e.smps["Get SMInfo"]
	for i := range 40 {
		r.says.Priority = uint8(i % 16)
		e.run(time.Second)
	}
	asked = e.smps["Get SMInfo"] - asked
	told := 0
	for _, ev := range e.takeEvents() {
		if _, ok := ev.(*sm.ForeignSM); ok {
			told++
		}
	}
	if asked < 20 || told == 0 || told > 6 {
		t.Errorf("asked %d times, told %d times", asked, told)
	}
	if e.view.State != ib.SMMaster {
		t.Errorf("we are %v", e.view.State)
	}
	if err := e.fab.Unlink("h1", 1); err != nil {
		t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
	e.run(2 * time.Second)
	if slices.ContainsFunc(e.problems(), rogue) {
		t.Errorf("problems %q name a rogue that is gone", e.problems())
	}
}
