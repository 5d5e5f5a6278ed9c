package sm_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestCommandsWithoutAList: where no subnet manager is allowed by name, the right
// SM_Key commands nothing.
func TestCommandsWithoutAList(t *testing.T) {
	for _, control := range []mad.SMInfoControl{mad.SMInfoHandover, mad.SMInfoDisable, mad.SMInfoStandby, mad.SMInfoDiscover} {
		e := newEnv(t, tree(t, 4, 4), sim.Options{}, sm.Config{SMKey: rightKey, AuditPeriod: -1}, 1)
		st, err := e.fab.Station("h1", true)
		if err != nil {
			t.Fatal(err)
		}
		e.start()
		e.run(2 * time.Second)
		e.takeEvents()
		if s := e.talk(st, mad.MethodSet, control, payload(st, ib.SMMaster), 0); s.answered {
			t.Errorf("%v is answered: %+v", control, s)
		}
		e.run(time.Second)
		if e.view.State != ib.SMMaster || !slices.ContainsFunc(e.takeEvents(), isRefusal) {
			t.Errorf("%v: we are %v, or nobody was told", control, e.view.State)
		}
	}
}
