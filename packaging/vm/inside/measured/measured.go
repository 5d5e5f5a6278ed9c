//go:build vm

// Package measured has the shared code of test programs that look at a measured boot: the event log, the registers of the
// TPM, and the report of the agent's doctor on both.
package measured

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portcullis/attest/eventlog"
	"portcullis/packaging/vm/inside/guest"
)

// Files of the kernel.
const (
	LogFile   = "/sys/kernel/security/tpm0/binary_bios_measurements"
	registers = "/sys/class/tpm/tpm0/pcr-sha256"
)

// LogName is the name under which HandOutLog hands the event log out.
const LogName = "event-log"

// Log returns the event log of the firmware.
func Log(t testing.TB) *eventlog.Log {
	t.Helper()
	log, err := eventlog.Parse(read(t))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func read(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile(LogFile)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// loaderPCR is what systemd-stub measures parts of an image into, and systemd that it comes from phase to phase.
const loaderPCR = 11

// HandOutLog hands the event log out, and tests that it leads to the TPM's value of every register from 0 to 14. The kernel
// reads the registers. phases are the phases that systemd measured in addition.
func HandOutLog(t testing.TB, phases ...string) {
	t.Helper()
	guest.HandOut(t, LogName, read(t))
	log := Log(t)
	want := log.Replay()
	for _, p := range phases {
		want[loaderPCR] = want[loaderPCR].Extend(sha256.Sum256([]byte(p)))
	}
	// Linux measures into PCR 10 if IMA is on, and the agent into 15.
	for pcr := range 15 {
		if got := Register(t, pcr); pcr != 10 && got != want[pcr] {
			t.Errorf("PCR %d: its %d events lead to %v, the TPM holds %v", pcr, len(log.Of(pcr)), want[pcr], got)
		}
	}
}

// Register returns what the TPM holds in a register.
func Register(t testing.TB, pcr int) (d eventlog.Digest) {
	t.Helper()
	text := strings.ToLower(guest.Read(t, filepath.Join(registers, fmt.Sprint(pcr))))
	if err := d.UnmarshalText([]byte(text)); err != nil {
		t.Fatalf("PCR %d: %v", pcr, err)
	}
	return d
}

// secureBoot is the name of a UEFI variable, as the log has it.
var secureBoot = []byte("S\x00e\x00c\x00u\x00r\x00e\x00B\x00o\x00o\x00t\x00")

// SecureBoot reports whether the firmware measured that it checks signatures.
func SecureBoot(t testing.TB, log *eventlog.Log) bool {
	t.Helper()
	for _, e := range log.Of(7) {
		if value, found := bytes.CutPrefix(e.Data[min(len(e.Data), variableHeader):], secureBoot); found && e.Type == eventlog.VariableConfig {
			if sha256.Sum256(e.Data) != e.Digest {
				t.Fatalf("the event of SecureBoot has data %x, of which %v is not the digest", e.Data, e.Digest)
			}
			return bytes.Equal(value, []byte{1})
		}
	}
	t.Fatal("the firmware did not measure the variable SecureBoot into PCR 7")
	return false
}

// variableHeader is what stands before the name in an event that is a variable: its GUID and two sizes.
const variableHeader = 32

// Lockdown returns what the kernel forbids even root: none, integrity or confidentiality.
func Lockdown(t testing.TB) string {
	t.Helper()
	_, rest, found := strings.Cut(guest.Read(t, "/sys/kernel/security/lockdown"), "[")
	mode, _, closed := strings.Cut(rest, "]")
	if !found || !closed {
		t.Fatal("the kernel does not say whether it is locked down")
	}
	return mode
}

// Finding is the expected finding of a check of doctor: its result, and a part of its text.
type Finding struct{ result, detail string }

// OK is a check that finds nothing wrong, and says detail.
func OK(detail string) Finding { return Finding{"ok", detail} }

// Warning is a check that finds what a run can do without.
func Warning(detail string) Finding { return Finding{"warning", detail} }

// Failed is a check that fails.
func Failed(detail string) Finding { return Finding{"failed", detail} }

// Skipped is a check that is not made.
func Skipped(detail string) Finding { return Finding{"skipped", detail} }

// Doctor runs the agent's doctor, which must make exactly the checks of want and find what it says.
func Doctor(t testing.TB, want map[string]Finding, args ...string) {
	t.Helper()
	CheckDoctor(t, want, guest.Try(t, "portcullis-agent", append([]string{"doctor"}, args...)...).Out)
}

// check matches the first line of a check in the output of doctor.
var check = regexp.MustCompile(`^(ok|warning|failed|skipped) +([a-z-]+): (.*)$`)

// CheckDoctor tests what doctor printed.
func CheckDoctor(t testing.TB, want map[string]Finding, text string) {
	t.Helper()
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		m := check.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		result, name, detail := m[1], m[2], m[3]
		w, ok := want[name]
		if !ok {
			t.Errorf("doctor: no check %q is expected: %s: %s", name, result, detail)
		} else if result != w.result || !strings.Contains(detail, w.detail) {
			t.Errorf("doctor: %s: %s: %q, want %s: %q", name, result, detail, w.result, w.detail)
		}
		seen[name] = true
	}
	for name := range want {
		if !seen[name] {
			t.Errorf("doctor: no check %q in:\n%s", name, text)
		}
	}
}
