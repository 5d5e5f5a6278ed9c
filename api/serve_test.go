package api_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/ca"
	"portcullis/api/limit"
)

func TestOnlyTLS13(t *testing.T) {
	s := apitest.Start(t, apitest.NewSite(t))
	addr := strings.TrimPrefix(s.URL, "https://")
	_, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.2: %v, want a refusal of the version", err)
	}
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if v := c.ConnectionState().Version; v != tls.VersionTLS13 {
		t.Errorf("version %#x, want TLS 1.3", v)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	s := apitest.Start(t, apitest.NewSite(t))
	c, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: x\r\nX-Fill: "+strings.Repeat("a", 64<<10)+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(io.LimitReader(c, 1<<10))
	if err != nil || !bytes.Contains(answer, []byte(" 431 ")) {
		t.Errorf("answer %q, %v; want 431", answer, err)
	}
}

// Connections past the rate of their source are dropped before TLS.
func TestConnectionsAreLimited(t *testing.T) {
	s := apitest.Start(t, apitest.NewSite(t), func(o *api.Options) {
		o.Limits.Connections = limit.Rate{PerSecond: 0.001, Burst: 1}
	})
	addr := strings.TrimPrefix(s.URL, "https://")
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}); err == nil {
		c.Close()
		t.Error("second connection was served")
	}
}

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
	cert, err := api.LoadCertificate(certFile, keyFile)
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
	if _, err := api.LoadCertificate(filepath.Join(dir, "none.pem"), keyFile); err == nil || !strings.Contains(err.Error(), "none.pem") {
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
	cert, err := api.LoadCertificate(certFile, keyFile)
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
		other, err := api.LoadCertificate(certFile, keyFile)
		if err != nil {
			t.Fatalf("a service does not start with a certificate that is %s: %v", what, err)
		}
		if err := other.Usable(now); err == nil {
			t.Errorf("a certificate that is %s is usable", what)
		}
	}
}

// A stop lets a request under way finish, and Serve then returns nil.
func TestServeDrains(t *testing.T) {
	b := newSlowBackend(t)
	o, _, viewer, err := apitest.Options(b)
	if err != nil {
		t.Fatal(err)
	}
	cert := selfSigned(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- api.New(o).Serve(ctx, l, cert) }()

	answered := make(chan int, 1)
	go func() {
		h := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		defer h.CloseIdleConnections()
		req, _ := http.NewRequest("GET", "https://"+l.Addr().String()+"/v1/sm", nil)
		req.Header.Set("Authorization", "Bearer "+viewer)
		resp, err := h.Do(req)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	<-b.entered
	stop()
	close(b.leave)
	if got := <-answered; got != 200 {
		t.Errorf("request under way was answered %d, want 200", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener still accepts")
	}
}

func selfSigned(t *testing.T) *api.Certificate {
	t.Helper()
	root, err := ca.New("root", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := root.IssueServer([]string{"127.0.0.1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	if err := errors.Join(os.WriteFile(certFile, pair.Cert, 0o600), os.WriteFile(keyFile, pair.Key, 0o600)); err != nil {
		t.Fatal(err)
	}
	cert, err := api.LoadCertificate(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
