package ibsimserver_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// OpenSM must bring up our fabric as it does ibsim's, and diagnostics that need
// LIDs must then work.
func TestOpenSMBringsTheFabricUp(t *testing.T) {
	ibsimtest.Need(t, "opensm", "smpquery", "ibtracert", "perfquery")
	f, _ := fabric(t)
	ours := serve(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd, err := ours.Command(ctx, "sm", "opensm", "-o", "-e", "-s", "0", "-f", ours.Dir+"/opensm.log")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("opensm: %v\n%s", err, out)
	}
	log, err := os.ReadFile(ours.Dir + "/opensm.log")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(log, []byte("SUBNET UP")) || bytes.Contains(log, []byte("ERR ")) {
		t.Errorf("opensm's log:\n%s", log)
	}
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
