package lockkey

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/packaging/testenv"
)

// testSecret has the bytes of a fixed generator.
func testSecret(seed byte) []byte {
	b := make([]byte, SecretSize)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func testRoot(t *testing.T, seed byte) Root {
	t.Helper()
	r, err := NewRoot(testSecret(seed))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var known = []struct {
	seed  byte
	guid  ib.GUID
	epoch Epoch
	want  uint64
}{
	{1, 0x0002c90300a1b2c3, 1, 0xbdf9b4af6ee691fe},
	{1, 0x0002c90300a1b2c3, 2, 0x9dec078b057cf00d},
	{1, 0xb83fd20300a1b2c4, 1, 0x5c8131019c3460e5},
	{2, 0x0002c90300a1b2c3, 4294967295, 0x3e0442f3b77d1fb6},
}

// TestDeriveKnownAnswers has the answers of OpenSSL 3.0 to the command in TestDeriveAsOpenSSL: the keys of cards in the
// field must never change.
func TestDeriveKnownAnswers(t *testing.T) {
	for _, tt := range known {
		k, err := testRoot(t, tt.seed).Derive(tt.guid, tt.epoch)
		if err != nil || k.Reveal() != tt.want {
			t.Errorf("seed %d, %v, epoch %d: 0x%016x, %v; want 0x%016x", tt.seed, tt.guid, tt.epoch, k.Reveal(), err, tt.want)
		}
	}
}

// TestDeriveAsOpenSSL asks OpenSSL for the same keys, as an operator would who has
// the secret and nothing else.
func TestDeriveAsOpenSSL(t *testing.T) {
	openssl := testenv.Program(t, "openssl")
	for _, tt := range known {
		out, err := exec.Command(openssl, "kdf", "-keylen", "8", "-kdfopt", "digest:SHA256",
			"-kdfopt", "hexkey:"+hex.EncodeToString(testSecret(tt.seed)),
			"-kdfopt", fmt.Sprintf("info:portcullis:mlock:v1:0x%016x:%d", uint64(tt.guid), tt.epoch), "HKDF").Output()
		if err != nil {
			t.Fatalf("openssl kdf: %v", err)
		}
		got := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(string(out)), ":", ""))
		if want := fmt.Sprintf("%016x", tt.want); got != want {
			t.Errorf("seed %d, %v, epoch %d: openssl says %s, want %s", tt.seed, tt.guid, tt.epoch, got, want)
		}
	}
}

func TestDeriveSeparates(t *testing.T) {
	seen := map[ib.LockKey]string{}
	for _, seed := range []byte{1, 2} {
		for guid := ib.GUID(1); guid <= 20; guid++ {
			for epoch := Epoch(1); epoch <= 20; epoch++ {
				k, err := testRoot(t, seed).Derive(guid, epoch)
				name := fmt.Sprintf("%d %v %d", seed, guid, epoch)
				if was, twice := seen[k]; twice || err != nil {
					t.Fatalf("%s has the key of %q: %v", name, was, err)
				}
				seen[k] = name
			}
		}
	}
}

// TestKeyIsNeverZero: 0 is no key, and the next is asked for.
func TestKeyIsNeverZero(t *testing.T) {
	var asked []string
	v, err := firstKey("info", func(info string) ([]byte, error) {
		asked = append(asked, info)
		return []byte{7: byte(len(asked) / 3)}, nil
	})
	if err != nil || v != 1 || !slices.Equal(asked, []string{"info", "info:1", "info:2"}) {
		t.Errorf("%d, %v, asked %q", v, err, asked)
	}
	broken := errors.New("broken")
	if _, err := firstKey("info", func(string) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestDeriveRefuses(t *testing.T) {
	r := testRoot(t, 1)
	for _, tt := range []struct {
		root  Root
		guid  ib.GUID
		epoch Epoch
		want  string
	}{
		{Root{}, 1, 1, "no root"},
		{r, 0, 1, "is no adapter's"},
		{r, ^ib.GUID(0), 1, "is no adapter's"},
		{r, 1, 0, "epochs count from 1"},
	} {
		if k, err := tt.root.Derive(tt.guid, tt.epoch); err == nil || !k.IsZero() || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	for _, secret := range [][]byte{nil, testSecret(1)[:31], make([]byte, 32), []byte(strings.Repeat("key ", 8))} {
		if r, err := NewRoot(secret); err == nil || !r.IsZero() {
			t.Errorf("%q makes a root", secret)
		}
	}
}

// TestRootDoesNotPrint looks for the secret in all that Go prints of a root.
func TestRootDoesNotPrint(t *testing.T) {
	secret := testSecret(1)
	type holder struct {
		Root Root
		own  Root
	}
	h := holder{testRoot(t, 1), testRoot(t, 1)}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("root", "root", h.Root, "holder", h)
	all := string(text) + log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		all += fmt.Sprintf(verb, h)
	}
	for _, form := range []string{string(secret[:8]), hex.EncodeToString(secret[:4]), fmt.Sprintf("%d %d %d", secret[0], secret[1], secret[2])} {
		if strings.Contains(all, form) {
			t.Errorf("%q is in %s", form, all)
		}
	}
	if !strings.Contains(all, ib.Redacted) || (Root{}).String() != "none" {
		t.Errorf("a root prints as %s", all)
	}
}
