package judge

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Try gives the ruling that Link would give, and notes nothing: who is about to
// switch a port off looks twice.
func (j *Judge) Try(s Seen) Ruling {
	rec := j.find(s.At)
	if rec == nil {
		rec = &record{}
	}
	r := j.compare(&s)
	r.Action = j.act(&r, &s)
	if r.State = next(rec, &r); j.mode == topospec.Enforce && rec.state == StateDisabled {
		r.Verdict, r.Action, r.Would, r.State = rec.verdict, Disable, Disable, StateDisabled
	}
	return r
}

// At gives the state and the verdict of a port, and what was seen there last.
func (j *Judge) At(at ib.Place) (State, Verdict, Seen) {
	if rec := j.find(at); rec != nil {
		return rec.state, rec.verdict, rec.seen
	}
	return StateDark, Unseen, Seen{}
}

// IsSteady reports that what is seen behind a port is what was seen when it was
// verified, whether or not the switch is verified still.
func (j *Judge) IsSteady(at ib.Place) bool {
	rec := j.find(at)
	return rec != nil && rec.steady
}

// WasVerified reports a port that is, or once was, verified.
func (j *Judge) WasVerified(at ib.Place) bool {
	rec := j.find(at)
	return rec != nil && rec.was
}

// Rooted reports that the place of the Subnet Manager itself is verified.
func (j *Judge) Rooted() bool { return j.rooted != topospec.None }

// Restore tells the judge, before anything else, that a port was switched off for
// what was seen there, and is still: by a verdict that another judge gave. Its state
// is disabled until it is released. It reports whether it is: a specification that
// does not object to what was seen does not keep the port switched off.
func (j *Judge) Restore(s Seen, v Verdict) bool {
	if j.mode != topospec.Enforce || !j.objects(&s) {
		return false
	}
	rec := j.recordOf(s.At)
	if rec == nil {
		return false
	}
	j.count(s.At, rec, StateDisabled, s.GUID)
	rec.seen, rec.verdict, rec.action = s, v, Disable
	return true
}

// objects reports a fact that would have its port switched off if its switch is
// verified.
func (j *Judge) objects(s *Seen) bool {
	if j.spec.DeviceByGUID(s.At.Switch) == topospec.None {
		return true
	}
	r := j.against(s)
	return r.Would == Disable
}
