package readiness

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/leader"
	v1 "portcullis/api/v1"
)

// The sight decides whether the fabric is managed, whatever the last view says; without subnet administration there is no
// such part.
func TestReadinessOfTheFabric(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{true, false} {
		status := New(func(string) {})
		f := NewFabric(status, answers, slog.New(slog.DiscardHandler))
		want := func(what string, sm, sa bool) {
			t.Helper()
			got := map[string]bool{}
			for _, c := range status.Conditions(t.Context()) {
				got[c.Name] = c.OK
			}
			parts := map[string]bool{SM: sm, SA: sa}
			if !answers {
				delete(parts, SA)
			}
			if d := cmp.Diff(parts, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", what, d)
			}
		}
		f.Set("attached, and finding out what is there")
		want("attached", false, false)
		f.Set("")
		f.See(v1.Sight{State: v1.SightClear, Known: 20})
		want("settled", true, true)
		f.See(v1.Sight{State: v1.SightPartly, Cause: v1.SightNodes, Reason: "9 of 20 known nodes went out of sight"})
		want("partly blind", false, true)
		f.See(v1.Sight{State: v1.SightBlind, Cause: v1.SightOwnPort, Reason: "our own port has no link"})
		want("blind", false, false)
		f.Set("")
		want("a view that says settled while blind", false, false)
		f.See(v1.Sight{State: v1.SightClear})
		want("back", true, true)

		f.See(v1.Sight{State: v1.SightBlind, Cause: v1.SightOwnPort, Reason: "our own port has no link"})
		f.Led(leader.State{Leader: "b"})
		want("blind, but another instance leads", true, true)
		f.Led(leader.State{})
		want("no instance leads", false, false)
		f.Led(leader.State{Leader: "a", Leads: true})
		want("leading, and not attached", false, false)
	}
}
