//go:build vm

package service_test

import (
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// No repository of a system that uses rpm can be reached where these tests must run, so the system is
// Debian's, and the packages are those that "make package" made, installed by the rpm program with its
// own database, scripts included. That the dependency "systemd" is met is not tried.

// installing are the arguments with which packages are installed and erased. Digests are checked where packages are made
// (TestRPM): it takes half a minute here.
var installing = []string{"--dbpath=/var/lib/rpm", "--nodeps", "--nodigest", "--nofiledigest", "--nosignature"}

func rpmDo(t *testing.T, args ...string) {
	t.Helper()
	guest.Do(t, "rpm", append(installing, args...)...)
}

// rpm installs a lower version on the state that the deb left, and upgrades it.
func rpm(t *testing.T) {
	rpmDo(t, "--install", lowerRPM)
	guest.UnitHas(t, service, "LoadState=loaded", "UnitFileState=disabled", "ActiveState=inactive")
	guest.Do(t, "systemctl", "enable", "--now", service)
	pid := settled(t, "")["MainPID"]
	remembers(t, told)

	rpmDo(t, "--upgrade", nowRPM)
	if now := settled(t, pid); now["UnitFileState"] != "enabled" || now["NRestarts"] != "0" {
		t.Errorf("after the upgrade: unit %s, %s restarts", now["UnitFileState"], now["NRestarts"])
	}
	remembers(t, told)
}

// rpmHas returns the version that is installed.
func rpmHas(t *testing.T) string {
	t.Helper()
	return guest.Do(t, "rpm", "--dbpath=/var/lib/rpm", "--query", "portcullisd")
}

// rpmDowngradeRefused: as with dpkg, the version that is installed stays and runs on.
func rpmDowngradeRefused(t *testing.T) {
	pid, was := guest.Unit(t, service)["MainPID"], rpmHas(t)
	back := newerState(t)
	e := guest.Try(t, "rpm", append(installing, "--upgrade", "--oldpackage", lowerRPM)...)
	back()
	if e.Code == 0 {
		t.Fatal("rpm installs a version that does not know the state")
	}
	guest.Want(t, e.All, "portcullisd: not installed: "+state+" has format 2 since version 9.1.0", "hint: ")
	if now := rpmHas(t); now != was {
		t.Errorf("after the refusal %s is installed, want %s", now, was)
	}
	guest.UnitHas(t, service, "ActiveState=active", "MainPID="+pid)
}

// rpmErase stops the service and leaves state and configuration.
func rpmErase(t *testing.T) {
	rpmDo(t, "--erase", "portcullisd")
	guest.UnitHas(t, service, "LoadState=not-found", "ActiveState=inactive")
	for _, name := range []string{configuration, "/etc/portcullis/keys.root", format} {
		if !guest.Exists(name) {
			t.Errorf("erasing the package took %s", name)
		}
	}
	if guest.Exists("/usr/bin/portcullisd") {
		t.Error("erasing the package left its program")
	}
}
