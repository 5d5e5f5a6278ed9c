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

func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}
