package agent

import (
	"strings"
	"testing"
)

// TestTrace: each run has a trace of its own, in the form of W3C Trace Context, which asks no receiver to record anything.
func TestTrace(t *testing.T) {
	t.Parallel()
	a, b := newTrace(), newTrace()
	if a == b || len(a.String()) != 32 || a.String() == strings.Repeat("0", 32) {
		t.Errorf("traces %v and %v", a, b)
	}
	f := strings.Split(a.parent(), "-")
	if len(f) != 4 || f[0] != "00" || f[1] != a.String() || len(f[2]) != 16 || f[2] == strings.Repeat("0", 16) || f[3] != "00" {
		t.Errorf("traceparent %q", a.parent())
	}
}
