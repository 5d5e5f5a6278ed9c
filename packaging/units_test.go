package packaging

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"portcullis/packaging/parttest"
)

// exposure is the most that `systemd-analyze security` may find wrong with a
// unit, in tenths: 25 is 2.5 of 10.
const exposure = "25"

var units = []string{"portcullisd.service", "portcullis-agent.service"}

func TestUnitsAreLockedDown(t *testing.T) {
	analyze := parttest.Program(t, "systemd-analyze")
	for _, unit := range units {
		cmd := exec.Command(analyze, "security", "--no-pager", "--offline=true", "--threshold="+exposure, filepath.Join("systemd", unit))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// TestUnitsVerify has systemd read the units with programs in their place. Any
// word from it counts: it only warns of an unknown key.
func TestUnitsVerify(t *testing.T) {
	analyze := parttest.Program(t, "systemd-analyze")
	dir := t.TempDir()
	for _, unit := range units {
		text, err := os.ReadFile(filepath.Join("systemd", unit))
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("/usr/bin/portcullis"), []byte(dir+"/portcullis"))
		write(t, filepath.Join(dir, unit), text, 0o644)
	}
	write(t, filepath.Join(dir, "portcullisd"), nil, 0o755)
	write(t, filepath.Join(dir, "portcullis-agent"), nil, 0o755)
	for _, unit := range units {
		out, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, unit)).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// TestUnitsNotify holds the units to what the programs tell systemd.
func TestUnitsNotify(t *testing.T) {
	for _, unit := range units {
		text, err := os.ReadFile(filepath.Join("systemd", unit))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"\nType=notify\n", "\nNotifyAccess=main\n"} {
			if !bytes.Contains(text, []byte(line)) {
				t.Errorf("%s does not say %q", unit, line)
			}
		}
	}
}

// TestAgentMayOpenItsDevices: what the unit's cage lets through, udev gives to a
// group that the agent is in.
func TestAgentMayOpenItsDevices(t *testing.T) {
	unit, err := os.ReadFile("systemd/portcullis-agent.service")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("udev/60-portcullis-agent.rules")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []struct{ allow, subsystem, group string }{
		{"/dev/tpmrm0", "tpmrm", "tss"},
		{"char-fwctl", "fwctl", "portcullis-agent"},
		{"char-infiniband_mad", "infiniband_mad", "portcullis-agent"},
	} {
		if !bytes.Contains(unit, []byte("\nDeviceAllow="+d.allow+" rw\n")) {
			t.Errorf("the unit keeps the agent from %s", d.allow)
		}
		granted := false
		for line := range bytes.Lines(rules) {
			granted = granted || bytes.Contains(line, []byte(`SUBSYSTEM=="`+d.subsystem+`"`)) && bytes.Contains(line, []byte(`GROUP="`+d.group+`", MODE="0660"`))
		}
		if !granted {
			t.Errorf("no rule gives devices of %s to the group %s", d.subsystem, d.group)
		}
		if !bytes.Contains(unit, []byte("Group="+d.group+"\n")) && !bytes.Contains(unit, []byte("SupplementaryGroups="+d.group+"\n")) {
			t.Errorf("the unit is not in the group %s", d.group)
		}
	}
}

func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}
