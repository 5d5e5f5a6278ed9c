package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/violation"
)

// TestAccusersFillNoLog: a host that accuses one LID after the other, each again and again, causes at most one line every
// five seconds. Violations that another host reports, and one that is proven, are logged in the meantime.
func TestAccusersFillNoLog(t *testing.T) {
	e, hs := settledKeyed(t)
	to, accuser, honest := e.view.LID, &hs[2], &hs[3]
	accuse := func(by *endPort, tid int, of ib.LID, attr mad.AttrID) {
		e.forge(by.node.Name, notice(t, e.lidOf(by), to, ib.TID(tid), &mad.Trap256{
			NoticeHeader: mad.NoticeHeader{IsGeneric: true, TrapNumber: mad.TrapBadMKey}, LID: of, Method: mad.MethodSet, AttributeID: attr,
		}))
	}
	const lasts = 5 * time.Minute
	const every = 20 * time.Millisecond // below what counts as a storm
	for i := range int(lasts / every) {
		accuse(accuser, i+1, ib.LID(1+i/12%2000), mad.AttrID(0x11+i/6%2))
		if i == int(lasts/every/2) {
			accuse(honest, 1<<20, e.lidOf(&hs[1]), mad.AttrPKeyTable)
			way := mad.MakeRoute(hs[1].num)
			e.forge(hs[1].node.Name, smp(mad.MethodSet, mad.AttrSwitchInfo, &way, 0))
		}
		e.run(every)
	}
	e.run(3 * time.Second)
	told, honestly, proven := 0, 0, 0
	for _, ev := range e.takeEvents() {
		v, is := ev.(*violation.Violation)
		switch {
		case !is || v.Quiet:
		case v.Reporter == honest.node.PortGUID(honest.num):
			honestly++
		case v.Verdict == violation.Confirmed:
			proven++
		case v.Reporter == accuser.node.PortGUID(accuser.num):
			told++
		}
	}
	if most := 32 + int(lasts/(5*time.Second)) + 1; told == 0 || told > most {
		t.Errorf("the log has %d lines about what one host reports within %v, want at most %d", told, lasts, most)
	}
	if honestly == 0 || proven == 0 {
		t.Errorf("%d lines about what another host reports, %d about what is proven, want each", honestly, proven)
	}
}
