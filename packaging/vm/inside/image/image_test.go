//go:build vm

// Package image_test runs in the provisioning image, where a unit of the site's own files starts it.
package image_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/attest/eventlog"
	"portcullis/packaging/vm/inside/guest"
	"portcullis/packaging/vm/inside/measured"
)

// RegistersName is the name under which the registers are handed out.
const registersName = "registers"

// TestLog hands out the event log and the registers of the TPM.
func TestLog(t *testing.T) {
	measured.HandOutLog(t)
	var all [eventlog.NumPCRs]eventlog.Digest
	for pcr := range all {
		all[pcr] = measured.Register(t, pcr)
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	guest.HandOut(t, registersName, b)
}

func TestSecureBootOff(t *testing.T) { secureBoot(t, false, "none") }
func TestSecureBootOn(t *testing.T)  { secureBoot(t, true, "integrity") }

func secureBoot(t *testing.T, on bool, lockdown string) {
	t.Helper()
	if got := measured.SecureBoot(t, measured.Log(t)); got != on {
		t.Errorf("Secure Boot is on: %v, want %v", got, on)
	}
	if got := measured.Lockdown(t); got != lockdown {
		t.Errorf("the kernel is locked down to %s, want %s", got, lockdown)
	}
}

// TestNetwork: an Ethernet port got an address and name servers by DHCP.
func TestNetwork(t *testing.T) {
	guest.Eventually(t, time.Minute, "no address by DHCP", func() bool {
		all, err := net.InterfaceAddrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			if strings.HasPrefix(a.String(), "10.0.2.") {
				return true
			}
		}
		return false
	})
	guest.Eventually(t, time.Minute, "no name server of DHCP", func() bool {
		b, err := os.ReadFile("/etc/resolv.conf")
		return err == nil && strings.Contains(string(b), "10.0.2.3")
	})
}

// TestMachine checks that the values that differ from host to host come from the machine.
func TestMachine(t *testing.T) {
	if got := guest.Read(t, "/run/credentials/@system/portcullis.host"); got != "vm-1" {
		t.Errorf("credential portcullis.host is %q, want vm-1", got)
	}
	if got := guest.Read(t, "/sys/class/dmi/id/product_serial"); got != "serial-1" {
		t.Errorf("serial number %q, want serial-1", got)
	}
}

// TestDevices checks that udev assigned the TPM to the agent's group, and that modules of the image can be loaded.
func TestDevices(t *testing.T) {
	guest.Eventually(t, 30*time.Second, "the TPM is not the agent's", func() bool {
		info, err := os.Stat("/dev/tpmrm0")
		return err == nil && info.Mode().Perm() == 0o660
	})
	for _, module := range []string{"mlx5_core", "mlx5_ib", "ib_umad", "ib_uverbs"} {
		guest.Do(t, "modprobe", module)
		if !guest.Exists(filepath.Join("/sys/module", module)) {
			t.Errorf("module %s is not loaded", module)
		}
	}
	if out := guest.Try(t, "mstflint", "--version").Out; !strings.Contains(out, "mstflint") {
		t.Errorf("mstflint says %q", out)
	}
}

// TestNoShell checks that login and input are impossible.
func TestNoShell(t *testing.T) {
	for _, name := range []string{"sh", "bash", "dash", "busybox", "login", "agetty", "sulogin", "sshd", "python3", "perl"} {
		for _, dir := range []string{"/usr/bin", "/usr/sbin", "/usr/lib/systemd"} {
			if guest.Exists(filepath.Join(dir, name)) {
				t.Errorf("%s/%s is there", dir, name)
			}
		}
	}
}

// TestDoctor: the agent finds TPM and event log.
func TestDoctor(t *testing.T) {
	var said struct {
		Checks []struct{ Check, Result, Detail string }
	}
	out := guest.Try(t, "portcullis-agent", "doctor", "--json", "--host", "vm-1", "--ca", "/etc/portcullis/ca.pem").Out
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&said); err != nil {
		t.Fatalf("doctor: %v in %q", err, out)
	}
	found := map[string]string{}
	for _, c := range said.Checks {
		found[c.Check] = c.Result
	}
	for _, check := range []string{"tpm", "event-log"} {
		if found[check] != "ok" {
			t.Errorf("doctor: %s is %q, want ok: %s", check, found[check], out)
		}
	}
}

// TestSecondStart stands for the agent: it fails where it did not run before.
func TestSecondStart(t *testing.T) {
	const before = "/run/first-start"
	if !guest.Exists(before) {
		if err := os.WriteFile(before, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Error("the first start fails")
	}
}
