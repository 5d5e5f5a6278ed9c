package signkey_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
	"portcullis/firmware/nvconfig/signkey"
)

// vector returns a file that mstconfig signed, and the items in it.
func vector(t *testing.T, bits int) ([]byte, []nvconfig.Item) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("../testdata/tenant-lock.rsa%d.bin", bits))
	if err != nil {
		t.Fatal(err)
	}
	f, err := nvconfig.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return b, f.Items
}

// TestToken signs with keys that stay in a token, and gets the bytes that
// mstconfig made with the same keys.
func TestToken(t *testing.T) {
	k := newToken(t)
	k.add(nvconfigtest.Key(t, 4096), "4096")
	k.add(nvconfigtest.Key(t, 2048), "20480a") // a byte that tools must not take for the end of a line
	for id, bits := range map[string]int{"4096": 4096, "20480a": 2048} {
		signer, err := signkey.Open(k.uri("site%20key", id), signkey.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, items := vector(t, bits)
		got, err := nvconfig.Sign(items, signer, nvconfigtest.KeyUUID)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("RSA-%d: %v, equal %v", bits, err, bytes.Equal(got, want))
		}
	}
}

func TestTokenRefuses(t *testing.T) {
	k := newToken(t)
	k.add(nvconfigtest.Key(t, 2048), "01")
	sign := func(uri string) error {
		signer, err := signkey.Open(uri, signkey.Options{})
		if err != nil {
			return err
		}
		sum := sha256.Sum256(nil)
		_, err = signer.Sign(nil, sum[:], crypto.SHA256)
		return err
	}
	good := k.uri("site%20key", "01")
	if err := sign(good); err != nil {
		t.Fatal(err)
	}
	check := func(name, uri, want string) {
		t.Helper()
		err := sign(uri)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if err != nil && strings.Contains(err.Error(), pin) {
			t.Errorf("%s: the PIN is told: %v", name, err)
		}
	}
	check("another token", k.uri("other", "01"), `token named "other"`)
	check("no such key", k.uri("site%20key", "02"), "read public key")
	check("no module", strings.Replace(good, k.module, "/nowhere/module.so", 1), "read public key")
	k.write("pin", "wrong\n", 0o600)
	check("wrong PIN", good, "CKR_PIN_INCORRECT")
	k.write("pin", pin, 0o644)
	check("everybody can read the PIN", good, "chmod 600")
	k.write("pin", "\n", 0o600)
	check("no PIN", good, "want one line")
}

// TestTokenWithAnotherKey: a token that holds the public half of one key and the
// private half of another under one id makes no signature.
func TestTokenWithAnotherKey(t *testing.T) {
	k := newToken(t)
	k.add(nvconfigtest.Key(t, 2048), "01")
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&other.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	tool := "pkcs11-tool"
	login := []string{"--module", k.module, "--token-label", "site key", "--login", "--pin", pin}
	k.run(tool, append(login, "--delete-object", "--type", "pubkey", "--id", "01")...)
	k.run(tool, append(login, "--write-object", k.write("other.der", string(der), 0o600), "--type", "pubkey", "--id", "01")...)
	signer, err := signkey.Open(k.uri("site%20key", "01"), signkey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(nil)
	if _, err := signer.Sign(nil, sum[:], crypto.SHA256); err == nil || !strings.Contains(err.Error(), "used another key") {
		t.Errorf("signed with another key: %v", err)
	}
}

// TestTool plays tools that misbehave.
func TestTool(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	u := signkey.URI{Token: "t", ID: []byte{1}, Module: "/m", PINFile: "/p"}
	for name, tt := range map[string]struct {
		script  string
		timeout time.Duration
		want    string
	}{
		"hangs":          {"sleep 600 & wait", 50 * time.Millisecond, "did not end within 50ms"},
		"floods":         {"head -c 1000000 /dev/zero", time.Minute, "more than 65536 bytes"},
		"says nothing":   {"echo nothing here >&2", time.Minute, "printed nothing: nothing here"},
		"prints garbage": {"echo garbage", time.Minute, "not a public key"},
		"control bytes":  {`printf 'a\033[2Jb\n' >&2; exit 3`, time.Minute, "exit status 3: a [2Jb"},
	} {
		_, err := signkey.OpenToken(u, signkey.Options{Tool: script(name, tt.script), Timeout: tt.timeout})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// TestToolIsKilledWithItsChildren: a child of a tool that hangs holds a pipe open,
// until it is killed, too.
func TestToolIsKilledWithItsChildren(t *testing.T) {
	dir := t.TempDir()
	pipe, tool := filepath.Join(dir, "pipe"), filepath.Join(dir, "tool")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	both, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that the child need not wait for a reader
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tool, []byte("#!/bin/sh\nsleep 600 >"+pipe+" 2>&1 & wait\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	u := signkey.URI{Token: "t", ID: []byte{1}, Module: "/m", PINFile: "/p"}
	if _, err := signkey.OpenToken(u, signkey.Options{Tool: tool, Timeout: time.Second}); err == nil {
		t.Error("a tool that hangs made a key")
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	both.Close()
	if err := reader.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(reader); err != nil || len(b) != 0 {
		t.Errorf("the child of the tool lives on: %q, %v", b, err)
	}
}

func TestURI(t *testing.T) {
	u, err := signkey.ParseURI("pkcs11:token=site%20key%3b;id=%c0%0A;type=private?module-path=/usr/lib/m.so&pin-source=file:/run/pin")
	if err != nil {
		t.Fatal(err)
	}
	const text = "pkcs11:token=site%20key%3B;id=%c0%0a?module-path=/usr/lib/m.so&pin-source=/run/pin"
	again, err := signkey.ParseURI(u.String())
	if u.String() != text || err != nil || again.String() != text {
		t.Errorf("%v, %v, %v", u, again, err)
	}
	const rest = "?module-path=/m&pin-source=/p"
	for uri, want := range map[string]string{
		"pkcs12:token=a":                                     "does not begin with",
		"pkcs11:token=a" + rest:                              "token or id is missing",
		"pkcs11:id=%01" + rest:                               "token or id is missing",
		"pkcs11:token=a;id=%01":                              "NAME=VALUE",
		"pkcs11:token=a;id=%01?module-path=/m":               "pin-source is missing",
		"pkcs11:token=a;token=b;id=%01" + rest:               "each once",
		"pkcs11:token=a;id=%0" + rest:                        "id: not a value",
		"pkcs11:token=a%0a;id=%01" + rest:                    "token: not a value",
		"pkcs11:token=a;object=k" + rest:                     `"object" is not supported`,
		"pkcs11:token=a;id=%01;type=cert" + rest:             "is not a private key",
		"pkcs11:token=a;id=%01" + rest + "&pin-value=12":     `"pin-value" is not supported`,
		"pkcs11:token=a;id=%01?module-path=m&pin-source=/p":  "absolute path",
		"pkcs11:token=a;id=%01?module-path=/m&pin-source=|p": "absolute path",
	} {
		if _, err := signkey.ParseURI(uri); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", uri, err, want)
		}
	}
}

func TestPEM(t *testing.T) {
	key := nvconfigtest.Key(t, 2048)
	pkcs1 := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	for name, text := range map[string]string{"PKCS#1": pkcs1, "PKCS#8": pkcs8(t, key)} {
		file := filepath.Join(t.TempDir(), "key.pem")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		signer, err := signkey.Open(file, signkey.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, items := vector(t, 2048)
		if got, err := nvconfig.Sign(items, signer, nvconfigtest.KeyUUID); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, equal %v", name, err, bytes.Equal(got, want))
		}
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := signkey.Open(file, signkey.Options{}); err == nil || !strings.Contains(err.Error(), "others can read it") {
			t.Errorf("%s that everybody can read: %v", name, err)
		}
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":              "no PEM",
		pkcs1 + pkcs1:   "there is more after the key",
		pkcs8(t, curve): "adapters take RSA",
		pkcs8(t, small): "an RSA key of 3072 bits",
		string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}})):                        "has a password",
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"DEK-Info": "AES"}})): "has a password",
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}})):                                  "not a private key",
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}})):                                  `it is a "CERTIFICATE"`,
	} {
		if _, err := signkey.ParsePEM([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := signkey.Open(filepath.Join(t.TempDir(), "none"), signkey.Options{}); err == nil {
		t.Error("a file that is not there: no error")
	}
}

func TestPublic(t *testing.T) {
	key := nvconfigtest.Key(t, 4096)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	if got, err := signkey.ParsePublic(text); err != nil || !got.Equal(&key.PublicKey) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", string(text) + "x", pkcs8(t, key)} {
		if _, err := signkey.ParsePublic([]byte(text)); err == nil || !strings.Contains(err.Error(), "want one PUBLIC KEY") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	low := key.PublicKey
	low.E = 3
	if der, err = x509.MarshalPKIXPublicKey(&low); err != nil {
		t.Fatal(err)
	}
	if _, err := signkey.ParsePublic(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})); err == nil || !strings.Contains(err.Error(), "exponent 3") {
		t.Errorf("exponent 3: %v", err)
	}
}

func FuzzParseURI(f *testing.F) {
	f.Add("pkcs11:token=site%20key;id=%c0?module-path=/usr/lib/m.so&pin-source=/run/pin")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := signkey.ParseURI(text)
		if err != nil {
			return
		}
		again, err := signkey.ParseURI(u.String())
		if err != nil || again.String() != u.String() {
			t.Fatalf("%q: %v, %v, %v", text, u, again, err)
		}
	})
}

func FuzzParsePEM(f *testing.F) {
	f.Add([]byte(pkcs8(f, nvconfigtest.Key(f, 2048))))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := signkey.ParsePEM(b); err == nil && k.N.BitLen() != 2048 && k.N.BitLen() != 4096 {
			t.Fatalf("a key of %d bits", k.N.BitLen())
		}
		if _, err := signkey.ParsePublic(b); err == nil && !bytes.Contains(b, []byte("PUBLIC KEY")) {
			t.Fatal("a public key out of nothing")
		}
	})
}
