package predict

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"portcullis/attest/eventlog"
	"portcullis/attest/peimage"
	"portcullis/attest/reference"
	"portcullis/attest/reference/predict/predicttest"
	"portcullis/attest/secureboot"
	"portcullis/packaging/image/uki"
	"portcullis/packaging/testenv"
)

const stubFile = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"

// stub is systemd's.
func stub(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(stubFile)
	if err != nil {
		testenv.Need(t, errors.Join(err, errors.New("install systemd-boot-efi")))
	}
	return b
}

func parts(t testing.TB) uki.Parts {
	return uki.Parts{
		Stub: stub(t), Kernel: predicttest.Kernel("6.1.0-56-amd64"), Initrd: bytes.Repeat([]byte("initrd"), 777),
		Cmdline: "console=ttyS0 quiet panic=-1", OSRelease: "ID=debian\nIMAGE_ID=provision\n",
	}
}

func build(t testing.TB, p uki.Parts) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := uki.Build(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(t testing.TB, p uki.Parts) *Image {
	t.Helper()
	i, err := Read(build(t, p))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// realLog is the log of a boot of another image under OVMF.
func realLog(t testing.TB, name string) *eventlog.Log {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	l, err := eventlog.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRead(t *testing.T) {
	t.Parallel()
	p := parts(t)
	i := read(t, p)
	if i.Kernel != "6.1.0-56-amd64" || !strings.HasPrefix(i.Stub, "252") || i.Cmdline != p.Cmdline {
		t.Errorf("got kernel %q, stub %q, command line %q", i.Kernel, i.Stub, i.Cmdline)
	}
	kernel, err := peimage.Parse(p.Kernel)
	if err != nil {
		t.Fatal(err)
	}
	if i.KernelDigest != kernel.Digest() {
		t.Error("the kernel's digest is another one inside the image")
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*uki.Parts){
		"no command line":       func(p *uki.Parts) { p.Cmdline = "" },
		"Linux 6.0":             func(p *uki.Parts) { p.Kernel = predicttest.Kernel("6.0.12") },
		"Linux 5.10":            func(p *uki.Parts) { p.Kernel = predicttest.Kernel("5.10.0") },
		"no release":            func(p *uki.Parts) { p.Kernel = predicttest.Kernel("") },
		"release of words":      func(p *uki.Parts) { p.Kernel = predicttest.Kernel("six.one") },
		"no bzImage":            func(p *uki.Parts) { p.Kernel[setupMagicAt] = 0 },
		"release out of bounds": func(p *uki.Parts) { p.Kernel[setupVersionAt+1] = 0xff },
		"kernel is no PE file":  func(p *uki.Parts) { p.Kernel[0x40] = 0 },
		"another stub": func(p *uki.Parts) {
			p.Stub = bytes.ReplaceAll(p.Stub, []byte("systemd-stub 252"), []byte("systemd-stub 299"))
		},
		"a stub of others": func(p *uki.Parts) {
			p.Stub = bytes.ReplaceAll(p.Stub, []byte("systemd-stub 252"), []byte("smthingstub 252"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := parts(t)
			spoil(&p)
			if _, err := Read(build(t, p)); err == nil {
				t.Error("was taken")
			}
		})
	}
	if _, err := Read(stub(t)); err == nil {
		t.Error("a stub without kernel was taken")
	}
	if _, err := Read(nil); err == nil {
		t.Error("nothing was taken")
	}
}

// TestSystemdMeasure holds PCR 11 against systemd's own tool, before and after phases.
func TestSystemdMeasure(t *testing.T) {
	t.Parallel()
	const program = "/usr/lib/systemd/systemd-measure"
	if _, err := os.Stat(program); err != nil {
		testenv.Need(t, fmt.Errorf("%w: install systemd", err))
	}
	p, dir := parts(t), t.TempDir()
	i := read(t, p)
	args := []string{"calculate", "--json=short", "--bank=sha256"}
	for name, content := range map[string][]byte{"linux": p.Kernel, "initrd": p.Initrd, "cmdline": []byte(p.Cmdline), "osrel": []byte(p.OSRelease)} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--"+name+"="+file)
	}
	for _, phases := range [][]string{nil, {"enter-initrd"}, {"enter-initrd", "leave-initrd", "sysinit", "ready"}} {
		out, err := exec.CommandContext(t.Context(), program, append(args, "--phase="+strings.Join(phases, ":"))...).Output()
		if err != nil {
			t.Fatalf("systemd-measure: %v", err)
		}
		var said map[string][]struct {
			PCR  int             `json:"pcr"`
			Hash eventlog.Digest `json:"hash"`
		}
		if err := json.Unmarshal(out, &said); err != nil {
			t.Fatalf("systemd-measure said %s: %v", out, err)
		}
		r := i.stub(phases)
		if got := Value(&r); len(said["sha256"]) != 1 || got != said["sha256"][0].Hash {
			t.Errorf("phases %q: PCR 11 is %v, systemd-measure says %s", phases, got, out)
		}
	}
}

// TestRealLog compares the digests that do not depend on the image with the measurements of a real boot.
func TestRealLog(t *testing.T) {
	t.Parallel()
	i, l := read(t, parts(t)), realLog(t, "uki-plain.log") // its image had this command line and these sections
	linux, sections := i.linux(), i.stub(nil)
	if loaded, err := i.loaded(Platform{}, false); err != nil || len(loaded.Events) != len(l.Of(4)) {
		t.Errorf("PCR 4 has %d events, OVMF measured %d: %v", len(loaded.Events), len(l.Of(4)), err)
	}
	if got, want := linux.Events[0].OneOf[0], l.Of(9)[0].Digest; got != want {
		t.Errorf("command line: %v, want %v", got, want)
	}
	real := l.Of(11)
	if len(sections.Events) != len(real) {
		t.Fatalf("%d events of PCR 11, want %d", len(sections.Events), len(real))
	}
	for n := 0; n < len(real); n += 2 {
		if got, want := sections.Events[n].OneOf[0], real[n].Digest; got != want {
			t.Errorf("%s: %v, want %v", sections.Events[n].Note, got, want)
		}
	}
	if got, want := sections.Events[5].OneOf[0], real[5].Digest; got != want {
		t.Errorf("section .cmdline: %v, want %v", got, want)
	}
}

// bootOf returns the measurements of an image on the machine of a log.
func bootOf(l *eventlog.Log, p uki.Parts, image, kernel eventlog.Digest, authority ...eventlog.Digest) *reference.Boot {
	out := &eventlog.Log{Locality: l.Locality}
	ended := map[int]bool{}
	for _, e := range l.Events {
		if e.PCR > 7 || (e.PCR == 4 || e.PCR == 7) && ended[e.PCR] {
			continue
		}
		ended[e.PCR] = ended[e.PCR] || e.Digest == eventlog.Separator
		out.Events = append(out.Events, e)
	}
	add := func(pcr int, digests ...eventlog.Digest) {
		for _, d := range digests {
			out.Events = append(out.Events, eventlog.Event{PCR: pcr, Digest: d})
		}
	}
	sum := func(s string) eventlog.Digest { return sha256.Sum256([]byte(s)) }
	add(7, authority...)
	add(4, image, kernel)
	wide := ""
	for _, c := range p.Cmdline + "\x00" {
		wide += string([]byte{byte(c), 0})
	}
	add(9, sum(wide), sum(string(p.Initrd)))
	for _, s := range [][2]string{{".linux", string(p.Kernel)}, {".osrel", p.OSRelease}, {".cmdline", p.Cmdline}, {".initrd", string(p.Initrd)}} {
		add(11, sum(s[0]+"\x00"), sum(s[1]))
	}
	b := &reference.Boot{Log: out}
	values := out.Replay()
	for pcr := range 15 {
		if pcr != 10 {
			b.Quoted = append(b.Quoted, eventlog.Quoted{PCR: pcr, Value: values[pcr]})
		}
	}
	return b
}

var now = time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)

// judge has the registers judge a boot.
func judge(t *testing.T, registers []reference.Register, b *reference.Boot) error {
	t.Helper()
	set := reference.Set{Class: "default", Version: 1, State: reference.Approved, Registers: registers}
	if err := set.Check(); err != nil {
		t.Fatalf("the prediction is no set: %v", err)
	}
	_, err := reference.Judge([]reference.Set{set}, "default", now, b)
	return err
}

// TestPredictionIsMet predicts from the log of another image's boot, and from a set that
// was learned from it; boots of the image meet the prediction, others do not.
func TestPredictionIsMet(t *testing.T) {
	t.Parallel()
	p := parts(t)
	i, l := read(t, p), realLog(t, "uki-plain.log")
	fromLogs, err := FromLogs(l, l)
	if err != nil {
		t.Fatal(err)
	}
	learned, err := reference.Learn(nil, []reference.Boot{*bootOf(l, p, eventlog.Digest{1}, eventlog.Digest{2})})
	if err != nil {
		t.Fatal(err)
	}
	for name, platform := range map[string]Platform{"log": fromLogs, "set": {Registers: learned}} {
		registers, err := i.Registers(platform, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := judge(t, registers, bootOf(l, p, i.Digest, i.KernelDigest)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		other := p
		other.Cmdline += " init=/bin/sh"
		for what, boot := range map[string]*reference.Boot{
			"another image":          bootOf(l, p, eventlog.Digest{3}, i.KernelDigest),
			"another kernel":         bootOf(l, p, i.Digest, eventlog.Digest{3}),
			"another command line":   bootOf(l, other, i.Digest, i.KernelDigest),
			"a key that allowed it":  bootOf(l, p, i.Digest, i.KernelDigest, eventlog.Digest{4}),
			"another kind of keys":   bootOf(realLog(t, "uki-secure.log"), p, i.Digest, i.KernelDigest),
			"the boot that was seen": {Log: l, Quoted: bootOf(l, p, i.Digest, i.KernelDigest).Quoted},
		} {
			if err := judge(t, registers, boot); err == nil {
				t.Errorf("%s: %s was accepted", name, what)
			}
		}
	}
}

// TestPhases holds PCR 11 by its value where the system measures phases.
func TestPhases(t *testing.T) {
	t.Parallel()
	p := parts(t)
	i, l := read(t, p), realLog(t, "uki-plain.log")
	platform, err := FromLogs(l)
	if err != nil {
		t.Fatal(err)
	}
	registers, err := i.Registers(platform, []string{"enter-initrd"})
	if err != nil {
		t.Fatal(err)
	}
	b := bootOf(l, p, i.Digest, i.KernelDigest)
	if err := judge(t, registers, b); err == nil {
		t.Error("a boot without phases was accepted")
	}
	at := len(b.Quoted) - 4
	b.Quoted[at].Value = b.Quoted[at].Value.Extend(sha256.Sum256([]byte("enter-initrd")))
	if err := judge(t, registers, b); err != nil {
		t.Error(err)
	}
}

// TestSecureBootKeys predicts on a machine with Secure Boot.
func TestSecureBootKeys(t *testing.T) {
	t.Parallel()
	p := parts(t)
	i, l := read(t, p), realLog(t, "uki-secure.log")
	platform, err := FromLogs(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Registers(platform, nil); err == nil || !strings.Contains(err.Error(), "not signed") {
		t.Errorf("an unsigned image: got %v, want that it is not signed", err)
	}
	if _, err := i.Registers(Platform{Registers: platform.Registers}, nil); err == nil || !strings.Contains(err.Error(), "db, which decides") {
		t.Errorf("without db: got %v, want that it is not known", err)
	}
	// db gets the image's digest, which allows it as a signature would.
	kind := []byte{0x26, 0x16, 0xc4, 0xc1, 0x4c, 0x50, 0x92, 0x40, 0xac, 0xa9, 0x41, 0xf9, 0x36, 0x93, 0x43, 0x28}
	list := append(append(kind, 76, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0), make([]byte, 16)...)
	v := *platform.Variables
	v.DB = append(list, i.Digest[:]...)
	platform.Variables = &v
	registers, err := i.Registers(platform, nil)
	if err != nil {
		t.Fatal(err)
	}
	// OVMF measured no kernel of an image that it started with Secure Boot.
	if got, want := len(registers[4].Events), len(l.Of(4)); got != want {
		t.Errorf("PCR 4 has %d events, OVMF measured %d", got, want)
	}
	keys := registers[7]
	var notes []string
	for _, e := range keys.Events {
		notes = append(notes, e.Note)
	}
	want := []string{
		"EV_EFI_VARIABLE_DRIVER_CONFIG SecureBoot", "EV_EFI_VARIABLE_DRIVER_CONFIG PK", "EV_EFI_VARIABLE_DRIVER_CONFIG KEK",
		"EV_EFI_VARIABLE_DRIVER_CONFIG db", "EV_EFI_VARIABLE_DRIVER_CONFIG dbx", "EV_SEPARATOR", "entry of db that allows the image",
	}
	if d := cmp.Diff(notes, want); d != "" {
		t.Errorf("PCR 7 (-got +want):\n%s", d)
	}
	// A driver that the same entry allowed before has it measured already.
	platform.Registers[7].Events = append([]reference.Position{}, keys.Events[:6]...)
	platform.Registers[7].Events = append(platform.Registers[7].Events[:5:5], keys.Events[6], keys.Events[5])
	again, err := i.Registers(platform, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(again[7].Events); n != 7 {
		t.Errorf("an entry that was measured is measured again: %d events, want 7", n)
	}
}

// TestNoPlatform predicts what depends on image and keys alone.
func TestNoPlatform(t *testing.T) {
	t.Parallel()
	i := read(t, parts(t))
	for _, tt := range []struct {
		name string
		p    Platform
		want []int
	}{
		{"nothing", Platform{}, []int{4, 8, 9, 11, 12, 13, 14}},
		{"variables", Platform{Variables: &secureboot.Variables{}}, []int{4, 7, 8, 9, 11, 12, 13, 14}},
	} {
		registers, err := i.Registers(tt.p, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, r := range registers {
			got = append(got, r.PCR)
		}
		if d := cmp.Diff(got, tt.want); d != "" {
			t.Errorf("%s: registers (-got +want):\n%s", tt.name, d)
		}
		// The measurements of OVMF before a boot option are those that UEFI prescribes.
		l := realLog(t, "uki-plain.log")
		b := bootOf(l, parts(t), i.Digest, i.KernelDigest)
		for k := range registers {
			r := &registers[k]
			got, want := Value(r), b.Log.Replay()[r.PCR]
			if r.PCR == 4 && tt.name == "nothing" { // without Secure Boot; with it the first
				if len(r.Values) != 2 || r.Values[1] != want {
					t.Errorf("PCR 4 is one of %v, want %v behind another", r.Values, want)
				}
				continue
			}
			if got != want {
				t.Errorf("%s: PCR %d is %v, want %v", tt.name, r.PCR, got, want)
			}
		}
	}
}

func TestPlatformRefused(t *testing.T) {
	t.Parallel()
	i, l := read(t, parts(t)), realLog(t, "uki-plain.log")
	good := func() Platform {
		p, err := FromLogs(l)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, spoil := range map[string]func(*Platform){
		"no PCR 4":          func(p *Platform) { p.Registers = p.Registers[:4] },
		"PCR 4 by value":    func(p *Platform) { p.Registers[4].Events = nil },
		"PCR 7 by value":    func(p *Platform) { p.Registers[7].Events = nil },
		"few variables":     func(p *Platform) { p.Registers[7].Events = p.Registers[7].Events[3:] },
		"SecureBoot absent": func(p *Platform) { p.Variables = nil; p.Registers[7].Events = p.Registers[7].Events[1:] },
	} {
		p := good()
		spoil(&p)
		if _, err := i.Registers(p, nil); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	// A log without the variables' data still describes the platform.
	silent := *l
	silent.Events = append([]eventlog.Event{}, l.Events...)
	for i := range silent.Events {
		silent.Events[i].Data = nil
	}
	if p, err := FromLogs(l, &silent); err != nil || p.Variables != nil || len(p.Registers) != 8 {
		t.Errorf("logs of which one does not show the variables: %d registers, variables %v, %v", len(p.Registers), p.Variables, err)
	}
	if _, err := FromLogs(); err == nil {
		t.Error("no log was taken")
	}
	if _, err := FromLogs(l, realLog(t, "uki-secure.log")); err == nil {
		t.Error("logs with other keys were taken")
	}
	if _, err := FromLogs(&eventlog.Log{}); err == nil {
		t.Error("an empty log was taken")
	}
}

// TestValue checks that Value returns the zero digest for a register that has not exactly one value.
func TestValue(t *testing.T) {
	t.Parallel()
	for _, r := range []reference.Register{
		{PCR: 1, Events: []reference.Position{{Ignore: true}}},
		{PCR: 4, Events: []reference.Position{{OneOf: []eventlog.Digest{{1}, {2}}}}},
	} {
		if got := Value(&r); got != (eventlog.Digest{}) {
			t.Errorf("%+v has the value %v", r, got)
		}
	}
	one := reference.Register{PCR: 11, Values: []eventlog.Digest{{5}}}
	if d := cmp.Diff(Value(&one), eventlog.Digest{5}, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

// FuzzRead has Read take anything.
func FuzzRead(f *testing.F) {
	f.Add(predicttest.Kernel("6.1.0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if i, err := Read(b); err == nil && (i.Cmdline == "" || i.Kernel == "") {
			t.Error("an image without command line or kernel was taken")
		}
	})
}
