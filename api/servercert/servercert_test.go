package servercert_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/ca"
	"portcullis/api/servercert"
)

// issueAt writes a certificate for a name, with its key, that was issued at a time by a CA of its own.
func issueAt(t *testing.T, certFile, keyFile, name string, at time.Time) {
	t.Helper()
	root, err := ca.New("root", at)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := root.IssueServer([]string{name}, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(certFile, pair.Cert, 0o600), os.WriteFile(keyFile, pair.Key, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestCertificateReload(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	issue := func(name string) { issueAt(t, certFile, keyFile, name, time.Now()) }
	issue("one.example")
	cert, err := servercert.Load(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	served := func() string {
		t.Helper()
		c, err := cert.Config().GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.Subject.CommonName
	}
	issue("two.example")
	if got := served(); got != "one.example" {
		t.Errorf("before a reload %s is served, want one.example", got)
	}
	if err := cert.Reload(time.Now()); err != nil || served() != "two.example" {
		t.Errorf("after a reload (%v) %s is served, want two.example", err, served())
	}
	if err := os.WriteFile(certFile, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cert.Reload(time.Now()); err == nil || !strings.Contains(err.Error(), certFile) || served() != "two.example" {
		t.Errorf("reload of garbage: %v, serving %s; want an error that names the file, and two.example", err, served())
	}
	if _, err := servercert.Load(filepath.Join(dir, "none.pem"), keyFile); err == nil || !strings.Contains(err.Error(), "none.pem") {
		t.Errorf("missing file: %v, want an error that names it", err)
	}
}

// Reload refuses a certificate that has ended or is not valid yet. LoadCertificate accepts it. Soon returns an error
// from 30 days before the end on.
func TestCertificateEnds(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	now := time.Now()
	issue := func(at time.Time) { issueAt(t, certFile, keyFile, "one.example", at) }
	issue(now)
	cert, err := servercert.Load(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	ends := cert.Ends()
	if err := errors.Join(cert.Usable(now), cert.Soon(now), cert.Reload(now)); err != nil || !ends.After(now.Add(300*24*time.Hour)) {
		t.Errorf("a new certificate, which ends at %v: %v", ends, err)
	}
	if err := cert.Soon(ends.Add(-29 * 24 * time.Hour)); err == nil || !strings.Contains(err.Error(), "ends at "+ends.UTC().Format(time.RFC3339)) {
		t.Errorf("29 days before its end: %v", err)
	}
	if err := cert.Soon(ends.Add(-31 * 24 * time.Hour)); err != nil {
		t.Errorf("31 days before its end: %v", err)
	}
	if err := cert.Soon(ends.Add(time.Second)); err == nil || !strings.Contains(err.Error(), "ended at") {
		t.Errorf("after its end: %v", err)
	}
	if err := cert.Usable(ends.Add(-59 * time.Minute)); err == nil || !strings.Contains(err.Error(), certFile) || !strings.Contains(err.Error(), "one.example") {
		t.Errorf("59 minutes before its end it is usable: %v", err)
	}
	for what, at := range map[string]time.Time{"ended": now.Add(-10 * 365 * 24 * time.Hour), "not valid yet": now.Add(48 * time.Hour)} {
		issue(at)
		if err := cert.Reload(now); err == nil || !strings.Contains(err.Error(), certFile) {
			t.Errorf("reload of a certificate that is %s: %v", what, err)
		}
		if got := cert.Ends(); !got.Equal(ends) {
			t.Errorf("after the refused reload of one that is %s, one is served that ends at %v", what, got)
		}
		other, err := servercert.Load(certFile, keyFile)
		if err != nil {
			t.Fatalf("a service does not start with a certificate that is %s: %v", what, err)
		}
		if err := other.Usable(now); err == nil {
			t.Errorf("a certificate that is %s is usable", what)
		}
	}
}
