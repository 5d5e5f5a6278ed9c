package setup

import (
	"bytes"
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/ca"
)

func freshTLS(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "etc")
	var out, errs strings.Builder
	if code := run([]string{"init", "--dir", dir, "--names", "fabric.example,192.0.2.7"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	return dir
}

func (p tlsFiles) leaf(t *testing.T) *tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

type tlsFiles struct{ cert, key, ca, caKey string }

func tlsFilesOf(dir string) tlsFiles {
	in := func(name string) string { return filepath.Join(dir, "tls", name) }
	return tlsFiles{in("server.pem"), in("server.key"), in("ca.pem"), in("ca.key")}
}

// The next certificate is for the names and the key of the one before, with its mode, and lives longer. A certificate of
// another authority is left alone.
func TestRenewCertificate(t *testing.T) {
	t.Parallel()
	dir := freshTLS(t)
	f := tlsFilesOf(dir)
	was := f.leaf(t)
	later := time.Now().Add(365 * 24 * time.Hour)
	names, ends, err := Renew(f.cert, f.key, f.ca, f.caKey, later)
	if err != nil {
		t.Fatal(err)
	}
	now := f.leaf(t)
	if !slices.Equal(names, []string{"fabric.example", "192.0.2.7"}) || !ends.After(was.Leaf.NotAfter.Add(300*24*time.Hour)) {
		t.Errorf("names %q, ends %v; the one before ends %v", names, ends, was.Leaf.NotAfter)
	}
	if !slices.Equal(now.Leaf.DNSNames, was.Leaf.DNSNames) || now.Leaf.SerialNumber.Cmp(was.Leaf.SerialNumber) == 0 ||
		!bytes.Equal(now.Leaf.RawSubjectPublicKeyInfo, was.Leaf.RawSubjectPublicKeyInfo) {
		t.Errorf("the next one is for %v with serial number %v", now.Leaf.DNSNames, now.Leaf.SerialNumber)
	}
	if info, err := os.Stat(f.cert); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(f.cert + ".next"); !os.IsNotExist(err) {
		t.Errorf("a file is left over: %v", err)
	}
	other := tlsFilesOf(freshTLS(t))
	if _, _, err := Renew(f.cert, f.key, other.ca, other.caKey, later); err == nil || !strings.Contains(err.Error(), "not of CA") {
		t.Errorf("with another authority: %v", err)
	}
	if _, _, err := Renew(f.cert, f.key, f.ca, f.caKey, time.Now().Add(10*365*24*time.Hour-40*24*time.Hour)); err == nil || !strings.Contains(err.Error(), "successor") {
		t.Errorf("with an authority that ends soon: %v", err)
	}
	if !bytes.Equal(f.leaf(t).Certificate[0], now.Certificate[0]) {
		t.Error("a refused renewal changed the certificate")
	}
	if err := os.Chmod(f.caKey, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Renew(f.cert, f.key, f.ca, f.caKey, later); err == nil {
		t.Error("a CA key that others can read is taken")
	}
}

// An input that is no CA is refused with a sentence that shows nothing of it.
func TestRenewWithoutCA(t *testing.T) {
	t.Parallel()
	f := tlsFilesOf(freshTLS(t))
	if _, err := ca.ParsePEM([]byte("nothing"), []byte("secret")); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("parse: %v", err)
	}
	if _, _, err := Renew(f.cert, f.key, f.cert, f.key, time.Now()); err == nil {
		t.Error("the server's own certificate is taken for a CA")
	}
	if _, _, err := Renew(f.cert, f.key, f.ca, f.caKey+".gone", time.Now()); err == nil {
		t.Error("a CA key that is offline is no error")
	}
}
