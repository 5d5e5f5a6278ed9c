//go:build vm

// Package host_test runs on a host that is provisioned: systemd is process 1, our packages are installed, and the agent ran
// as its unit. TestHost outside selects the tests for each boot.
package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/packaging/vm/inside/bootvar"
	"portcullis/packaging/vm/inside/guest"
	"portcullis/packaging/vm/inside/measured"
	"portcullis/packaging/vm/inside/verbs"
)

const (
	agentUnit  = "portcullis-agent.service"
	doctorUnit = "portcullis-agent-doctor.service"
	adapter    = "/sys/class/infiniband/mlx5_0"
)

// TestLog hands out what was measured. systemd adds that the system is initialised and that it is up.
func TestLog(t *testing.T) { measured.HandOutLog(t, "sysinit", "ready") }

// TestSecureBoot: the firmware checked signatures, so the kernel is locked down, and takes no module that the keys of the
// firmware did not sign. The adapter's driver is one that they did.
func TestSecureBoot(t *testing.T) {
	if !measured.SecureBoot(t, measured.Log(t)) {
		t.Error("Secure Boot is off")
	}
	if mode := measured.Lockdown(t); mode != "integrity" {
		t.Errorf("lockdown is %s, want integrity", mode)
	}
	if !guest.Exists("/sys/module/softhca") {
		t.Error("the signed module is not loaded")
	}
	f, err := os.Open("/suite/unsigned.ko")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EKEYREJECTED) {
		t.Errorf("load an unsigned module: %v, want that it is refused", err)
	}
}

// TestDevices: other accounts than those of our units cannot use the TPM and the adapter's device for MADs. That the agent can is
// what doctor finds.
func TestDevices(t *testing.T) {
	for _, node := range []string{"/dev/tpm0", "/dev/tpmrm0", "/dev/infiniband/umad0"} {
		if !guest.Exists(node) {
			t.Errorf("%s is missing", node)
		}
		for _, access := range []string{"-r", "-w"} {
			if e := guest.Try(t, "runuser", "-u", "nobody", "--", "test", access, node); e.Code == 0 {
				t.Errorf("any account can use %s: %s", node, guest.Do(t, "ls", "-l", node))
			}
		}
	}
}

// outcome is how the agent's unit ended.
type outcome struct{ ActiveState, SubState, Result, ExecMainStatus string }

// agentLimit bounds the wait for the end of the agent, whose unit counts as started before.
const agentLimit = time.Minute

// agent returns the outcome of the agent's unit once it has one.
func agent(t *testing.T) (o outcome) {
	t.Helper()
	guest.Eventually(t, agentLimit, "the agent has no outcome", func() bool {
		o = outcome{}
		for line := range strings.Lines(guest.Do(t, "systemctl", "show", agentUnit, "-p", "ActiveState,SubState,Result,ExecMainStatus")) {
			switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
			case "ActiveState":
				o.ActiveState = value
			case "SubState":
				o.SubState = value
			case "Result":
				o.Result = value
			case "ExecMainStatus":
				o.ExecMainStatus = value
			}
		}
		return o.SubState == "exited" || o.SubState == "failed"
	})
	return o
}

var (
	refused  = outcome{"failed", "failed", "exit-code", "6"}
	admitted = outcome{"active", "exited", "success", "0"}
)

// journal returns what a unit wrote in this boot.
func journal(t *testing.T, unit string) string {
	t.Helper()
	return guest.Do(t, "journalctl", "-b", "-u", unit, "-o", "cat", "--no-pager")
}

// wantAgent tests how the agent's unit ended.
func wantAgent(t *testing.T, want outcome) {
	t.Helper()
	if got := agent(t); got != want {
		t.Fatalf("the agent's unit is %+v, want %+v:\n%s", got, want, journal(t, agentUnit))
	}
}

// TestRefused: the agent ends with the status that says so, is not started again, and the host is in no partition.
func TestRefused(t *testing.T) {
	wantAgent(t, refused)
	if keys := fullKeys(t); len(keys) != 0 {
		t.Errorf("the port is a full member of %v", keys)
	}
}

// TestLearned: the host was refused for a boot that is not known. Once its reference values are learned and approved, the agent
// attests in the same boot. The boot is not what it is refused for then.
func TestLearned(t *testing.T) {
	wantAgent(t, refused)
	guest.Ask(t, "learn")
	again(t)
	wantAgent(t, refused)
}

// TestAcknowledged: the host is refused since its TPM was cleared. Once that is acknowledged, the agent attests in the same boot.
func TestAcknowledged(t *testing.T) {
	wantAgent(t, refused)
	guest.Ask(t, "acknowledge")
	again(t)
	wantAgent(t, admitted)
}

// again starts the agent once more. That fails if it is refused before the unit counts as started.
func again(t *testing.T) {
	t.Helper()
	_ = guest.Try(t, "systemctl", "restart", agentUnit)
}

// TestTenant: the host was given to a tenant, whose system is in the partition. His evidence is refused, since the window is closed,
// and that takes nothing from him. Once the host was taken back, he is out of the partition, and his image is not one that is
// trusted in the next window.
func TestTenant(t *testing.T) {
	wantAgent(t, refused)
	guest.Ask(t, "window")
	if keys := fullKeys(t); len(keys) != 1 {
		t.Errorf("the port is a full member of %v, want one partition", keys)
	}
	guest.Ask(t, "assign")
	again(t)
	wantAgent(t, refused)
	if keys := fullKeys(t); len(keys) != 0 {
		t.Errorf("the port is a full member of %v", keys)
	}
}

// TestAdmitted: the agent's unit stays active, and the kernel's P_Key table has the partition.
func TestAdmitted(t *testing.T) {
	wantAgent(t, admitted)
	if keys := fullKeys(t); len(keys) != 1 {
		t.Errorf("the port is a full member of %v, want one partition", keys)
	}
}

// TestUnits: no unit failed but, where the host was refused, the agent's.
func TestUnits(t *testing.T) {
	want := ""
	if agent(t) == refused {
		want = agentUnit
	}
	var failed []string
	for line := range strings.Lines(guest.Do(t, "systemctl", "list-units", "--state=failed", "--plain", "--no-legend")) {
		if f := strings.Fields(line); len(f) > 0 {
			failed = append(failed, f[0])
		}
	}
	if strings.Join(failed, " ") != want {
		t.Errorf("failed units: %q, want %q", failed, want)
	}
}

// pkeys returns the kernel's P_Key table of port 1, up to the last entry in use.
func pkeys(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(adapter + "/ports/1/pkeys/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no P_Key table (%v)", err)
	}
	keys := make([]string, len(files))
	used := 0
	for i := range files {
		keys[i] = guest.Read(t, filepath.Join(adapter, "ports/1/pkeys", strconv.Itoa(i)))
		if keys[i] != "0x0000" {
			used = i + 1
		}
	}
	return keys[:used]
}

// fullKeys returns the P_Keys of full membership, which have the highest bit.
func fullKeys(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(pkeys(t), func(k string) bool { return k[2] < '8' })
}

// TestDoctor runs doctor in the sandbox of the agent's unit.
func TestDoctor(t *testing.T) {
	since := "--since=@" + strconv.FormatInt(time.Now().Unix(), 10)
	started := guest.Try(t, "systemctl", "start", doctorUnit)
	if started.Code != 0 {
		t.Errorf("doctor: exit status %d: %s", started.Code, started.All)
	}
	pcr := measured.OK("PCR 15 holds 1 statements of this agent")
	if agent(t) == admitted {
		pcr = measured.OK("PCR 15: the host was handed over in this boot")
	}
	out := guest.Do(t, "journalctl", "-b", "-u", doctorUnit, "-o", "cat", "--no-pager", since)
	measured.CheckDoctor(t, map[string]measured.Finding{
		"configuration":       measured.OK("host compute-01"),
		"image":               measured.OK("provision-7"),
		"state":               measured.OK("/var/lib/portcullis-agent is writable"),
		"other-agent":         measured.OK("no other agent runs"),
		"tpm":                 measured.OK("(ecc-p"),
		"agent-pcr":           pcr,
		"event-log":           measured.OK("events, and they match the TPM"),
		"firmware":            measured.Warning("no assurance level"),
		"adapters":            measured.OK("mlx5_0"),
		"registers":           measured.Warning("the firmware does not answer"),
		"lockdown":            measured.Warning("the kernel is locked down"),
		"umad":                measured.OK("mlx5_0 port 1 by umad0"),
		"fwctl":               measured.Skipped("no PCI function is an NVIDIA adapter"),
		"vendor-tools":        measured.Skipped("no PCI function is an NVIDIA adapter"),
		"selinux":             measured.OK("SELinux is off"),
		"service":             measured.OK("answers"),
		"service-certificate": measured.OK("its certificate is from the CA"),
		"service-ready":       measured.OK("the service is ready"),
		"clock":               measured.OK("from"),
	}, out)
}

// TestRelease connects two live queue pairs in the partition. Release removes the partition. Their packets are then not
// acknowledged, which puts them into error.
func TestRelease(t *testing.T) {
	index := slices.IndexFunc(pkeys(t), func(k string) bool { return k[2] >= '8' })
	if index < 0 {
		t.Fatalf("no full member in %v", pkeys(t))
	}
	p := newPair(t, uint16(index))
	p.send(t, verbs.Success)
	p.wantState(t, verbs.RTS)
	guest.Ask(t, "release")
	guest.Eventually(t, 10*time.Second, "the kernel's P_Key table still has the partition", func() bool { return len(fullKeys(t)) == 0 })
	p.send(t, verbs.RetryExceeded)
	p.wantState(t, verbs.Error)
}

// tenantOption is the number of the boot option that a tenant leaves.
const tenantOption = 0x99

// TestLeaveBootOption acts as a tenant who leaves a boot option of his own, the first in order.
func TestLeaveBootOption(t *testing.T) {
	bootvar.Add(t, tenantOption, "tenant", guest.Drive(t, "esp"), `\EFI\tenant\tenant.efi`)
	if first := bootvar.Order(t)[0]; first != tenantOption {
		t.Errorf("the first boot option is %#x, want the tenant's", first)
	}
}

// TestRemoveBootOption cleans up after the tenant.
func TestRemoveBootOption(t *testing.T) { bootvar.Remove(t, tenantOption) }

// TestClearTPM acts as a tenant, or an operator, who clears the TPM.
func TestClearTPM(t *testing.T) {
	guest.Do(t, "tpm2_clear", "--tcti=device:/dev/tpmrm0", "--auth-hierarchy=lockout")
}
