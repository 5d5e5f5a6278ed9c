//go:build vm

// Package service_test runs on a virtual machine with systemd, an InfiniBand adapter and a simulated fabric, and tests the
// packages of the service through their life: installed, started in its sandbox on ib_umad, disturbed, upgraded,
// downgraded, removed and purged, as deb and as rpm.
package service_test

import (
	"strings"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// The tests run in this order; each finds what the one before left.

func TestKernel(t *testing.T)              { step(t, func(t *testing.T) { guest.Kernel(t) }) }
func TestSystemd(t *testing.T)             { step(t, system) }
func TestInstallBefore(t *testing.T)       { step(t, installBefore) }
func TestUpgrade(t *testing.T)             { step(t, upgrade) }
func TestAttaches(t *testing.T)            { step(t, attaches) }
func TestCage(t *testing.T)                { step(t, cage) }
func TestBothPackages(t *testing.T)        { step(t, bothPackages) }
func TestReload(t *testing.T)              { step(t, reload) }
func TestSecondService(t *testing.T)       { step(t, secondService) }
func TestKilled(t *testing.T)              { step(t, killed) }
func TestHangs(t *testing.T)               { step(t, hangs) }
func TestAdapterPulled(t *testing.T)       { step(t, adapterPulled) }
func TestRuleTakenAway(t *testing.T)       { step(t, ruleTakenAway) }
func TestDiskFull(t *testing.T)            { step(t, diskFull) }
func TestDowngradeRefused(t *testing.T)    { step(t, downgradeRefused) }
func TestRemove(t *testing.T)              { step(t, remove) }
func TestRPM(t *testing.T)                 { step(t, rpm) }
func TestRPMDowngradeRefused(t *testing.T) { step(t, rpmDowngradeRefused) }
func TestRPMErase(t *testing.T)            { step(t, rpmErase) }
func TestPurge(t *testing.T)               { step(t, purge) }
func TestInstallAfterPurge(t *testing.T)   { step(t, installAfterPurge) }

// system finds the system that the labs with a root file system build on.
func system(t *testing.T) {
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

// broken is the test that failed, after which none is tried: they would fail for its reason.
var broken string

func step(t *testing.T, f func(*testing.T)) {
	if broken != "" {
		t.Fatalf("not tried, since %s failed", broken)
	}
	defer func() {
		if t.Failed() {
			broken = t.Name()
			t.Logf("the end of the journal:\n%s", journalEnd(t))
		}
	}()
	f(t)
}
