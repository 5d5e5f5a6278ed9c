package firmware_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"portcullis/firmware"
	"portcullis/firmware/image"
	"portcullis/firmware/imagetest"
	"portcullis/firmware/pin"
	"portcullis/packaging/testenv"
)

// testPins are the test keys, pinned for firmware.
func testPins(t testing.TB) *pin.Set {
	t.Helper()
	k2, k4 := imagetest.Key2048(), imagetest.Key4096()
	s, err := pin.New(
		pin.Key{UUID: imagetest.KeyUUID, Algorithm: image.RSA2048SHA256, Exponent: uint32(k2.E), Modulus: k2.N.Bytes(), Signs: image.SignsFirmware, Name: "test 2048"},
		pin.Key{UUID: imagetest.KeyUUID, Algorithm: image.RSA4096SHA512, Exponent: uint32(k4.E), Modulus: k4.N.Bytes(), Signs: image.SignsFirmware, Name: "test 4096"},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func verify(t testing.TB, b []byte, site firmware.Site) *firmware.Report {
	t.Helper()
	r, err := firmware.Verify(bytes.NewReader(b), int64(len(b)), site)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// codes are those of the steps of the first image that did not pass.
func codes(r *firmware.Report) []firmware.Code {
	codes := []firmware.Code{}
	for _, s := range r.Images[0].Steps {
		if s.Outcome != firmware.Pass {
			codes = append(codes, s.Code)
		}
	}
	return codes
}

// TestSynthetic compares the six images that mstflint signed with their README, and shows that mstflint accepts every one
// of them.
func TestSynthetic(t *testing.T) {
	for _, tt := range []struct {
		file    string
		verdict firmware.Verdict
		codes   []firmware.Code
		signers int
		digest  bool // a bare digest is right
	}{
		{"fs4-unsigned.bin", firmware.NotSigned, []firmware.Code{firmware.CodeNoSignature}, 0, false},
		{"fs4-digest.bin", firmware.NotSigned, []firmware.Code{firmware.CodeNoSignature}, 0, true},
		{"fs4-rsa2048.bin", firmware.Valid, []firmware.Code{}, 1, false},
		{"fs4-rsa4096.bin", firmware.Valid, []firmware.Code{}, 1, false},
		{"fs4-rsa2048-rsa4096.bin", firmware.Valid, []firmware.Code{}, 2, false},
		{"fs4-tampered.bin", firmware.Invalid, []firmware.Code{firmware.CodeSignature, firmware.CodeSignature}, 0, false},
	} {
		t.Run(tt.file, func(t *testing.T) {
			path := "testdata/synthetic/" + tt.file
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r := verify(t, b, firmware.Site{Pins: testPins(t)})
			one := r.Images[0]
			if r.Verdict != tt.verdict || !slices.Equal(codes(r), tt.codes) || len(one.Signers) != tt.signers || stepPasses(one, "digest") != tt.digest {
				t.Errorf("verdict %q, codes %v, %d signers, steps %+v, want %q %v %d", r.Verdict, codes(r), len(one.Signers), one.Steps, tt.verdict, tt.codes, tt.signers)
			}
			if r.Accepted() != (tt.verdict == firmware.Valid) {
				t.Errorf("accepted is %v", r.Accepted())
			}
			id := one.Identity
			if id.Info.PSID != "TST0000000001" || id.Info.Version.String() != "22.47.1088" || id.Chips[0] != "ConnectX-7" || id.Device.InForce.GUID != imagetest.DefaultGUID || id.Changed {
				t.Errorf("identity is %+v", id)
			}
			out, err := exec.Command(testenv.Program(t, "mstflint"), "-i", path, "v").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "Image is bootable") {
				t.Errorf("mstflint does not take it for good: %v\n%s", err, out)
			}
		})
	}
}

// TestCoverage: of a valid image the verdict says how many bytes are free, and these are.
func TestCoverage(t *testing.T) {
	b, err := os.ReadFile("testdata/synthetic/fs4-rsa2048-rsa4096.bin")
	if err != nil {
		t.Fatal(err)
	}
	site := firmware.Site{Pins: testPins(t)}
	m, err := image.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	r := verify(t, b, site).Images[0]
	last := r.Steps[len(r.Steps)-1]
	if want := int64(len(b)) - m.End; r.Verdict != firmware.Valid || r.NotCovered != want || want == 0 ||
		last.Name != "coverage" || !strings.Contains(last.Detail, fmt.Sprintf("the %d bytes after it", want)) {
		t.Errorf("verdict %q, %d bytes not covered, %+v; want %d", r.Verdict, r.NotCovered, last, want)
	}
	for at, want := range map[int64]firmware.Verdict{m.End: firmware.Valid, m.End - 1: firmware.Invalid} {
		flipped := slices.Clone(b)
		flipped[at] ^= 1
		if got := verify(t, flipped, site).Images[0]; got.Verdict != want || want != firmware.Valid && got.NotCovered != 0 {
			t.Errorf("byte 0x%x changed: %q, %d bytes not covered; want %q", at, got.Verdict, got.NotCovered, want)
		}
	}
}
