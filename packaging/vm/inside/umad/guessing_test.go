//go:build vm

package umad_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"portcullis/packaging/vm/inside/guest"
)

// TestGuessing is items 1 to 3 of step 6: the other node tries keys.
func TestGuessing(t *testing.T) {
	newFabric(t, ourNode, tester)
	p := protect(t, "")
	try := func(args ...string) {
		t.Helper()
		if e := guest.Try(t, "smpquery", append([]string{"-C", theirs, "-t", "50"}, args...)...); e.Code == 0 {
			t.Errorf("smpquery %v got\n%s", args, e.Out)
		}
	}
	violations := func() string { return guest.Do(t, "portcullis", "fabric", "violations", "--socket", p.socket) }
	t.Run("directed route", func(t *testing.T) {
		from := p.now()
		for i := range 4 {
			try("-y", fmt.Sprintf("0x11%d1", i), "-D", "portinfo", "0,1", "0")
		}
		p.tells(from, "trap 256", func(e event) bool {
			return e.Event == "violation" && e.Fields["trap"] == "256 (bad M_Key)" && e.Fields["by"] == "way" &&
				e.Fields["place"] == "0x0010000100000001/2" && e.Fields["verdict"] == "confirmed"
		})
		if out := violations(); !strings.Contains(out, "leaf1/2") || strings.Contains(out, "by LID") {
			t.Errorf("violations:\n%s", out)
		}
		counted := guest.Do(t, "smpquery", "-C", theirs, "-y", p.keys["0x0010000100000001"], "-D", "portinfo", "0,1", "0")
		if !strings.Contains(counted, "MkeyViolations:") || strings.Contains(counted, "MkeyViolations:..................0\n") {
			t.Errorf("the switch has counted nothing:\n%s", counted)
		}
	})
	t.Run("by LID", func(t *testing.T) {
		from := p.now()
		try("-y", wrongKey, "portinfo", p.lid(t, "spine1"), "0")
		p.tells(from, "a violation by LID", func(e event) bool {
			return e.Event == "violation" && e.Fields["reporter"] == "0x0010000200000001" && e.Fields["by"] == "lid"
		})
		// What is shown is up to a second (TellEvery) older than what was told.
		guest.Eventually(t, 10*time.Second, "a violation by LID in the table", func() bool {
			return strings.Contains(violations(), "by LID")
		})
	})
}
