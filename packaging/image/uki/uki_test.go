package uki

import (
	"bytes"
	"debug/pe"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/packaging/testenv"
)

const stubFile = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"

// example is the parts of an image that no firmware would get far with.
func example(t *testing.T) Parts {
	t.Helper()
	stub, err := os.ReadFile(stubFile)
	if err != nil {
		testenv.Need(t, fmt.Errorf("%w: install systemd-boot-efi", err))
	}
	return Parts{
		Stub: stub, Kernel: append([]byte("MZ"), bytes.Repeat([]byte("kernel"), 5000)...), Initrd: bytes.Repeat([]byte("initrd"), 3001),
		Cmdline: "console=ttyS0 quiet", OSRelease: "ID=debian\nIMAGE_ID=provision\n",
	}
}

func build(t *testing.T, p Parts) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Build(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (p *Parts) sections() map[string][]byte {
	return map[string][]byte{
		".linux": p.Kernel, ".initrd": p.Initrd, ".cmdline": []byte(p.Cmdline), ".osrel": []byte(p.OSRelease),
	}
}

// TestReadByGo reads the sections back and holds the stub's against the stub.
func TestReadByGo(t *testing.T) {
	t.Parallel()
	parts := example(t)
	image, err := pe.NewFile(bytes.NewReader(build(t, parts)))
	if err != nil {
		t.Fatal(err)
	}
	stub, err := pe.NewFile(bytes.NewReader(parts.Stub))
	if err != nil {
		t.Fatal(err)
	}
	want := parts.sections()
	for _, s := range stub.Sections {
		if want[s.Name], err = s.Data(); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string][]byte{}
	end := uint32(0)
	for _, s := range image.Sections {
		data, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		if _, added := parts.sections()[s.Name]; added {
			data = data[:s.VirtualSize]
		}
		got[s.Name] = data
		if s.VirtualAddress < end {
			t.Errorf("%s starts at %#x in memory, before the end of another at %#x", s.Name, s.VirtualAddress, end)
		}
		end = s.VirtualAddress + s.VirtualSize
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("sections (-got +want):\n%s", d)
	}
	if size := image.OptionalHeader.(*pe.OptionalHeader64).SizeOfImage; size < end {
		t.Errorf("SizeOfImage is %#x, the last section ends at %#x", size, end)
	}
}

// TestReadByObjcopy has binutils take the sections out again.
func TestReadByObjcopy(t *testing.T) {
	t.Parallel()
	objcopy := testenv.Program(t, "objcopy")
	parts, dir := example(t), t.TempDir()
	image := filepath.Join(dir, "image.efi")
	if err := os.WriteFile(image, build(t, parts), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range parts.sections() {
		file := filepath.Join(dir, name)
		if out, err := exec.CommandContext(t.Context(), objcopy, "-O", "binary", "--dump-section", name+"="+file, image, filepath.Join(dir, "copy")).CombinedOutput(); err != nil {
			t.Fatalf("objcopy --dump-section %s: %v\n%s", name, err, out)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.TrimRight(got, "\x00"), bytes.TrimRight(want, "\x00")) {
			t.Errorf("objcopy reads another %s, of %d bytes, want %d", name, len(got), len(want))
		}
	}
}

// TestSignable has sbsign sign an image and sbverify verify it, in whose
// eyes it must be a PE file without a flaw.
func TestSignable(t *testing.T) {
	t.Parallel()
	sbsign, sbverify, openssl := testenv.Program(t, "sbsign"), testenv.Program(t, "sbverify"), testenv.Program(t, "openssl")
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || regexp.MustCompile(`(?i)warning|gap`).Match(out) {
			t.Fatalf("%s %v: %v\n%s", filepath.Base(name), args, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "image.efi"), build(t, example(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "cert", "-subj", "/CN=signer")
	run(sbsign, "--key", "key", "--cert", "cert", "--output", "signed.efi", "image.efi")
	run(sbverify, "--cert", "cert", "signed.efi")
}

func TestSameParts(t *testing.T) {
	t.Parallel()
	parts := example(t)
	first := build(t, parts)
	if !bytes.Equal(first, build(t, parts)) {
		t.Error("two images of the same parts differ")
	}
	parts.Cmdline += " debug"
	if bytes.Equal(first, build(t, parts)) {
		t.Error("images of different command lines are the same")
	}
	parts.Cmdline = ""
	image, err := pe.NewFile(bytes.NewReader(build(t, parts)))
	if err != nil {
		t.Fatal(err)
	}
	if image.Section(".cmdline") != nil {
		t.Error("an image without command line has a section for it")
	}
}

// TestHeadersGrow fills the room behind the section table, so that the data of
// the stub's own sections must move.
func TestHeadersGrow(t *testing.T) {
	t.Parallel()
	parts := example(t)
	p, err := readStub(parts.Stub)
	if err != nil {
		t.Fatal(err)
	}
	var added []section
	for i := range 30 {
		added = append(added, section{fmt.Sprintf(".s%d", i), []byte{byte(i)}})
	}
	var out bytes.Buffer
	if err := p.write(&out, added); err != nil {
		t.Fatal(err)
	}
	image, err := pe.NewFile(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	stub, err := pe.NewFile(bytes.NewReader(parts.Stub))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stub.Sections {
		got, err := image.Section(s.Name).Data()
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s moved wrong: its %d bytes are others", s.Name, len(got))
		}
	}
	for i := range added {
		if got, err := image.Section(added[i].name).Data(); err != nil || got[0] != byte(i) {
			t.Errorf("%s: got %x, %v", added[i].name, got[0], err)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Parts){
		"no stub":                 func(p *Parts) { p.Stub = nil },
		"stub cut short":          func(p *Parts) { p.Stub = p.Stub[:len(p.Stub)/2] },
		"stub without PE header":  func(p *Parts) { p.Stub[peOffsetAt] ^= 1 },
		"stub of 32 bits":         func(p *Parts) { p.Stub[optional(p)] = 0x0b; p.Stub[optional(p)+1] = 0x01 },
		"signed stub":             func(p *Parts) { p.Stub[optional(p)+securityAt] = 1 },
		"stub without sections":   func(p *Parts) { p.Stub[optional(p)-coffSize+numSectionsAt] = 0 },
		"sections out of headers": func(p *Parts) { p.Stub[optional(p)-coffSize+numSectionsAt] = 64 },
		"odd file alignment":      func(p *Parts) { p.Stub[optional(p)+fileAlignmentAt] = 1 },
		"large section alignment": func(p *Parts) { p.Stub[optional(p)+sectionAlignmentAt+2] = 1 },
		"no kernel":               func(p *Parts) { p.Kernel = nil },
		"no initrd":               func(p *Parts) { p.Initrd = nil },
		"no os-release":           func(p *Parts) { p.OSRelease = "" },
		"kernel is no PE file":    func(p *Parts) { p.Kernel = []byte("\x7fELF") },
		"command line of two":     func(p *Parts) { p.Cmdline = "a\nb" },
		"command line not ASCII":  func(p *Parts) { p.Cmdline = "é" },
		"command line too long":   func(p *Parts) { p.Cmdline = strings.Repeat("a", 2049) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := example(t)
			spoil(&p)
			if err := Build(io.Discard, p); err == nil {
				t.Error("no error")
			}
		})
	}
}

// optional returns the offset of the stub's optional header.
func optional(p *Parts) int { return int(le.Uint32(p.Stub[peOffsetAt:])) + coffSize }

// full is a disk without room.
type full struct{}

var errFull = errors.New("no space left")

// Write implements io.Writer.
func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteError(t *testing.T) {
	t.Parallel()
	if err := Build(full{}, example(t)); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

// FuzzStub has readStub and Build take anything as a stub.
func FuzzStub(f *testing.F) {
	if stub, err := os.ReadFile(stubFile); err == nil {
		f.Add(stub[:0x400])
		f.Add(stub)
	}
	f.Add([]byte("MZ"))
	f.Fuzz(func(t *testing.T, stub []byte) {
		if err := Build(io.Discard, Parts{Stub: stub, Kernel: []byte("MZ"), Initrd: []byte("i"), OSRelease: "ID=x"}); err == nil && len(stub) < coffSize {
			t.Error("a stub without headers was taken")
		}
	})
}
