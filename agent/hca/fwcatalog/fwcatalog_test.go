package fwcatalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/agent/hca"
	"portcullis/agent/hca/fwcatalog"
	"portcullis/firmware/image"
	"portcullis/firmware/imagetest"
	"portcullis/firmware/pin"
)

const wanted = `boards:
  - {psid: TST0000000001, floor: 22.47.1000, hardware: [0x218], security_version: 0}
`

var running = hca.Version{Major: 22, Minor: 47, SubMinor: 1088}

// folder makes a library of images that mstflint signed.
func folder(t *testing.T, policy string, images ...string) string {
	t.Helper()
	dir := t.TempDir()
	k := imagetest.Key2048()
	set, err := pin.New(pin.Key{
		UUID: imagetest.KeyUUID, Algorithm: image.RSA2048SHA256, Exponent: uint32(k.E), Modulus: k.N.Bytes(), Signs: image.SignsFirmware, Name: "test",
	})
	must(t, err)
	pins, err := set.Encode()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "pins.yaml"), pins, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o644))
	must(t, os.Mkdir(filepath.Join(dir, "images"), 0o755))
	for _, name := range images {
		b, err := os.ReadFile("../../../firmware/testdata/synthetic/" + name)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "images", name), b, 0o644))
	}
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *fwcatalog.Library {
	t.Helper()
	l, err := fwcatalog.Open(dir)
	must(t, err)
	return l
}

func claim() hca.Claim {
	return hca.Claim{PSID: "TST0000000001", Version: running, Hardware: 0x218}
}

// TestImages: only an image signed under a pinned key and allowed counts.
func TestImages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		policy string
		images []string
		why    string // "": it counts
	}{
		{"signed", wanted, []string{"fs4-rsa2048.bin"}, ""},
		{"signed, and beside it one that is not", wanted, []string{"fs4-rsa2048.bin", "fs4-unsigned.bin"}, ""},
		{"tampered", wanted, []string{"fs4-tampered.bin"}, "fs4-tampered.bin: invalid"},
		{"not signed", wanted, []string{"fs4-unsigned.bin"}, "fs4-unsigned.bin: not signed"},
		{"key not pinned", wanted, []string{"fs4-rsa4096.bin"}, "fs4-rsa4096.bin: "},
		{"not wanted", strings.ReplaceAll(wanted, "22.47.1000", "22.48.0000"), []string{"fs4-rsa2048.bin"}, "the policy refuses it"},
		{"none", wanted, nil, "no image of TST0000000001 22.47.1088 is in the library"},
	} {
		l := open(t, folder(t, tt.policy, tt.images...))
		got, ok, why := l.Image("TST0000000001", running)
		if ok != (tt.why == "") || !strings.Contains(why, tt.why) {
			t.Errorf("%s: got %v, %q, want %q", tt.name, ok, why, tt.why)
		}
		if ok && (len(got.SHA256) != 64 || got.KeyID != "c0ffee00-1122-3344-5566-778899aabbcc" || got.PSID != "TST0000000001" || got.Version != running) {
			t.Errorf("%s: got %+v", tt.name, got)
		}
	}
}

// TestManyImagesOfOneVersion checks that no image counts if several different ones have the same version, however many
// follow. The running one cannot be distinguished from outside.
func TestManyImagesOfOneVersion(t *testing.T) {
	t.Parallel()
	made := func(code string) []byte {
		spec := imagetest.New()
		spec.Main = append([]byte(code), make([]byte, 4096)...)
		b := spec.Build()
		imagetest.Sign2048(b, imagetest.Key2048(), imagetest.KeyUUID)
		return b
	}
	info := imagetest.New()
	version := hca.Version{Major: uint32(info.Version[0]), Minor: uint32(info.Version[1]), SubMinor: uint32(info.Version[2])}
	allow := "boards:\n  - {psid: " + info.PSID + ", floor: 1.0.0, hardware: [], security_version: 0}\n"
	for images, counts := range map[string]bool{"a": true, "aa": true, "ab": false, "aba": false, "abc": false, "abac": false} {
		dir := folder(t, allow)
		for i := range images {
			must(t, os.WriteFile(filepath.Join(dir, "images", images[:i+1]), made("cod"+images[i:i+1]), 0o644))
		}
		if _, ok, why := open(t, dir).Image(info.PSID, version); ok != counts {
			t.Errorf("images %s: one counts: %v, %q, want %v", images, ok, why, counts)
		}
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	l := open(t, folder(t, wanted, "fs4-rsa2048.bin"))
	if got := l.Refuse(claim()); len(got) > 0 {
		t.Errorf("wanted firmware: got %v", got)
	}
	for name, alter := range map[string]func(*hca.Claim){
		"psid":          func(c *hca.Claim) { c.PSID = "TST0000000002" },
		"version-floor": func(c *hca.Claim) { c.Version.SubMinor = 999 },
		"hardware":      func(c *hca.Claim) { c.Hardware = 0x216 },
		"no image has":  func(c *hca.Claim) { c.Version.Major = 22 + 1<<16 },
	} {
		c := claim()
		alter(&c)
		if got := strings.Join(l.Refuse(c), "\n"); !strings.Contains(got, name) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	listed := open(t, folder(t, wanted+"digests: ["+strings.Repeat("ab", 32)+"]\n", "fs4-rsa2048.bin"))
	if got := strings.Join(listed.Refuse(claim()), "\n"); !strings.Contains(got, "digest") {
		t.Errorf("another digest: got %q", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		alter func(dir string) error
		want  string
	}{
		{"no folder", os.RemoveAll, "no such file"},
		{"no pins", func(dir string) error { return os.Remove(dir + "/pins.yaml") }, "pins.yaml"},
		{"no policy", func(dir string) error { return os.Remove(dir + "/policy.yaml") }, "policy.yaml"},
		{"policy that is none", func(dir string) error { return os.WriteFile(dir+"/policy.yaml", []byte("bords: []"), 0o644) }, "policy.yaml"},
		{"pins that are too long", func(dir string) error {
			return os.WriteFile(dir+"/pins.yaml", make([]byte, pin.MaxFile+10), 0o644)
		}, "more than"},
		{"a link out of it", func(dir string) error { return os.Symlink("/etc/hostname", dir+"/images/x") }, "x: "},
		{"a folder among the images", func(dir string) error { return os.Mkdir(dir+"/images/y", 0o755) }, "y: is not a regular file"},
	} {
		dir := folder(t, wanted)
		must(t, tt.alter(dir))
		if _, err := fwcatalog.Open(dir); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	dir := folder(t, wanted)
	must(t, os.Remove(dir+"/images"))
	if _, ok, _ := open(t, dir).Image("TST0000000001", running); ok {
		t.Error("a library without images has one")
	}
}
