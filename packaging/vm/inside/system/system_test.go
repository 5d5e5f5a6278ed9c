//go:build vm

// Package system_test runs in a virtual machine with and without root file system, and tests that the machine is what the
// other labs build on. Machines with firmware are those of package boots.
package system_test

import (
	"strings"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

func TestKernel(t *testing.T) { guest.Kernel(t) }

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
