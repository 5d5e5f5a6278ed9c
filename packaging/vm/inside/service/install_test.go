//go:build vm

package service_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

const (
	configuration = "/etc/portcullis/portcullisd.yaml"
	state         = "/var/lib/portcullis"
	format        = state + "/format"
)

// Packages that the lab brought along.
const (
	beforeDeb = "/lab/before.deb" // of the last version whose state has no format
	lowerDeb  = "/lab/lower.deb"  // this version under a lower number
	nowDeb    = "/lab/now.deb"
	lowerRPM  = "/lab/lower.rpm"
	nowRPM    = "/lab/now.rpm"
)

// told is the service's data before it was upgraded.
var told known

const inventory = `hosts:
  - id: h1
    ek_sha256: "0000000000000000000000000000000000000000000000000000000000000001"
    hcas:
      - node_guid: 0x0020000000000100
        system_image_guid: 0x0020000000000100
        ports:
          - {port: 1, guid: 0x0020000000000101}
cables:
  - {guid: 0x0020000000000101, switch: 0x0010000100000001, port: 2}
`

// installBefore begins with the package of an earlier version, and has its service know something.
func installBefore(t *testing.T) {
	guest.Do(t, "dpkg", "--purge", "portcullisd") // of now, which the root file system has
	guest.UnitHas(t, service, "LoadState=not-found")
	guest.Want(t, guest.Do(t, "dpkg", "--install", beforeDeb), "not started")
	guest.UnitHas(t, service, "LoadState=loaded", "UnitFileState=disabled", "ActiveState=inactive")
	// The state has a disk of its own, which is small.
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	guest.Do(t, "mount", "-t", "tmpfs", "-o", "size=400m,mode=0700,uid=portcullis,gid=portcullis", "none", state)
	guest.Do(t, "portcullisd", "init", "--names", "localhost,vm", "--fabric-port", "umad:"+adapter)
	patient(t)
	guest.Do(t, "systemctl", "enable", "--now", service)
	settled(t, "")
	if guest.Exists(format) {
		t.Fatalf("%s is there: this is no version without a format", format)
	}
	portcullis(t, "tenant", "create", "physics")
	portcullis(t, "cluster", "create", "lattice", "--tenant", "physics")
	guest.Write(t, "/root/inventory.yaml", inventory)
	portcullis(t, "inventory", "import", "/root/inventory.yaml")
	portcullis(t, "host", "assign", "h1", "--cluster", "lattice")
	if sent := sets(t); sent["Set P_KeyTable"] == 0 || sent["Set PortInfo"] == 0 {
		t.Fatalf("a fabric that was fresh was not written to: %v", sent)
	}
	told = knows(t)
}

// patient has the subnet manager wait longer for answers. In an emulated machine they can take longer than three tries of a
// fifth of a second, and a switch that was silent is routed again.
func patient(t *testing.T) {
	t.Helper()
	const was, now = "  timeout: 200ms\n", "  timeout: 2s\n"
	text := guest.Read(t, configuration)
	if !strings.Contains(text, was) {
		t.Fatalf("%s has no %q", configuration, was)
	}
	guest.Write(t, configuration, strings.Replace(text, was, now, 1))
}

// upgrade has the package of now take over from one that runs.
func upgrade(t *testing.T) {
	before := guest.Unit(t, service)
	guest.Do(t, "dpkg", "--install", nowDeb)
	now := settled(t, before["MainPID"])
	if now["NRestarts"] != "0" || now["UnitFileState"] != "enabled" {
		t.Errorf("after the upgrade: %s restarts, unit %s", now["NRestarts"], now["UnitFileState"])
	}
	remembers(t, told)
	formatIs(t, 1)
}

// formatIs compares the number that the state directory has.
func formatIs(t *testing.T, want int) {
	t.Helper()
	if text := guest.Read(t, format); !strings.HasPrefix(text, fmt.Sprint(want, " ")) {
		t.Fatalf("%s has %q, want %d and a version", format, text, want)
	}
}

// files returns name, size and time of change of all state but the lock, which every reader takes.
func files(t *testing.T) string {
	t.Helper()
	return guest.Do(t, "find", state, "-name", "lock", "-o", "-type", "f", "-printf", "%p %s %T@\n")
}

// newerState writes the format of a future version into the state, while the state is not in use.
func newerState(t *testing.T) (back func()) {
	t.Helper()
	was, err := os.ReadFile(format)
	if err != nil {
		t.Fatal(err)
	}
	guest.Write(t, format, "2 9.1.0\n")
	return func() {
		t.Helper()
		guest.Write(t, format, string(was))
	}
}

// downgradeRefused has the state written by a version to come. Neither the package nor the program of now touches it.
func downgradeRefused(t *testing.T) {
	pid := guest.Unit(t, service)["MainPID"]
	back := newerState(t)
	e := guest.Try(t, "dpkg", "--install", lowerDeb)
	if e.Code == 0 {
		t.Fatal("dpkg installs a version that does not know the state")
	}
	guest.Want(t, e.All, "portcullisd: not installed: "+state+" has format 2 since version 9.1.0", "hint: ")
	guest.UnitHas(t, service, "ActiveState=active", "MainPID="+pid)
	if v := guest.Do(t, "dpkg-query", "--show", "--showformat=${db:Status-Abbrev}${Version}", "portcullisd"); !strings.HasPrefix(v, "ii ") || strings.HasSuffix(v, "+1.g0000000") {
		t.Errorf("after the refusal dpkg has %s", v)
	}

	guest.Do(t, "systemctl", "stop", service)
	before := files(t)
	if e := guest.Try(t, "systemctl", "start", service); e.Code == 0 {
		t.Fatal("a service that is older than the state starts")
	}
	guest.UnitSays(t, service, "its format is 2 since version 9.1.0 used it, and this version reads formats up to 1")
	guest.UnitSays(t, service, "hint: install version 9.1.0 or a later one")
	guest.Do(t, "systemctl", "stop", service)
	if after := files(t); after != before {
		t.Errorf("a service that refused the state changed it:\n%s\n%s", before, after)
	}
	back()
	guest.Do(t, "systemctl", "reset-failed", service)
	guest.Do(t, "systemctl", "start", service)
	settled(t, "")
	remembers(t, told)
}

// remove keeps what the next installation needs.
func remove(t *testing.T) {
	guest.Do(t, "dpkg", "--remove", "portcullisd")
	guest.UnitHas(t, service, "LoadState=not-found", "ActiveState=inactive")
	if isSM(t) {
		t.Error("the service was removed, and the port still shows a Subnet Manager")
	}
	for _, name := range []string{configuration, "/etc/portcullis/operator.token", format, state + "/etcd"} {
		if !guest.Exists(name) {
			t.Errorf("a removal took %s", name)
		}
	}
}

// purge removes configuration, and keeps state, the account that owns it and the keys that open it.
func purge(t *testing.T) {
	guest.Do(t, "dpkg", "--purge", "portcullisd")
	left := strings.Fields(guest.Do(t, "find", "/etc/portcullis", "-type", "f"))
	want := map[string]bool{"/etc/portcullis/agent.yaml": true} // the other package's
	for _, root := range []string{"keys", "locks", "hosts", "results"} {
		want["/etc/portcullis/"+root+".root"] = true
	}
	for _, name := range left {
		if !want[name] {
			t.Errorf("a purge left %s", name)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("a purge took %s", name)
	}
	owner := guest.Do(t, "stat", "--format=%U %a", state)
	if strings.TrimSpace(owner) != "portcullis 700" || !guest.Exists(format) {
		t.Errorf("after a purge %s is %q", state, owner)
	}
}

// installAfterPurge installs again on the old state: only it has the keys of the fabric.
func installAfterPurge(t *testing.T) {
	guest.Do(t, "dpkg", "--install", nowDeb)
	guest.Want(t, guest.Do(t, "portcullisd", "init", "--names", "localhost,vm", "--fabric-port", "umad:"+adapter), "Kept /etc/portcullis/keys.root")
	patient(t)
	guest.Do(t, "systemctl", "enable", "--now", service)
	settled(t, "")
	remembers(t, told)
}
