package verify

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Try returns the ruling that Link would return, and records nothing. A caller that is about to switch a port off checks
// again with it.
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

// At returns the state and the verdict of a port, and the last fact seen there.
func (j *Judge) At(at ib.Place) (State, Verdict, Seen) {
	if rec := j.find(at); rec != nil {
		return rec.state, rec.verdict, rec.seen
	}
	return StateDark, Unseen, Seen{}
}

// IsSteady reports whether the fact behind a port is the one that was verified, whether or not the switch is still
// verified.
func (j *Judge) IsSteady(at ib.Place) bool {
	rec := j.find(at)
	return rec != nil && rec.steady
}

// WasVerified reports whether a port is, or once was, verified.
func (j *Judge) WasVerified(at ib.Place) bool {
	rec := j.find(at)
	return rec != nil && rec.was
}

// Rooted reports whether the place of the Subnet Manager itself is verified.
func (j *Judge) Rooted() bool { return j.rooted != topospec.None }

// Restore records that a port was switched off for a fact seen there, by the verdict of an earlier judge, and is still off.
// It must be called before anything else. The port stays disabled until it is released. Restore reports whether the port
// stays off: it does not if the specification has no objection to the fact.
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

// objects reports whether the port of a fact would be switched off if its switch is verified.
func (j *Judge) objects(s *Seen) bool {
	if j.spec.DeviceByGUID(s.At.Switch) == topospec.None {
		return true
	}
	r := j.against(s)
	return r.Would == Disable
}
