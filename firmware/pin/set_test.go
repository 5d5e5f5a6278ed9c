package pin_test

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/firmware/image"
	"portcullis/firmware/imagetest"
	"portcullis/firmware/pin"
	"portcullis/packaging/testenv"
)

func key2048() pin.Key {
	k := imagetest.Key2048()
	return pin.Key{
		UUID: imagetest.KeyUUID, Algorithm: image.RSA2048SHA256, Exponent: uint32(k.E), Modulus: k.N.Bytes(),
		Signs: image.SignsFirmware | image.SignsVendorConf, Name: "test", AddedBy: "alice", Source: "image.bin",
	}
}

func key4096() pin.Key {
	k := imagetest.Key4096()
	return pin.Key{UUID: imagetest.KeyUUID, Algorithm: image.RSA4096SHA512, Exponent: uint32(k.E), Modulus: k.N.Bytes(), Signs: image.SignsFirmware}
}

func TestFile(t *testing.T) {
	s, err := pin.New(key4096(), key2048())
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := pin.Parse("pins.yaml", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if d := cmp.Diff([]pin.Key{key2048(), key4096()}, again.Keys()); d != "" {
		t.Errorf("keys (-want +got):\n%s", d)
	}
	if _, ok := again.Find(image.UUID{1}, image.RSA2048SHA256); ok {
		t.Error("a key is found that nobody pinned")
	}
	var none *pin.Set
	if _, ok := none.Find(imagetest.KeyUUID, image.RSA2048SHA256); ok || none.Keys() != nil {
		t.Error("no set has a key")
	}
}

// TestFingerprint compares the fingerprint with openssl's output for the same key.
func TestFingerprint(t *testing.T) {
	openssl := testenv.Program(t, "openssl")
	cmd := exec.Command(openssl, "pkey", "-pubin", "-inform", "PEM", "-in", "testdata/test-rsa2048.pub.pem", "-pubout", "-outform", "DER")
	der, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	k := key2048()
	if got, want := k.Fingerprint().String(), fmt.Sprintf("sha256:%x", sha256.Sum256(der)); got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
}

func TestAdd(t *testing.T) {
	s, err := pin.New(key2048())
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.Add(key4096()); err != nil || len(s.Keys()) != 2 {
		t.Fatalf("%d keys, %v", len(s.Keys()), err)
	}
	renamed := key2048()
	renamed.Name = "another name"
	if s, err = s.Add(renamed); err != nil || s.Keys()[0].Name != "test" {
		t.Errorf("the same key again: %v", err)
	}
	other := key2048()
	other.Modulus = imagetest.NewKey(2048).N.Bytes()
	if _, err := s.Add(other); err == nil || !strings.Contains(err.Error(), "another one is pinned under this UUID") {
		t.Errorf("another key under the UUID: %v", err)
	}
}

// TestRefused has files that are wrong in one way each.
func TestRefused(t *testing.T) {
	s, err := pin.New(key2048())
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	good := string(data)
	modulus := fmt.Sprintf("%x", key2048().Modulus)
	for _, tt := range []struct{ name, old, new, want string }{
		{"unknown field", "name:", "names:", "names"},
		{"changed modulus", modulus[:8], "ae0c0c82", "modulus or exponent were changed"},
		{"short modulus", modulus, modulus[2:], "does not have 2048 bits"},
		{"leading zero", modulus[:2], "00", "does not have 2048 bits"},
		{"even modulus", modulus[508:], modulus[508:511] + "e", "is even"},
		{"no modulus", modulus, `""`, "does not have 2048 bits"},
		{"even exponent", "65537", "65538", "is not a public exponent"},
		{"exponent of one", "65537", "1", "is not a public exponent"},
		{"other algorithm", "rsa-2048-sha-256", "rsa-4096-sha-512", "does not have 4096 bits"},
		{"no algorithm", "rsa-2048-sha-256", "md5", `algorithm "md5"`},
		{"zero UUID", "c0ffee00-1122-3344-5566-778899aabbcc", "00000000-0000-0000-0000-000000000000", "names no key"},
		{"development UUID", "c0ffee00-1122-3344-5566-778899aabbcc", "c0ffee00-1122-3344-5566-000000000000", "development key"},
		{"UUID of another form", "c0ffee00-1122", "c0ffee001122-", "want the form"},
		{"signs nothing", "[firmware, vendor-nvconfig]", "[]", "say what it may sign"},
		{"signs something else", "[firmware, vendor-nvconfig]", "[everything]", `"everything" is not something`},
		{"no fingerprint of that form", "sha256:", "md5:", "want sha256:"},
		{"no YAML", "keys:", "keys", "pins.yaml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.ReplaceAll(good, tt.old, tt.new)
			if text == good {
				t.Fatalf("%q is not in\n%s", tt.old, good)
			}
			if _, err := pin.Parse("pins.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	if _, err := pin.New(key2048(), key2048()); err == nil || !strings.Contains(err.Error(), "pinned twice") {
		t.Errorf("twice the same: %v", err)
	}
	if _, err := pin.Parse("pins.yaml", make([]byte, pin.MaxFile+1)); err == nil {
		t.Error("a file of any size is read")
	}
}

// FuzzPins reads anything as a file. An accepted file is written and read again.
func FuzzPins(f *testing.F) {
	s, err := pin.New(key2048(), key4096())
	if err != nil {
		f.Fatal(err)
	}
	data, err := s.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("keys: []"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := pin.Parse("pins.yaml", data)
		if err != nil {
			return
		}
		again, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if r, err := pin.Parse("pins.yaml", again); err != nil || len(r.Keys()) != len(s.Keys()) {
			t.Errorf("what was written cannot be read: %v\n%s", err, again)
		}
	})
}
