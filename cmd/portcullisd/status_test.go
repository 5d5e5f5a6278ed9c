package main

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/readiness"
)

// The sight decides whether the fabric is managed, whatever the last view says; without subnet administration there is no
// such part.
func TestReadinessOfTheFabric(t *testing.T) {
	for _, answers := range []bool{true, false} {
		c := config.Default()
		c.Fabric.SA.Enabled = answers
		s := &service{config: c, status: readiness.New(func(string) {}), log: slog.New(slog.DiscardHandler)}
		ready := func() map[string]bool {
			out := map[string]bool{}
			for _, c := range s.status.Conditions(t.Context()) {
				out[c.Name] = c.OK
			}
			return out
		}
		want := func(what string, sm, sa bool) {
			t.Helper()
			parts := map[string]bool{readiness.SM: sm, readiness.SA: sa}
			if !answers {
				delete(parts, readiness.SA)
			}
			if d := cmp.Diff(parts, ready()); d != "" {
				t.Errorf("%s (-want +got):\n%s", what, d)
			}
		}
		s.fabricState("attached, and finding out what is there")
		want("attached", false, false)
		s.fabricState("")
		s.sight(v1.Sight{State: v1.SightClear, Known: 20})
		want("settled", true, true)
		s.sight(v1.Sight{State: v1.SightPartly, Cause: v1.SightNodes, Reason: "9 of 20 known nodes went out of sight"})
		want("partly blind", false, true)
		s.sight(v1.Sight{State: v1.SightBlind, Cause: v1.SightOwnPort, Reason: "our own port has no link"})
		want("blind", false, false)
		s.fabricState("")
		want("a view that says settled while blind", false, false)
		s.sight(v1.Sight{State: v1.SightClear})
		want("back", true, true)
	}
}
