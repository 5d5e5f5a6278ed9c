package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Rsyslog runs the system log of Debian with a configuration until the test ends. Its files are in dir, and out is the file that
// it writes, which a test that fails prints.
func Rsyslog(t testing.TB, dir, config, out string) {
	t.Helper()
	program, file := Program(t, "rsyslogd"), filepath.Join(dir, "rsyslog.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd := exec.Command(program, "-n", "-f", file, "-i", filepath.Join(dir, "pid"))
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // how a log ends is its own affair
		if t.Failed() {
			text, _ := os.ReadFile(out)
			t.Logf("rsyslogd said:\n%s\nand wrote:\n%s", said.String(), text)
		}
	})
}
