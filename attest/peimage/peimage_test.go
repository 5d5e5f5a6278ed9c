package peimage

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"portcullis/packaging/testenv"
)

// small is an image of two sections, as the format wants it.
func small() []byte {
	const optional = 240
	b := make([]byte, 0x600)
	copy(b, "MZ")
	le.PutUint32(b[dosPointer:], 0x40)
	copy(b[0x40:], "PE\x00\x00")
	le.PutUint16(b[0x44:], 0x8664)
	le.PutUint16(b[0x40+sectionsAt:], 2)
	le.PutUint16(b[0x40+optionalSizeAt:], optional)
	o := b[0x40+coffSize:]
	le.PutUint16(o, magic32Plus)
	le.PutUint32(o[sizeOfHeaderAt:], 0x200)
	le.PutUint32(o[directoriesAt:], 16)
	for i, name := range []string{".text", ".data"} {
		h := o[optional+i*sectionSize:]
		copy(h, name)
		le.PutUint32(h[8:], 0x180)
		le.PutUint32(h[12:], uint32(0x1000*(i+1)))
		le.PutUint32(h[16:], 0x200)
		le.PutUint32(h[20:], uint32(0x200*(i+1)))
		copy(b[0x200*(i+1):], name+" content")
	}
	return b
}

// header returns the header of a section of small.
func header(b []byte, i int) []byte { return b[0x40+coffSize+240+i*sectionSize:] }

// signed adds a table of signatures.
func signed(b []byte, table []byte) []byte {
	at := 0x40 + coffSize + securityAt
	le.PutUint32(b[at:], uint32(len(b)))
	le.PutUint32(b[at+4:], uint32(len(table)))
	return append(b, table...)
}

func cert(size, revision, kind int, content string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(size))
	b = le.AppendUint16(le.AppendUint16(b, uint16(revision)), uint16(kind))
	b = append(b, content...)
	return append(b, make([]byte, (8-len(b)%8)%8)...)
}

func TestParse(t *testing.T) {
	t.Parallel()
	m, err := Parse(signed(small(), append(cert(13, certV2, certPKCS7, "first"), cert(16, certV2, certPKCS7, "second!!")...)))
	if err != nil {
		t.Fatal(err)
	}
	if data, ok := m.Section(".data"); !ok || len(data) != 0x180 || !bytes.HasPrefix(data, []byte(".data content")) {
		t.Errorf("section .data: %d bytes, %q", len(data), data)
	}
	if _, ok := m.Section(".bss"); ok {
		t.Error("has a section .bss")
	}
	if len(m.Signatures) != 2 || string(m.Signatures[0]) != "first" || string(m.Signatures[1]) != "second!!" {
		t.Errorf("signatures %q", m.Signatures)
	}
	plain, err := Parse(small())
	if err != nil {
		t.Fatal(err)
	}
	if m.Digest() != plain.Digest() {
		t.Error("a signature changes the digest")
	}
	other := small()
	other[0x210] ^= 1
	if m, err := Parse(other); err != nil || m.Digest() == plain.Digest() {
		t.Errorf("another section has the same digest: %v", err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, b := range map[string][]byte{
		"empty":       nil,
		"no MZ":       spoil(func(b []byte) { b[0] = 'X' }),
		"PE far off":  spoil(func(b []byte) { le.PutUint32(b[dosPointer:], 0xffff_fff0) }),
		"PE in DOS":   spoil(func(b []byte) { le.PutUint32(b[dosPointer:], 2) }),
		"no PE":       spoil(func(b []byte) { b[0x40] = 'N' }),
		"32 bits":     spoil(func(b []byte) { b[0x40+coffSize] = 0x0b; b[0x40+coffSize+1] = 1 }),
		"no sections": spoil(func(b []byte) { b[0x40+sectionsAt] = 0 }),
		"many sections": spoil(func(b []byte) {
			b[0x40+sectionsAt] = maxSections + 1
			le.PutUint32(b[0x40+coffSize+sizeOfHeaderAt:], 0x600)
		}),
		"table outside headers": spoil(func(b []byte) { le.PutUint32(b[0x40+coffSize+sizeOfHeaderAt:], 0x100) }),
		"headers outside":       spoil(func(b []byte) { le.PutUint32(b[0x40+coffSize+sizeOfHeaderAt:], 0x10000) }),
		"section outside":       spoil(func(b []byte) { le.PutUint32(header(b, 1)[16:], 0x400) }),
		"section in headers":    spoil(func(b []byte) { le.PutUint32(header(b, 0)[20:], 0x100) }),
		"sections overlap":      spoil(func(b []byte) { le.PutUint32(header(b, 1)[20:], 0x300); le.PutUint32(header(b, 1)[16:], 0x300) }),
		"gap":                   spoil(func(b []byte) { le.PutUint32(header(b, 1)[20:], 0x410); le.PutUint32(header(b, 1)[16:], 0x1f0) }),
		"overlap in memory":     spoil(func(b []byte) { le.PutUint32(header(b, 1)[12:], 0x1100) }),
		"name twice":            spoil(func(b []byte) { copy(header(b, 1), ".text") }),
		"zero in a name":        spoil(func(b []byte) { header(b, 1)[1] = 0 }),
		"signatures before end": append(signed(small(), cert(16, certV2, certPKCS7, "12345678")), 0),
		"signature too long":    signed(small(), cert(32, certV2, certPKCS7, "12345678")),
		"signature of 7 bytes":  signed(small(), cert(7, certV2, certPKCS7, "12345678")),
		"signature cut short":   signed(small(), make([]byte, 4)),
		"revision 1":            signed(small(), cert(16, 0x100, certPKCS7, "12345678")),
		"X.509 signature":       signed(small(), cert(16, certV2, 1, "12345678")),
		"many signatures":       signed(small(), bytes.Repeat(cert(16, certV2, certPKCS7, "12345678"), maxCerts+1)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Parse(b); err == nil {
				t.Error("was taken")
			}
		})
	}
	for n := range small() {
		if _, err := Parse(small()[:n]); err == nil {
			t.Fatalf("a prefix of %d bytes was taken", n)
		}
	}
}

func spoil(change func([]byte)) []byte {
	b := small()
	change(b)
	return b
}

// TestOthers holds digests and sections of boot loaders that are signed and not
// against those of pesign and debug/pe.
func TestOthers(t *testing.T) {
	t.Parallel()
	pesign, sbsign, openssl := testenv.Program(t, "pesign"), testenv.Program(t, "sbsign"), testenv.Program(t, "openssl")
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "cert", "-subj", "/CN=signer")
	files, err := filepath.Glob("/usr/lib/systemd/boot/efi/*.efi*")
	if err != nil || len(files) < 2 {
		t.Fatalf("boot loaders %v: %v: install systemd-boot-efi", files, err)
	}
	for _, file := range files {
		out := filepath.Join(dir, filepath.Base(file))
		run(sbsign, "--key", "key", "--cert", "cert", "--output", out, file)
		for _, name := range []string{file, out} {
			compare(t, name, run(pesign, "-h", "-i", name))
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := Parse(b); err != nil || len(m.Signatures) != 1 {
			t.Errorf("%s, signed: %v", file, err)
		}
	}
}

// compare compares an image with pesign's output about its digest, and with debug/pe's about its sections.
func compare(t *testing.T, name, said string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(b)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	digest := m.Digest()
	want := regexp.MustCompile(`[0-9a-f]{64}`).FindString(said)
	if got := hex.EncodeToString(digest[:]); got != want {
		t.Errorf("%s: digest %s, pesign says %s", name, got, want)
	}
	sameSections(t, b, m)
}

func sameSections(t *testing.T, b []byte, m *Image) {
	t.Helper()
	other, err := pe.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("debug/pe: %v", err)
	}
	if len(other.Sections) != len(m.Sections) {
		t.Fatalf("%d sections, debug/pe has %d", len(m.Sections), len(other.Sections))
	}
	for i, s := range m.Sections {
		o := other.Sections[i]
		data, err := o.Data()
		if err != nil {
			t.Fatalf("debug/pe: %s: %v", o.Name, err)
		}
		if o.VirtualAddress != s.Address || o.VirtualSize != s.Size || !bytes.HasPrefix(data, s.Data) {
			t.Errorf("section %s is not as debug/pe has it", s.Name)
		}
	}
}

// FuzzParse checks that no input makes Parse panic, and that no section has more data than its size.
func FuzzParse(f *testing.F) {
	f.Add(small())
	f.Add(signed(small(), cert(16, certV2, certPKCS7, "12345678")))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		m.Digest()
		for _, s := range m.Sections {
			if len(s.Data) > int(s.Size) {
				t.Errorf("section %q has more data than its size", s.Name)
			}
		}
	})
}
