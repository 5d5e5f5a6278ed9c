//go:build boot

package boot

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// insideVariable is set if this program runs inside.
const insideVariable = "PORTCULLIS_BOOTED"

// bootTime bounds everything, from the start of the system to its end.
const bootTime = 8 * time.Minute

// unit runs this program once the system is up, and ends the system with it.
const unit = `[Unit]
DefaultDependencies=no
Wants=basic.target
After=basic.target
SuccessAction=exit-force
FailureAction=exit-force

[Service]
Type=oneshot
Environment=` + insideVariable + `=1 HOME=/root
ExecStart=/trial -test.run=^TestBoot$$ -test.v -test.timeout=8m
StandardOutput=file:/out/log
StandardError=inherit
`

// TestBoot boots a system, which runs this very test again, inside.
func TestBoot(t *testing.T) {
	if os.Getenv(insideVariable) != "" {
		inside(t)
		return
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	must(t, os.Mkdir(out, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "machine-id"), []byte(strings.Repeat("0123456789abcdef", 2)+"\n"), 0o444))
	must(t, os.WriteFile(filepath.Join(dir, "trial.service"), []byte(unit), 0o444))
	self, err := os.Executable()
	must(t, err)
	packages, err := filepath.Abs("../../dist")
	must(t, err)
	if debs, err := filepath.Glob(packages + "/*.deb"); err != nil || len(debs) != 4 {
		t.Fatalf("%d packages are in dist (%v), want 4: run \"make package\"", len(debs), err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), bootTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../bootable.sh", "run",
		"--directory=/", "--volatile=yes", "--boot", "--quiet", "--register=no", "--private-network", "--console=pipe",
		"--machine=portcullis-boot", "--overlay=+/usr::/usr",
		"--bind-ro="+filepath.Join(dir, "machine-id")+":/etc/machine-id",
		"--bind-ro="+filepath.Join(dir, "trial.service")+":/etc/systemd/system/trial.service",
		"--bind-ro="+self+":/trial", "--bind-ro="+packages+":/dist", "--bind="+out+":/out",
		"systemd.unit=trial.service", "systemd.mask=systemd-machine-id-commit.service")
	said, err := cmd.CombinedOutput()
	log, readErr := os.ReadFile(filepath.Join(out, "log"))
	text := string(log)
	if err != nil || readErr != nil || !strings.HasSuffix(strings.TrimSpace(text), "\nPASS") {
		t.Fatalf("systemd-nspawn: %v, its log: %v\n%s\n%s", err, readErr, said, text)
	}
	fmt.Fprint(t.Output(), text)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
