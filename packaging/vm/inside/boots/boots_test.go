//go:build vm

// Package boots_test runs in a machine without root file system after each way to boot, and tests what was measured.
package boots_test

import (
	"os"
	"testing"

	"portcullis/packaging/vm/inside/guest"
	"portcullis/packaging/vm/inside/measured"
)

// TestKernel: the machine is what the other labs build on, under each firmware and boot loader.
func TestKernel(t *testing.T) { guest.Kernel(t) }

// TestMeasuredBoot: the kernel has a driver of the TPM, and the firmware's log of a whole boot.
func TestMeasuredBoot(t *testing.T) {
	for _, name := range []string{"/dev/tpm0", "/dev/tpmrm0"} {
		if !guest.Exists(name) {
			t.Errorf("%s is missing", name)
		}
	}
	log, err := os.ReadFile(measured.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(log) < 1024 {
		t.Errorf("the event log has %d bytes, want a log of a whole boot", len(log))
	}
}

// TestLog hands out the log, which the test outside compares with those of other boots.
func TestLog(t *testing.T) {
	measured.HandOutLog(t)
}

func TestSecureBootOff(t *testing.T) { secureBoot(t, false, "none") }
func TestSecureBootOn(t *testing.T)  { secureBoot(t, true, "integrity") }

// secureBoot: Debian's kernel locks itself down where firmware checks signatures.
func secureBoot(t *testing.T, on bool, lockdown string) {
	t.Helper()
	if got := measured.SecureBoot(t, measured.Log(t)); got != on {
		t.Errorf("Secure Boot is on: %v, want %v", got, on)
	}
	if got := measured.Lockdown(t); got != lockdown {
		t.Errorf("lockdown is %s, want %s", got, lockdown)
	}
}

// TestDoctor looks at a host without adapter, network and configuration.
func TestDoctor(t *testing.T) {
	const (
		noAdapter = "there is no adapter to look at"
		noService = "not configured"
	)
	measured.Doctor(t, map[string]measured.Finding{
		"configuration":       measured.Failed("service"),
		"image":               measured.OK("vm-1"),
		"state":               measured.OK("is writable"),
		"other-agent":         measured.OK("no agent ever ran"),
		"tpm":                 measured.OK("with certificate"),
		"agent-pcr":           measured.OK("PCR 15 is not extended yet"),
		"event-log":           measured.OK("events, and they match the TPM"),
		"firmware":            measured.Warning("no assurance level"),
		"adapters":            measured.Failed("no InfiniBand adapter; load its driver"),
		"registers":           measured.Skipped(noAdapter),
		"lockdown":            measured.Skipped(noAdapter),
		"umad":                measured.Skipped(noAdapter),
		"fwctl":               measured.Skipped(""),
		"selinux":             measured.OK("SELinux is off"),
		"vendor-tools":        measured.Skipped(""),
		"service":             measured.Skipped(noService),
		"service-certificate": measured.Skipped(noService),
		"service-ready":       measured.Skipped(noService),
		"clock":               measured.Skipped(noService),
	})
}
