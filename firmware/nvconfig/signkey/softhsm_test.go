package signkey_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"portcullis/packaging/testenv"
)

const pin = "a PIN, 1234"

// token is a token in software that a test has for itself.
type token struct {
	t      *testing.T
	dir    string
	module string
	util   string
}

// newToken makes a token called "site key".
func newToken(t *testing.T) *token {
	t.Helper()
	k := &token{t: t, dir: t.TempDir(), util: testenv.Program(t, "softhsm2-util")}
	testenv.Program(t, "pkcs11-tool")
	for _, place := range []string{"/usr/lib/softhsm", "/usr/lib/*/softhsm", "/usr/lib64/pkcs11", "/usr/lib64"} {
		if found, _ := filepath.Glob(place + "/libsofthsm2.so"); len(found) > 0 {
			k.module = found[0]
			break
		}
	}
	if k.module == "" {
		testenv.Need(t, errors.New(`libsofthsm2.so is not installed: run "make setup"`))
	}
	k.write("pin", pin+"\n", 0o600)
	if err := os.Mkdir(filepath.Join(k.dir, "tokens"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOFTHSM2_CONF", k.write("softhsm2.conf", "directories.tokendir = "+k.dir+"/tokens\nobjectstore.backend = file\nlog.level = ERROR\n", 0o600))
	k.run(k.util, "--init-token", "--free", "--label", "site key", "--pin", pin, "--so-pin", "5678")
	return k
}

func (k *token) write(name, text string, mode os.FileMode) string {
	k.t.Helper()
	path := filepath.Join(k.dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		k.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		k.t.Fatal(err)
	}
	return path
}

func (k *token) run(name string, args ...string) {
	k.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		k.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// add brings a key into the token.
func (k *token) add(key *rsa.PrivateKey, id string) {
	k.t.Helper()
	file := k.write("key.pem", pkcs8(k.t, key), 0o600)
	k.run(k.util, "--import", file, "--token", "site key", "--label", "key "+id, "--id", id, "--pin", pin)
}

// uri names a key of the token; id is in hexadecimal digits.
func (k *token) uri(label, id string) string {
	escaped := ""
	for i := 0; i < len(id); i += 2 {
		escaped += "%" + id[i:i+2]
	}
	return fmt.Sprintf("pkcs11:token=%s;id=%s;type=private?module-path=%s&pin-source=file:%s/pin", label, escaped, k.module, k.dir)
}

func pkcs8(t testing.TB, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
