package firmware_test

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"portcullis/firmware"
	"portcullis/firmware/image"
	"portcullis/firmware/imagetest"
	"portcullis/packaging/testenv"
)

// TestMstflintSigns has the real tool sign images. A signed image is valid here, has the same bytes as one that the
// generator signs, and is no longer valid once it is changed.
func TestMstflintSigns(t *testing.T) {
	path := testenv.Program(t, "mstflint")
	uuid := image.UUID(imagetest.KeyUUID).String()
	small := []string{"--private_key", keyFile(t, imagetest.Key2048()), "--key_uuid", uuid}
	both := append(small, "--private_key2", keyFile(t, imagetest.Key4096()), "--key_uuid2", uuid)
	for _, tt := range []struct {
		name   string
		change func(s *imagetest.Spec)
		args   []string
		sign   func(b []byte)
		want   firmware.Verdict
	}{
		{"digest", func(*imagetest.Spec) {}, nil, imagetest.Digest, firmware.NotSigned},
		{"one", func(*imagetest.Spec) {}, small, func(b []byte) { imagetest.Sign2048(b, imagetest.Key2048(), imagetest.KeyUUID) }, firmware.Valid},
		{"both", func(*imagetest.Spec) {}, both, func(b []byte) {
			imagetest.Sign4096(b, imagetest.Key4096(), imagetest.KeyUUID)
			imagetest.Sign2048(b, imagetest.Key2048(), imagetest.KeyUUID)
		}, firmware.Valid},
		{"shifted table", func(s *imagetest.Spec) { s.TOCShift = true }, small, func(b []byte) { imagetest.Sign2048(b, imagetest.Key2048(), imagetest.KeyUUID) }, firmware.Valid},
		{"FS3", func(s *imagetest.Spec) { s.Format, s.Hardware = 3, []uint32{0x209} }, small, func(b []byte) { imagetest.Sign2048(b, imagetest.Key2048(), imagetest.KeyUUID) }, firmware.Valid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := imagetest.New()
			tt.change(s)
			b := s.Build()
			file := filepath.Join(t.TempDir(), "image.bin")
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"-i", file}, tt.args...)
			if out, err := exec.Command(path, append(args, "sign")...).CombinedOutput(); err != nil {
				t.Fatalf("mstflint sign: %v\n%s", err, out)
			}
			theirs, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tt.sign(b)
			if !bytes.Equal(theirs, b) {
				t.Error("the generator signs otherwise")
			}
			r := verify(t, theirs, firmware.Site{Pins: testPins(t)})
			if r.Verdict != tt.want {
				t.Errorf("verdict %q, want %q; %+v", r.Verdict, tt.want, r.Images[0].Steps)
			}
			_, code := imagetest.Find(theirs, 0x03)
			code[9] ^= 1
			imagetest.Mend(theirs, 0x03)
			if r := verify(t, theirs, firmware.Site{Pins: testPins(t)}); r.Verdict != firmware.Invalid {
				t.Errorf("when changed it is %q", r.Verdict)
			}
		})
	}
}

func keyFile(t *testing.T, k *rsa.PrivateKey) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.pem")
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
