//go:build vm

package vm

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
	"portcullis/packaging/testenv"
	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/inside/measured"
	"portcullis/packaging/vm/kernel"
	"portcullis/packaging/vm/machine"
)

// chain is a way to boot.
type chain struct {
	name       string
	firmware   machine.Firmware
	variables  string
	secureBoot bool
	pcrs       []int                                             // registers that the log has events of
	esp        func(t *testing.T, f bootFiles) map[string]string // of the system partition; nil boots the files that qemu passes to firmware
}

// bootFiles are what chains are made of.
type bootFiles struct {
	kernel kernel.Kernel
	initrd string
}

// firmwarePCRs are those of firmware. The boot loaders' come after them.
var firmwarePCRs = []int{0, 1, 2, 3, 4, 5, 6, 7}

// chains are the ways to boot, except a unified kernel image: TestHost boots a signed one, and TestImage one without Secure Boot.
var chains = []chain{
	{name: "EFIStub", firmware: machine.UEFI, pcrs: append(firmwarePCRs[:8:8], 9)},
	{name: "SystemdBoot", firmware: machine.UEFI, pcrs: append(firmwarePCRs[:8:8], 9, 12), esp: systemdBootFiles},
	{
		name: "ShimGRUB", firmware: machine.SecureBoot, variables: machine.VariablesMicrosoft, secureBoot: true,
		pcrs: append(firmwarePCRs[:8:8], 8, 9, 14), esp: shimFiles,
	},
}

// firstProgram is the program that firmware starts from a disk without a boot option.
const firstProgram = "/EFI/BOOT/BOOTX64.EFI"

func systemdBootFiles(t *testing.T, f bootFiles) map[string]string {
	return map[string]string{
		firstProgram:              disk.SystemdBoot,
		"/loader/loader.conf":     text(t, "timeout 0\n"),
		"/loader/entries/vm.conf": text(t, "title vm\nlinux /vmlinuz\ninitrd /initrd\noptions "+machine.Cmdline+"\n"),
		"/vmlinuz":                f.kernel.Image(),
		"/initrd":                 f.initrd,
	}
}

// shimFiles are Debian's shim, which Microsoft signed, and GRUB and kernel, which Debian signed.
func shimFiles(t *testing.T, f bootFiles) map[string]string {
	shim, grub := debianPackage(t, "shim-signed"), debianPackage(t, "grub-efi-amd64-signed")
	return map[string]string{
		firstProgram:            filepath.Join(shim, "usr/lib/shim/shimx64.efi.signed"),
		"/EFI/BOOT/grubx64.efi": filepath.Join(grub, "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"),
		"/EFI/debian/grub.cfg":  text(t, "linux /vmlinuz "+machine.Cmdline+"\ninitrd /initrd\nboot\n"),
		"/vmlinuz":              f.kernel.Image(),
		"/initrd":               f.initrd,
	}
}

// text writes a file with content and returns its name.
func text(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// TestBoots boots in each way twice. The logs must replay to the registers, tpm2_eventlog must read the same in them, and
// reference values learned from the first boot must accept the second.
func TestBoots(t *testing.T) {
	t.Parallel() // each way is a lab
	s := newSuite(t, "./inside/boots")
	f := bootFiles{kernel: debian(t), initrd: initramfs(t)}
	for _, c := range chains {
		t.Run(c.name, func(t *testing.T) {
			lab(t, 40)
			c.test(t, s, f)
		})
	}
}

func (c chain) test(t *testing.T, s suite, f bootFiles) {
	expression := "^Test(Kernel|MeasuredBoot|Log|Doctor|SecureBootOff)$"
	if c.secureBoot {
		expression = "^Test(Kernel|MeasuredBoot|Log|Doctor|SecureBootOn)$"
	}
	seed, tests := s.seed(t, expression)
	must(t, seed.File("/usr/bin/portcullis-agent", program(t, "portcullis-agent")))
	seed.Data("/etc/os-release", "IMAGE_ID=vm\nIMAGE_VERSION=1\n", 0o644)
	spec := machine.Spec{
		Firmware: c.firmware, Variables: c.variables, TPM: machine.NewTPM(t), Drives: []machine.Drive{seedDrive(t, seed)},
	}
	if c.esp == nil {
		spec.Kernel, spec.Initrd = f.kernel.Image(), f.initrd
	} else {
		file := filepath.Join(t.TempDir(), "esp")
		must(t, disk.ESP(file, disk.DiskID, c.esp(t, f)))
		spec.Drives = append(spec.Drives, machine.Drive{File: file, Serial: "esp", ReadOnly: true})
	}
	var boots []reference.Boot
	for _, which := range []string{"first", "second"} {
		spec.Name = c.name + ", " + which + " boot"
		if !t.Run(which, func(t *testing.T) {
			m := machine.Run(t, spec, tests)
			boots = append(boots, judgeLog(t, m, c.pcrs))
		}) {
			return
		}
	}
	sameBoots(t, boots)
}

// judgeLog reads the log of a boot, in which tpm2_eventlog must find the same, and which must have events of these registers. The
// boot that it returns quotes them.
func judgeLog(t *testing.T, m *machine.Machine, want []int) reference.Boot {
	t.Helper()
	raw := m.File(t, measured.LogName)
	log, err := eventlog.Parse(raw)
	must(t, err)
	toolAgrees(t, raw, log)
	var pcrs []int
	for pcr := range eventlog.NumPCRs {
		if len(log.Of(pcr)) > 0 {
			pcrs = append(pcrs, pcr)
		}
	}
	if !slices.Equal(pcrs, want) {
		t.Errorf("the log has events of PCRs %v, want %v", pcrs, want)
	}
	return quoted(log, want)
}

// quoted makes a boot from a log that was found to lead to the TPM's registers.
func quoted(log *eventlog.Log, pcrs []int) reference.Boot {
	boot, all := reference.Boot{Log: log}, log.Replay()
	for _, pcr := range pcrs {
		boot.Quoted = append(boot.Quoted, eventlog.Quoted{PCR: pcr, Value: all[pcr]})
	}
	return boot
}

// sameBoots tests that the registers of all boots are equal, and so are the reference values learned from each alone.
func sameBoots(t *testing.T, boots []reference.Boot) {
	t.Helper()
	first, err := reference.Learn(nil, boots[:1])
	must(t, err)
	for _, b := range boots[1:] {
		if diff := cmp.Diff(boots[0].Quoted, b.Quoted); diff != "" {
			t.Errorf("another boot left other registers:\n%s", diff)
		}
		again, err := reference.Learn(nil, []reference.Boot{b})
		must(t, err)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("other reference values are learned of another boot:\n%s", diff)
		}
	}
}

// toolAgrees has tpm2_eventlog read a log: it finds the same events, and they lead to the same registers.
func toolAgrees(t *testing.T, raw []byte, log *eventlog.Log) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "log")
	must(t, os.WriteFile(file, raw, 0o600))
	out, err := exec.CommandContext(t.Context(), testenv.Program(t, "tpm2_eventlog"), file).Output()
	must(t, err)
	var theirs struct {
		Events []struct {
			PCR     int    `yaml:"PCRIndex"`
			Type    string `yaml:"EventType"`
			Digests []struct {
				Algorithm string `yaml:"AlgorithmId"`
				Digest    string `yaml:"Digest"`
			} `yaml:"Digests"`
		} `yaml:"events"`
		PCRs map[string]map[int]string `yaml:"pcrs"`
	}
	must(t, yaml.Load(out, &theirs))
	var found []eventlog.Event
	for _, e := range theirs.Events {
		for _, d := range e.Digests {
			if e.Type != eventlog.NoAction.String() && d.Algorithm == "sha256" {
				one := eventlog.Event{PCR: e.PCR}
				must(t, one.Digest.UnmarshalText([]byte(d.Digest)))
				found = append(found, one)
			}
		}
	}
	ours := slices.Clone(log.Events)
	for i := range ours {
		ours[i].Type, ours[i].Data = 0, nil
	}
	if diff := cmp.Diff(ours, found); diff != "" || len(found) == 0 {
		t.Errorf("tpm2_eventlog finds other events:\n%s", diff)
	}
	for pcr, value := range log.Replay() {
		if len(log.Of(pcr)) == 0 {
			continue
		}
		text := strings.TrimPrefix(theirs.PCRs["sha256"][pcr], "0x")
		if b, err := hex.DecodeString(text); err != nil || text != value.String() || len(b) != len(value) {
			t.Errorf("PCR %d: its events lead to %v, tpm2_eventlog says %q", pcr, value, text)
		}
	}
}

// program returns the path of one of our programs.
func program(t testing.TB, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("../../bin", name))
	must(t, err)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("%v: run \"make build\"", err)
	}
	return file
}
