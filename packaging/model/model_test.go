package model

import (
	"os/exec"
	"strings"
	"testing"

	"portcullis/packaging/testenv"
)

// TestShort checks the model within small bounds, and that the check finds two of the planted faults. "make model"
// checks all.
func TestShort(t *testing.T) {
	testenv.Program(t, "spin")
	testenv.Program(t, "gcc")
	out, err := exec.CommandContext(t.Context(), "./check.sh", "short").CombinedOutput()
	if err != nil {
		t.Fatalf("check.sh short: %v\n%s", err, out)
	}
	for want, n := range map[string]int{" holds in ": 2, " is found: ": 2} {
		if got := strings.Count(string(out), want); got != n {
			t.Errorf("check.sh short says %q %d times, want %d:\n%s", want, got, n, out)
		}
	}
}
