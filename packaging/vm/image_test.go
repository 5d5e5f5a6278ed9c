//go:build vm

package vm

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
	"portcullis/attest/reference/predict"
	"portcullis/attest/secureboot"
	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/inside/measured"
	"portcullis/packaging/vm/machine"
)

// imageSite is the folder of a site, of which the provisioning image is built.
type imageSite struct{ dir string }

func newImageSite(t *testing.T, settings string) imageSite {
	t.Helper()
	s := imageSite{t.TempDir()}
	s.file(t, "agent.yaml", "service: https://10.0.2.2:9\ntimeout: 1m\n", 0o644)
	s.file(t, "image.yaml", "consoles: [ttyS0]\ncmdline: loglevel=5 panic=-1\n"+settings, 0o644)
	command(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", filepath.Join(t.TempDir(), "key"),
		"-out", filepath.Join(s.dir, "ca.pem"), "-subj", "/CN=ca")
	return s
}

func (s imageSite) file(t *testing.T, name, content string, perm os.FileMode) {
	t.Helper()
	to := filepath.Join(s.dir, name)
	must(t, os.MkdirAll(filepath.Dir(to), 0o755))
	must(t, os.WriteFile(to, []byte(content), perm))
}

// suite has the image run tests, by a unit among the site's own files. how is disk.RunSuite or disk.RunSuiteAndStay.
func (s imageSite) suite(t *testing.T, tests suite, how, expression string) []string {
	t.Helper()
	program, err := os.ReadFile(tests.file)
	must(t, err)
	s.file(t, "root/"+disk.SuiteFile, string(program), 0o755)
	initFile, err := initProgram()
	must(t, err)
	program, err = os.ReadFile(initFile)
	must(t, err)
	s.file(t, "root/"+disk.InitFile, string(program), 0o755)
	s.file(t, "root/"+disk.ArgumentsFile, "-test.v\n-test.timeout=3m\n-test.run="+expression+"\n", 0o644)
	s.file(t, "root/usr/lib/systemd/system/suite.service",
		"[Unit]\nAfter=network-online.target systemd-udev-trigger.service\n[Service]\nType=oneshot\nExecStart=/"+disk.InitFile+" "+how+"\n", 0o644)
	s.wanted(t, "suite.service")
	return machine.Matching(tests.tests, expression)
}

func (s imageSite) wanted(t *testing.T, unit string) {
	t.Helper()
	dir := filepath.Join(s.dir, "root/usr/lib/systemd/system/multi-user.target.wants")
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.Symlink("../"+unit, filepath.Join(dir, unit)))
}

// build builds the image as "make image" does, but compresses less.
func (s imageSite) build(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "portcullis.efi")
	agents, err := filepath.Glob("../../dist/portcullis-agent_*_amd64.deb")
	must(t, err)
	if len(agents) != 1 {
		t.Fatalf("packages %v in dist, want one of portcullis-agent: run \"make package\"", agents)
	}
	command(t, "go", "run", "../image", "-site", s.dir, "-agent", agents[0], "-version", "vm", "-level", "3", "-out", out)
	return out
}

// imageSpec is a machine that boots an EFI program.
func imageSpec(t *testing.T, name, efi string, firmware machine.Firmware) machine.Spec {
	t.Helper()
	esp := filepath.Join(t.TempDir(), "esp")
	must(t, disk.ESP(esp, disk.DiskID, map[string]string{firstProgram: efi}))
	return machine.Spec{
		Name: name, Firmware: firmware, TPM: machine.NewTPM(t), Network: "restrict=off", BootLimit: 3 * time.Minute,
		Drives:    []machine.Drive{{File: esp, Serial: "esp", ReadOnly: true}},
		Arguments: []string{"-smbios", "type=1,serial=serial-1", "-smbios", "type=11,value=io.systemd.credential:portcullis.host=vm-1"},
	}
}

// TestImage builds the provisioning image, predicts what it leaves in the TPM, and boots it.
func TestImage(t *testing.T) {
	lab(t, 110)
	tests := newSuite(t, "./inside/image")
	t.Run("Plain", func(t *testing.T) {
		s := newImageSite(t, "")
		names := s.suite(t, tests, disk.RunSuite, "^Test(Log|SecureBootOff|Network|Machine|Devices|NoShell|Doctor)$")
		efi := s.build(t)
		m := machine.Run(t, imageSpec(t, "image", efi, machine.UEFI), names)
		checkRegisters(t, efi, predict.Platform{Variables: &secureboot.Variables{}}, registersOf(t, m))
		judgeLog(t, m, hostPCRs)
		if !strings.Contains(m.Console(), "no InfiniBand adapter") {
			t.Error("the console does not say why the agent fails")
		}
	})
	t.Run("SecureBoot", func(t *testing.T) { secureBootImage(t, tests) })
}

// secureBootImage signs the image, and predicts from the log of another image's boot and from the file with the firmware's variables.
// The image hands over.
func secureBootImage(t *testing.T, tests suite) {
	signed := func(efi string) string {
		to := filepath.Join(t.TempDir(), "signed.efi")
		must(t, disk.Sign(to, efi))
		return to
	}
	// The platform is known from a boot of a lab's image.
	boots := newSuite(t, "./inside/boots")
	seed, names := boots.seed(t, "^Test(Log|SecureBootOn)$")
	other := filepath.Join(t.TempDir(), "other.efi")
	must(t, disk.UKI(other, debian(t), initramfs(t), machine.Cmdline, "1"))
	spec := imageSpec(t, "other image", signed(other), machine.SecureBoot)
	spec.Drives = append(spec.Drives, seedDrive(t, seed))
	known, err := eventlog.Parse(machine.Run(t, spec, names).File(t, measured.LogName))
	must(t, err)

	s := newImageSite(t, "on_success: poweroff\n")
	names = s.suite(t, tests, disk.RunSuiteAndStay, "^Test(Log|SecureBootOn)$")
	s.handOver(t)
	efi := signed(s.build(t))
	spec = imageSpec(t, "signed image", efi, machine.SecureBoot)
	spec.Drives = append(spec.Drives, seedDrive(t, seed)) // the same machine
	m := machine.Run(t, spec, names)
	handedOver(t, m)
	held := registersOf(t, m)
	checkRegisters(t, efi, predict.Platform{Variables: variablesOf(t, machine.VariablesSnakeoil)}, held)

	platform, err := predict.FromLogs(known)
	must(t, err)
	registers := checkRegisters(t, efi, platform, nil)
	// The disk has another partition table: a site ignores it with --ignore.
	at := slices.IndexFunc(registers[5].Events, func(p reference.Position) bool { return strings.Contains(p.Note, "GPT") })
	must(t, reference.Ignore(registers, 5, at+1))
	set := reference.Set{Class: reference.DefaultClass, Version: 1, State: reference.Approved, Registers: registers}
	must(t, set.Check())
	log, err := eventlog.Parse(m.File(t, measured.LogName))
	must(t, err)
	boot := reference.Boot{Log: log}
	for _, r := range registers {
		boot.Quoted = append(boot.Quoted, eventlog.Quoted{PCR: r.PCR, Value: held[r.PCR]})
	}
	if _, err := reference.Judge([]reference.Set{set}, reference.DefaultClass, time.Now(), &boot); err != nil {
		t.Errorf("the predicted set refuses the boot: %v", err)
	}
	boot.Log, boot.Quoted = known, quoted(known, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14}).Quoted
	if _, err := reference.Judge([]reference.Set{set}, reference.DefaultClass, time.Now(), &boot); err == nil {
		t.Error("the predicted set takes the boot of another image")
	}
}

// registersOf returns the registers that a machine handed out.
func registersOf(t *testing.T, m *machine.Machine) []eventlog.Digest {
	t.Helper()
	var all []eventlog.Digest
	must(t, json.Unmarshal(m.File(t, "registers"), &all))
	if len(all) != eventlog.NumPCRs {
		t.Fatalf("%d registers, want %d", len(all), eventlog.NumPCRs)
	}
	return all
}

// checkRegisters predicts the registers of an image, and compares them with those of a TPM.
func checkRegisters(t *testing.T, efi string, p predict.Platform, held []eventlog.Digest) []reference.Register {
	t.Helper()
	b, err := os.ReadFile(efi)
	must(t, err)
	image, err := predict.Read(b)
	must(t, err)
	registers, err := image.Registers(p, nil)
	must(t, err)
	for i := range registers {
		r := &registers[i]
		if held == nil {
			continue
		}
		if got := predict.Value(r); got != held[r.PCR] {
			t.Errorf("PCR %d: predicted %v, the TPM holds %v", r.PCR, got, held[r.PCR])
		} else {
			t.Logf("PCR %d: predicted %v, as the TPM holds", r.PCR, got)
		}
	}
	return registers
}

// variablesOf reads Secure Boot's variables out of a file of OVMF's variable store.
func variablesOf(t *testing.T, file string) *secureboot.Variables {
	t.Helper()
	store, err := os.ReadFile(file)
	must(t, err)
	v := &secureboot.Variables{Enabled: true}
	for name, to := range map[string]*[]byte{"PK": &v.PK, "KEK": &v.KEK, "db": &v.DB, "dbx": &v.DBX} {
		*to = variable(store, name)
	}
	if len(v.DB) == 0 {
		t.Fatalf("%s: no variable db", file)
	}
	return v
}

// variable finds a variable in a store: AUTHENTICATED_VARIABLE_HEADER of EDK II, then name and data.
func variable(store []byte, name string) []byte {
	const header, nameSizeAt, dataSizeAt, valid = 60, 36, 40, 0x3f
	var wide []byte
	for _, u := range utf16.Encode([]rune(name + "\x00")) {
		wide = binary.LittleEndian.AppendUint16(wide, u)
	}
	for at := 0; at+header < len(store); at++ {
		h := store[at:]
		if h[0] != 0xaa || h[1] != 0x55 || h[2] != valid || !bytes.HasPrefix(h[header:], wide) ||
			binary.LittleEndian.Uint32(h[nameSizeAt:]) != uint32(len(wide)) {
			continue
		}
		data := h[header+len(wide):]
		return data[:min(len(data), int(binary.LittleEndian.Uint32(h[dataSizeAt:])))]
	}
	return nil
}

// handOver has a test stand for the agent. It fails at its first start, which is after the suite ended.
func (s imageSite) handOver(t *testing.T) {
	t.Helper()
	s.file(t, "root/usr/lib/systemd/system/portcullis-agent.service.d/90-test.conf",
		"[Unit]\nAfter=suite.service\n[Service]\nType=oneshot\nNotifyAccess=none\nUser=root\nRestartSec=1s\nProtectSystem=no\nExecStart=\n"+
			"ExecStart=/"+disk.SuiteFile+" -test.v -test.run=^TestSecondStart$\n", 0o644)
}

// handedOver: the machine powers off by itself once the agent succeeds, also where that is not its first start.
func handedOver(t *testing.T, m *machine.Machine) {
	t.Helper()
	for _, line := range []string{"--- FAIL: TestSecondStart", "--- PASS: TestSecondStart", "Finished portcullis-handover.service"} {
		if !strings.Contains(m.Console(), line) {
			t.Errorf("the console does not have %q:\n%s", line, m.Console())
		}
	}
}
