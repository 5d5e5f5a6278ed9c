package ibsimserver_test

import (
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// OpenSM must bring up our fabric as it does ibsim's, and diagnostics that need
// LIDs must then work.
func TestOpenSMBringsTheFabricUp(t *testing.T) {
	ibsimtest.Need(t, "opensm", "smpquery", "ibtracert", "perfquery")
	f, _ := fabric(t)
	ours := simtest.Serve(t, f)
	bringUp(t, ours)
	for _, name := range []string{"sm", "h1", "h2", "h3"} {
		if pi := f.PortInfo(name, 1); pi.PortState != ib.PortActive || pi.LID == 0 {
			t.Errorf("port of %s is %v with LID %v", name, pi.PortState, pi.LID)
		}
	}
	for _, tt := range []struct {
		tool string
		args []string
		want string
	}{
		{"smpquery", []string{"nodeinfo", "4"}, "LocalPort"},
		// By LID to leaf1, and then by its port 2; ibsim drops it.
		{"smpquery", []string{"-c", "nodeinfo", f.PortInfo("leaf1", 0).LID.String(), "0,2"}, "0x0020000000000100"},
		{"ibtracert", []string{"1", "4"}, "To ca"},
		{"perfquery", []string{"1", "1"}, "PortXmitPkts"},
		{"iblinkinfo", nil, "Active/  LinkUp"},
	} {
		out, err := ours.Diag(t.Context(), "sm", tt.tool, tt.args...)
		if err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s %v: %v, want %q in\n%s", tt.tool, tt.args, err, tt.want, out)
		}
	}
}
