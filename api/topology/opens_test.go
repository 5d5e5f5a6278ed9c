package topology_test

import (
	"testing"

	"portcullis/api/refusal"
	"portcullis/api/topology"
	v1 "portcullis/api/v1"
)

// TestOpens: a revision under which packets would pass that do not pass now is not enforced. It may be looked at in a milder mode,
// and a way back is open.
func TestOpens(t *testing.T) {
	s := newSite(t, shared.Open(t), topology.Rules{})
	s.inForce(s.rev, "")
	s.activate(1, "warn")
	s.activate(1, "enforce")
	if s.asked != 1 {
		t.Errorf("asked %d times, want once: for the mode that changes the fabric", s.asked)
	}
	next := s.rev.Clone()
	next.Links[0].Reason = "x"
	d := s.draft(next)
	s.approve(d, "bob")
	s.opens = refusal.New(refusal.Conflict, v1.CodeOpensPath, "declare it", "packets would pass")
	_, err := s.keep.Activate(t.Context(), "bob", d.Revision, "", v1.TopospecActivate{Mode: "enforce", Reason: "x"})
	wants(t, "enforce", err, refusal.Conflict, v1.CodeOpensPath, "packets would pass")
	if st, err := s.keep.Status(t.Context()); err != nil || st.Revision == d.Revision {
		t.Errorf("%+v, %v", st, err)
	}
	s.activate(d.Revision, "warn")
	if st, err := s.keep.Rollback(t.Context(), "bob", "", v1.TopospecRollback{Reason: "x"}); err != nil || st.Revision == d.Revision {
		t.Errorf("%+v, %v", st, err)
	}
}
