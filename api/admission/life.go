package admission

import (
	"slices"

	"portcullis/api/inventory"
	"portcullis/api/lifecycle"
	v1 "portcullis/api/v1"
)

// life returns the facts of a host's life, of a decision that has all its guards.
func (f *facts) life(d *decision) lifecycle.Facts {
	life, last := f.rec.Life(f.now), len(d.guards)-1
	life.Evidence = f.evidenceMeets()
	life.Sealed = d.guards[ordered-1].Met
	life.Given, life.Applied, life.Left = len(d.want) > 0, d.guards[last].Met, f.present()
	life.CutOff, life.Braked = f.cutOff, d.keeps[BrakeEvidence] != ""
	life.Shut = slices.ContainsFunc(f.host.Ports(), func(p inventory.Port) bool { return f.ports[p.GUID].Shut != "" })
	life.Ready = !slices.ContainsFunc(d.guards[ordered:last], func(g v1.Guard) bool { return !g.Met })
	return life
}

// evidenceMeets reports whether there is evidence of this assignment that is young enough and meets policy.
func (f *facts) evidenceMeets() bool {
	ev := f.rec.Evidence
	return ev != nil && (f.rec.Admitted || f.now.Sub(ev.Time) <= f.evidenceAge) && f.lapsed() == ""
}

// phaseOf returns the phase of a state: phases are fewer, and older.
func phaseOf(s lifecycle.State) v1.Phase {
	switch s {
	case lifecycle.WindowOpen, lifecycle.WindowShut, lifecycle.Suspended:
		return v1.PhaseAwaiting
	case lifecycle.Attested, lifecycle.Proven:
		return v1.PhaseVerified
	case lifecycle.Granting:
		return v1.PhaseGranting
	case lifecycle.Admitted:
		return v1.PhaseAdmitted
	case lifecycle.Releasing:
		return v1.PhaseReleasing
	default:
		return v1.PhaseQuarantined
	}
}
