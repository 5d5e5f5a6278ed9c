package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The service has pages for browsers unless the configuration says that there are none.
func TestPagesSwitch(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		dir, address := install(t, "--fabric-port", nobody())
		if !on {
			edit(t, dir, map[string]string{"  web: true\n": "  web: false\n"})
		}
		start(t, dir)
		pem, err := os.ReadFile(filepath.Join(dir, "tls", "ca.pem"))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
		t.Cleanup(browser.CloseIdleConnections)
		r, err := browser.Get("https://" + address + "/")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		shown := r.StatusCode == http.StatusOK && r.Request.URL.Path == "/ui/" && strings.Contains(string(text), `<main id="main"`)
		if err != nil || shown != on {
			t.Errorf("api.web %v: %s, status %d, %v", on, r.Request.URL, r.StatusCode, err)
		}
	}
}
