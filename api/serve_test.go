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
	"portcullis/api/servercert"
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

func selfSigned(t *testing.T) *servercert.Certificate {
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
	cert, err := servercert.Load(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
