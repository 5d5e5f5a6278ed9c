package leaks_test

import (
	"strings"
	"testing"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/leaks"
)

// TestDrillsPass plays every drill.
func TestDrillsPass(t *testing.T) {
	t.Parallel()
	for _, d := range leaks.Drills() {
		t.Run(d.ID, func(t *testing.T) {
			t.Parallel()
			r := drill.Run(d, drill.Options{Seed: 1})
			if !r.Passed || len(r.Reported) == 0 || len(r.Stopped) != 1 || r.Victims.Sent == 0 {
				t.Errorf("%s: failures %q, reported %q, stopped by %q, victims %+v", d.ID, r.Failures, r.Reported, r.Stopped, r.Victims)
			}
			for _, line := range r.Reported {
				if !strings.HasPrefix(line, "a packet passes from ") && !strings.HasPrefix(line, "subnet administration discloses to the port at ") {
					t.Errorf("%s reports %q", d.ID, line)
				}
			}
		})
	}
}
