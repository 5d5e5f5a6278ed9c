package ca_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"portcullis/api/ca"
	"portcullis/packaging/testenv"
)

const domain = "fabric.example"

func hostRoot(t *testing.T, trustDomain string, now time.Time) *ca.Authority {
	t.Helper()
	a, err := ca.NewHosts(trustDomain, now, now.AddDate(1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func hostKey(t *testing.T) *ecdsa.PublicKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &k.PublicKey
}

func pool(a ...*ca.Authority) *x509.CertPool {
	p := x509.NewCertPool()
	for _, a := range a {
		p.AddCert(a.Certificate())
	}
	return p
}

// TestHostCertificate: one name, one use, a random serial number, an end.
func TestHostCertificate(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	root, key := hostRoot(t, domain, now), hostKey(t)
	c, err := root.IssueHost(domain, "rack1-n07", key, now, 8*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	again, err := root.IssueHost(domain, "rack1-n07", key, now, 8*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if c.SerialNumber.Cmp(again.SerialNumber) == 0 || c.SerialNumber.BitLen() < 64 {
		t.Errorf("serial numbers %x and %x", c.SerialNumber, again.SerialNumber)
	}
	if len(c.URIs) != 1 || c.URIs[0].String() != "spiffe://fabric.example/host/rack1-n07" {
		t.Errorf("names %v", c.URIs)
	}
	if len(c.ExtKeyUsage) != 1 || c.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth || len(c.UnknownExtKeyUsage) != 0 || c.KeyUsage != x509.KeyUsageDigitalSignature || c.IsCA {
		t.Errorf("usages %v %v, CA %v", c.ExtKeyUsage, c.KeyUsage, c.IsCA)
	}
	if !c.NotAfter.Equal(now.Add(8 * time.Hour)) {
		t.Errorf("ends %v", c.NotAfter)
	}
	if host, err := ca.HostOf(c, pool(root), domain, now); err != nil || host != "rack1-n07" {
		t.Errorf("host %q, %v", host, err)
	}
}

// TestOpenSSLReadsHostCertificate: openssl sees the same fields, and believes the
// chain.
func TestOpenSSLReadsHostCertificate(t *testing.T) {
	openssl := testenv.Program(t, "openssl")
	now := time.Now()
	root := hostRoot(t, domain, now)
	c, err := root.IssueHost(domain, "h1", hostKey(t), now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	leaf, authority := write("leaf.pem", c.Raw), write("root.pem", root.Certificate().Raw)
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), openssl, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("openssl %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", authority, leaf)
	text := run("x509", "-in", leaf, "-noout", "-text")
	for _, want := range []string{
		`Subject: *\n`, `X509v3 Subject Alternative Name: critical\n\s+URI:spiffe://fabric\.example/host/h1\n`,
		`X509v3 Extended Key Usage: *\n\s+TLS Web Client Authentication\n`, `X509v3 Key Usage: critical\n\s+Digital Signature\n`,
		`X509v3 Basic Constraints: critical\n\s+CA:FALSE`, `NIST CURVE: P-256`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("openssl does not show %q:\n%s", want, text)
		}
	}
	if text := run("x509", "-in", authority, "-noout", "-text"); !strings.Contains(text, "URI:fabric.example") || !strings.Contains(text, "CA:TRUE, pathlen:0") {
		t.Errorf("openssl shows of the authority:\n%s", text)
	}
}

// TestHostOfRefuses changes one thing each.
func TestHostOfRefuses(t *testing.T) {
	now := time.Now()
	root := hostRoot(t, domain, now)
	c, err := root.IssueHost(domain, "h1", hostKey(t), now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server, err := root.IssueServer([]string{"h1"}, now)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(server.Cert)
	serverCert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		cert   *x509.Certificate
		roots  *x509.CertPool
		domain string
		now    time.Time
	}{
		{"of another authority", c, pool(hostRoot(t, domain, now)), domain, now},
		{"of no authority", c, pool(), domain, now},
		{"of another trust domain", c, pool(root), "other.example", now},
		{"ended", c, pool(root), domain, now.Add(time.Hour + time.Second)},
		{"not begun", c, pool(root), domain, now.Add(-time.Hour)},
		{"the authority itself", root.Certificate(), pool(root), domain, now},
		{"a server's", serverCert, pool(root), domain, now},
	} {
		if host, err := ca.HostOf(tt.cert, tt.roots, tt.domain, tt.now); err == nil {
			t.Errorf("certificate %s is taken as that of %q", tt.name, host)
		}
	}
}

// TestConstraint: a verifier that trusts the authority for a domain does so for no other.
func TestConstraint(t *testing.T) {
	now := time.Now()
	root := hostRoot(t, domain, now)
	c, err := root.IssueHost("other.example", "h1", hostKey(t), now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if host, err := ca.HostOf(c, pool(root), "other.example", now); err == nil {
		t.Errorf("a host %q of another domain is believed", host)
	}
}

func TestNamesOfHosts(t *testing.T) {
	now := time.Now()
	root := hostRoot(t, domain, now)
	for _, host := range []string{"", ".", "..", "a/b", "a:b", "a%2fb", "a b", "ä", strings.Repeat("a", 129)} {
		if _, err := root.IssueHost(domain, host, hostKey(t), now, time.Hour); err == nil {
			t.Errorf("a certificate for %q", host)
		}
	}
	for _, d := range []string{"", "Upper.example", "a..b", "-a.example", "10.0.0.1", "a_b", "a/b", "a:1", strings.Repeat("a.", 130)} {
		if ca.CheckTrustDomain(d) == nil {
			t.Errorf("trust domain %q", d)
		}
	}
	if _, err := root.IssueHost(domain, "h1", hostKey(t), now, 400*24*time.Hour); err == nil {
		t.Error("a certificate outlives its authority")
	}
}

// TestParse puts an authority together again, and shows nothing of its key.
func TestParse(t *testing.T) {
	now := time.Now()
	root := hostRoot(t, domain, now)
	key, err := root.KeyDER()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ca.Parse(root.Certificate().Raw, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := again.IssueHost(domain, "h1", hostKey(t), now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.HostOf(c, pool(root), domain, now); err != nil {
		t.Error(err)
	}
	if _, err := ca.Parse(hostRoot(t, domain, now).Certificate().Raw, key); err == nil {
		t.Error("a key of another authority is taken")
	}
	if _, err := ca.Parse(root.Certificate().Raw, key[1:]); err == nil || strings.Contains(err.Error(), hex.EncodeToString(key[1:9])) {
		t.Errorf("a broken key: %v", err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "ca", root)
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s %x", root, root, root, root, root), log.String()} {
		if strings.Contains(shown, "PrivateKey") || strings.Contains(shown, "0x") || !strings.Contains(shown, "CA ") {
			t.Errorf("shown as %s", shown)
		}
	}
}
