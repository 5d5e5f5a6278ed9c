package sm

import (
	"fmt"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/election"
	"portcullis/fabricsm/sm/smtrust"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/topo"
)

// objections says why commands are not obeyed.
var objections = [...]string{
	smtrust.NoKey:      "no SM_Key is configured, so nobody may command this subnet manager",
	smtrust.WrongKey:   "its SM_Key is not ours",
	smtrust.NoSender:   "where it comes from is not known",
	smtrust.WrongGUID:  "another port has the GUID it gives",
	smtrust.NotAllowed: "no subnet manager is allowed there",
}

func (e electionEffects) Refused(r election.Refusal) {
	reason := objections[r.Why]
	if r.Why == smtrust.NoObjection {
		reason = fmt.Sprintf("it is %v and we are %v", r.Sender.SMState, r.State)
	}
	report := &SMInfoRefused{
		LID: r.LID, GUID: r.Sender.GUID, Control: r.Control(), Place: e.topo.PlaceOf(r.Port), Reason: reason, Count: r.Count,
	}
	by := violation.ByLID
	if r.MAD.IsDR() {
		by, report.Path = violation.ByWay, r.MAD.ReturnRoute()
	}
	e.reports.NoteSMKey(r.Port, r.LID, mad.MethodSet, report.Control, by)
	if by == violation.ByWay && r.Port != topo.None && !r.Sender.SMKey.Equal(e.cfg.SMKey) {
		e.guessing.CheckSMKey(&report.Path, r.Sender.SMKey)
	}
	if r.Reported {
		e.event(report)
	}
}
