package drills_test

import (
	"slices"
	"strings"
	"testing"

	"portcullis/cmd/portcullis-sim/drills"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/threats"
)

// ofService are the drills that this package plays.
var ofService = []string{"T3", "T5", "T15", "T16", "T46", "T88-T136", "T138-T141", "T143-T147"}

// TestDrillsPass plays them with all controls.
func TestDrillsPass(t *testing.T) {
	for _, d := range pick(t, ofService) {
		t.Run(d.ID, func(t *testing.T) {
			t.Parallel()
			r := drill.Run(d, drill.Options{Seed: 1})
			if !r.Passed || len(r.Reported) == 0 || len(r.Stopped) == 0 {
				t.Errorf("%s passed %v: %q; stopped by %q, reported %q", d.ID, r.Passed, r.Failures, r.Stopped, r.Reported)
			}
		})
	}
}

// TestControls: without a control of the service, the drills that it carries fail,
// and not only in what is reported.
func TestControls(t *testing.T) {
	fabric := len(drill.Controls())
	for _, c := range drills.Controls()[fabric:] {
		for _, d := range pick(t, c.Drills) {
			t.Run(string(c.Name)+"/"+d.ID, func(t *testing.T) {
				t.Parallel()
				r := drill.Run(d, drill.Options{Seed: 1, Without: []drill.Control{c.Name}})
				harm := slices.DeleteFunc(slices.Clone(r.Failures), func(f string) bool {
					return strings.HasPrefix(f, "not reported") || strings.HasPrefix(f, "no entry of the audit log says") || strings.HasPrefix(f, "does not hold") || strings.Contains(f, "is answered with")
				})
				if r.Passed || len(harm) == 0 {
					t.Errorf("%s passes without %s, or fails in what is answered alone: %q", d.ID, c.Name, r.Failures)
				}
			})
		}
	}
}

// TestAll: all drills are there once, in order, and all that need the service alone are
// played here.
func TestAll(t *testing.T) {
	all, fabric := drills.All(), threats.All()
	if len(all) != len(fabric) {
		t.Fatalf("%d drills, %d of the fabric", len(all), len(fabric))
	}
	for i := range all {
		if all[i].ID != fabric[i].ID || all[i].Threat != fabric[i].Threat {
			t.Errorf("%s %q stands where the fabric has %s %q", all[i].ID, all[i].Threat, fabric[i].ID, fabric[i].Threat)
		}
		if (all[i].Play == nil) != (all[i].Needs != "") || strings.Contains(all[i].Needs, "portcullis-sim/drills") {
			t.Errorf("%s is not played here, and needs %q", all[i].ID, all[i].Needs)
		}
	}
}

func pick(t *testing.T, names []string) []drill.Drill {
	t.Helper()
	list, err := threats.Pick(drills.All(), names)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
