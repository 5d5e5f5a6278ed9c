//go:build vm

// Package system_test runs in a virtual machine with each kind of firmware and each way to boot, and tests that the
// machine is what the other labs build on.
package system_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

func TestKernel(t *testing.T) {
	if n := runtime.NumCPU(); n != 2 {
		t.Errorf("%d CPUs, want 2: some defects need two", n)
	}
	release := guest.Read(t, "/proc/sys/kernel/osrelease")
	if !strings.HasSuffix(release, "-cloud-amd64") {
		t.Errorf("the kernel is %s, want Debian's cloud kernel", release)
	}
	if line := guest.Read(t, "/proc/cmdline"); !strings.Contains(line, "console=ttyS0") {
		t.Errorf("command line %q has no console", line)
	}
}

func TestMeasuredBoot(t *testing.T) {
	for _, name := range []string{"/dev/tpm0", "/dev/tpmrm0"} {
		if !guest.Exists(name) {
			t.Errorf("%s is missing", name)
		}
	}
	log, err := os.ReadFile("/sys/kernel/security/tpm0/binary_bios_measurements")
	if err != nil {
		t.Fatal(err)
	}
	if len(log) < 1024 {
		t.Errorf("the event log has %d bytes, want a log of a whole boot", len(log))
	}
}

func TestSystemd(t *testing.T) {
	if comm := guest.Read(t, "/proc/1/comm"); comm != "systemd" {
		t.Errorf("process 1 is %s, want systemd", comm)
	}
	if e := guest.Try(t, "systemctl", "is-system-running", "--wait"); strings.TrimSpace(e.Out) != "running" {
		t.Errorf("the system is %s\n%s", e.Out, guest.Try(t, "systemctl", "--failed").Out)
	}
	for _, pkg := range []string{"portcullisd", "portcullis-agent"} {
		if out := guest.Do(t, "dpkg-query", "-W", "-f", "${db:Status-Status}", pkg); out != "installed" {
			t.Errorf("%s is %s", pkg, out)
		}
	}
}
