package admission

import (
	"testing"

	"portcullis/api/fabric/records"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Only what is out of sight of a subnet manager that sees something is held for gone, with a reason.
func TestForgetUnseen(t *testing.T) {
	f := newLab(t, member.Open(t))
	sees := func(s v1.Sight) {
		t.Helper()
		if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error { return records.Sights().Put(tx, records.Master, s) }); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string, a v1.SightAccept, kind refusal.Kind) {
		t.Helper()
		if _, err := f.svc.ForgetUnseen(t.Context(), "ann", a); !refusal.IsKind(err, kind) {
			t.Errorf("%s: %v, want %v", what, err, kind)
		}
		if list, _, err := records.AcceptedSights().List(t.Context(), f.store, ""); err != nil || len(list) != 0 {
			t.Errorf("%s: recorded %v, %v", what, list, err)
		}
	}
	because := v1.SightAccept{Reason: "hall 2 is sold"}
	refused("before the first judgement", because, refusal.Conflict)
	sees(v1.Sight{State: v1.SightClear})
	refused("all is seen", because, refusal.Conflict)
	sees(v1.Sight{State: v1.SightBlind, Cause: v1.SightOwnPort})
	refused("blind", because, refusal.Conflict)
	partly := v1.Sight{State: v1.SightPartly, Cause: v1.SightNodes, Nodes: 9}
	sees(partly)
	refused("no reason", v1.SightAccept{Reason: " "}, refusal.Invalid)
	was, err := f.svc.ForgetUnseen(t.Context(), "ann", because)
	if err != nil || was.Nodes != 9 {
		t.Fatalf("partly blind: %+v, %v", was, err)
	}
	rec, err := records.AcceptedSights().Get(t.Context(), f.store, records.Master)
	if err != nil || rec.Value.By != "ann" || rec.Value.Reason != because.Reason || rec.Value.Time.IsZero() {
		t.Errorf("recorded %+v, %v", rec.Value, err)
	}
}
