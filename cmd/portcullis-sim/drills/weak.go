package drills

import (
	"slices"

	"portcullis/api/admission"
	"portcullis/api/tenancy"
	"portcullis/attest"
)

// overlooking accepts evidence although it was refused for one of some reasons.
type overlooking struct {
	admission.Strict
	reasons []attest.Reason
}

// Review implements admission.Judge.
func (o overlooking) Review(v *attest.Verdict) {
	if !v.OK && slices.Contains(o.reasons, v.Code) {
		v.OK, v.Code, v.Detail = true, "", ""
	}
}

// Matters implements admission.Judge.
func (o overlooking) Matters(r attest.Reason) bool { return !slices.Contains(o.reasons, r) }

// NeedsReference implements admission.Judge: a log that was overlooked leads to none.
func (overlooking) NeedsReference() bool { return false }

// unsealing admits hosts that can still attest.
type unsealing struct{ admission.Strict }

// NeedsSeal implements admission.Judge.
func (unsealing) NeedsSeal() bool { return false }

// withdrawing takes the memberships of a host when one of its ports is not seen.
type withdrawing struct{ admission.Strict }

// KeepsUnseen implements admission.Judge.
func (withdrawing) KeepsUnseen() bool { return false }

// loose deletes clusters with hosts, or frees P_Keys at once.
type loose struct{ deletesUsed, freesAtOnce bool }

// Deletes implements tenancy.Policy.
func (l loose) Deletes(hosts int) bool { return l.deletesUsed || tenancy.Strict{}.Deletes(hosts) }

// Quarantines implements tenancy.Policy.
func (l loose) Quarantines() bool { return !l.freesAtOnce }
