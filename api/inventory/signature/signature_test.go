package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// entryOf returns an entry of a file for a public key.
func entryOf(t testing.TB, name string, public crypto.PublicKey, more string) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	return fmt.Sprintf("- name: %s\n  key: |\n    %s%s", name, strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    "), "\n"+more)
}

func keys(t testing.TB) (ed25519.PrivateKey, *ecdsa.PrivateKey) {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return ed, ec
}

func TestVerify(t *testing.T) {
	t.Parallel()
	ed, ec := keys(t)
	s, err := Parse("keys.yaml", []byte("keys:\n"+entryOf(t, "integrator", ed.Public(), "  racks: [r1]\n  added_by: alice\n")+entryOf(t, "factory", ec.Public(), "")))
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("a manifest")
	digest := sha256.Sum256(message)
	der, err := ecdsa.SignASN1(rand.Reader, ec, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		message string
		sig     []byte
		want    string // name of the key, "": refused
	}{
		{"Ed25519", "a manifest", ed25519.Sign(ed, message), "integrator"},
		{"P-256", "a manifest", der, "factory"},
		{"another manifest", "b manifest", der, ""},
		{"another manifest, Ed25519", "a manifest ", ed25519.Sign(ed, message), ""},
		{"no signature", "a manifest", nil, ""},
		{"too long", "a manifest", make([]byte, MaxSignature+1), ""},
	} {
		k, err := s.Verify([]byte(tt.message), tt.sig)
		if k.Name != tt.want || (tt.want == "") != errors.Is(err, ErrUnknown) {
			t.Errorf("%s: key %q, %v", tt.name, k.Name, err)
		}
	}
	list := s.Keys()
	if len(list) != 2 || !list[0].Signs("r1") || list[0].Signs("r2") || !list[1].Signs("r2") || list[0].AddedBy != "alice" {
		t.Errorf("keys %+v", list)
	}
	var none *Set
	if _, err := none.Verify(message, der); !errors.Is(err, ErrNoKey) {
		t.Errorf("without keys: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	ed, _ := keys(t)
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"RSA":               {entryOf(t, "a", weak.Public(), ""), "want Ed25519 or ECDSA P-256"},
		"P-384":             {entryOf(t, "a", other.Public(), ""), "must be of the curve P-256"},
		"twice":             {entryOf(t, "a", ed.Public(), "") + entryOf(t, "b", ed.Public(), ""), "key 2 (\"b\"): it is pinned twice"},
		"another print":     {entryOf(t, "a", ed.Public(), "  fingerprint: sha256:00\n"), "one of the two was changed"},
		"no name":           {entryOf(t, `""`, ed.Public(), ""), "it has no name"},
		"not PEM":           {"- {name: a, key: b}\n", "want one PEM block"},
		"an unknown field":  {"- {name: a, kei: b}\n", "kei"},
		"a key that is not": {"- name: a\n  key: |\n    -----BEGIN PUBLIC KEY-----\n    AAAA\n    -----END PUBLIC KEY-----\n", "key: "},
	} {
		if _, err := Parse("keys.yaml", []byte("keys:\n"+tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", name, err, tt.want)
		}
	}
}

// FuzzParse checks that no file crashes the parser, and that every key of a set has a name and one fingerprint.
func FuzzParse(f *testing.F) {
	ed, ec := keys(f)
	f.Add([]byte("keys: []"))
	f.Add([]byte("keys:\n" + entryOf(f, "a", ed.Public(), "") + entryOf(f, "b", ec.Public(), "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("fuzz.yaml", data)
		if err != nil {
			return
		}
		seen := map[[32]byte]bool{}
		for _, k := range s.Keys() {
			if k.Name == "" || seen[k.Fingerprint] {
				t.Errorf("key %+v", k)
			}
			seen[k.Fingerprint] = true
		}
	})
}
