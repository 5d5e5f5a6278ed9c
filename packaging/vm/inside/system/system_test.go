//go:build vm

// Package system_test runs in virtual machines without firmware that measures, and tests that they are what the other labs
// build on.
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
