package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/ca"
	"portcullis/api/client"
	"portcullis/fabricsm/ib"
)

// shows is a server that answers with the subject of the client's certificate, and how many connections there were.
func shows(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "none"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"name":"` + name + r.Header.Get("Authorization") + `"}`))
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert, ClientCAs: x509.NewCertPool()}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// keep writes a pair with a time that no pair had before.
func keep(t *testing.T, dir string, pair ca.Pair, at time.Time) {
	t.Helper()
	for name, data := range map[string][]byte{"c.pem": pair.Cert, "c.key": pair.Key} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCertificateFiles: a client shows the certificate in the files, over new connections once that is another one. Files that do not fit together
// leave the one of before.
func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	s, dir, now := shows(t), t.TempDir(), time.Now()
	root, err := ca.New("machines", now)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(name string, made time.Time) ca.Pair {
		pair, err := root.IssueClient(name, made)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	source := client.CertificateFiles(filepath.Join(dir, "c.pem"), filepath.Join(dir, "c.key"))
	c, err := client.New(client.Options{URL: s.URL, CA: pemOf(s.Certificate().Raw), Certificate: source})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	want := func(what, name string) {
		t.Helper()
		who, err := c.WhoAmI(t.Context())
		if name == "" {
			if err == nil || !strings.Contains(err.Error(), "read client certificate") {
				t.Errorf("%s: %+v, %v", what, who, err)
			}
			return
		}
		if err != nil || who.Name != name {
			t.Errorf("%s: %+v, %v, want %s", what, who, err, name)
		}
	}
	want("no files", "")
	first, second := issue("first", now), issue("second", now)
	keep(t, dir, first, now)
	want("first", "first")
	want("again", "first")
	keep(t, dir, second, now.Add(time.Second))
	want("rotated", "second")
	keep(t, dir, ca.Pair{Cert: first.Cert, Key: second.Key}, now.Add(2*time.Second))
	want("half rotated", "second")
	if err := os.Remove(filepath.Join(dir, "c.key")); err != nil {
		t.Fatal(err)
	}
	want("without a key", "second")
	keep(t, dir, issue("ended", now.Add(-3*365*24*time.Hour)), now.Add(3*time.Second))
	want("ended, which the service says", "ended")
	if err := os.Remove(filepath.Join(dir, "c.pem")); err != nil {
		t.Fatal(err)
	}
	want("gone, and the one of before has ended", "")
}

// TestCertificateAndToken: a client has one credential.
func TestCertificateAndToken(t *testing.T) {
	t.Parallel()
	none := func() (*tls.Certificate, error) { return nil, errors.New("none") }
	for _, o := range []client.Options{
		{Token: "t"}, {Source: func(context.Context) (ib.SecretText, error) { return ib.SecretText{}, nil }},
	} {
		o.URL, o.Certificate = "https://fabric.example", none
		if _, err := client.New(o); err == nil || !strings.Contains(err.Error(), "want one of them") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	c, err := client.New(client.Options{URL: "https://127.0.0.1:1", Certificate: none})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WhoAmI(t.Context()); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a source that fails: %v", err)
	}
}
