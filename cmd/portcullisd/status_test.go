package main

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
)

func TestStatus(t *testing.T) {
	var told []string
	s := newStatus(func(line string) { told = append(told, line) })
	s.set(partStore, "")
	s.set(partSM, "no simulator")
	s.set(partSM, "no simulator")
	want := []v1.Condition{{Name: partSM, Detail: "no simulator"}, {Name: partStore, OK: true}}
	if d := cmp.Diff(s.conditions(t.Context()), want); d != "" {
		t.Errorf("conditions (-got +want):\n%s", d)
	}
	if s.set(partSM, "no simulator") || !s.set(partSM, "") {
		t.Error("set does not tell changes from repetitions")
	}
	lines := []string{"serving", "serving, but sm: no simulator", "serving"}
	if d := cmp.Diff(told, lines); d != "" {
		t.Errorf("lines (-got +want):\n%s", d)
	}
}

// A part is well if it is in each aspect.
func TestStatusOfAspects(t *testing.T) {
	s := newStatus(func(string) {})
	s.set(partSM, "standing by")
	s.setAspect(partSM, aspectSight, "blind")
	s.set(partSM, "")
	if got, want := s.conditions(t.Context()), []v1.Condition{{Name: partSM, Detail: "blind"}}; !cmp.Equal(got, want) {
		t.Errorf("conditions %+v, want %+v", got, want)
	}
	s.setAspect(partSM, aspectSight, "")
	if got, want := s.conditions(t.Context()), []v1.Condition{{Name: partSM, OK: true}}; !cmp.Equal(got, want) {
		t.Errorf("conditions %+v, want %+v", got, want)
	}
}

// The sight decides whether the fabric is managed, whatever the last view says; without subnet administration there is no
// such part.
func TestReadinessOfTheFabric(t *testing.T) {
	for _, answers := range []bool{true, false} {
		c := defaultConfig()
		c.Fabric.SA.Enabled = answers
		s := &service{config: c, status: newStatus(func(string) {}), log: slog.New(slog.DiscardHandler)}
		ready := func() map[string]bool {
			out := map[string]bool{}
			for _, c := range s.status.conditions(t.Context()) {
				out[c.Name] = c.OK
			}
			return out
		}
		want := func(what string, sm, sa bool) {
			t.Helper()
			parts := map[string]bool{partSM: sm, partSA: sa}
			if !answers {
				delete(parts, partSA)
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
