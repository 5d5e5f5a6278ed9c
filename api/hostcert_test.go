package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/apitest"
	"portcullis/api/hostca"
	"portcullis/api/keyring/keyringtest"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
)

const trustDomain = "fabric.example"

// certificates is an API that issues certificates to hosts, with the material they are made of.
type certificates struct {
	*apitest.Server
	t     *testing.T
	site  *apitest.Site
	stall *storetest.Stalling // under store
	store *store.Store        // of the authority
	ca    *hostca.Service
	roots *x509.CertPool
}

func newCertificates(t *testing.T) *certificates {
	t.Helper()
	c := &certificates{t: t, stall: &storetest.Stalling{Backend: memory.New(time.Now)}}
	c.store = store.New(c.stall, "")
	c.authority(-20 * time.Hour) // the first one is that old
	c.ca = c.authority(0)
	c.site = apitest.NewSite(t, func(o *admission.Options) { o.Certifier = c.ca })
	c.Server = apitest.Start(t, c.site, unlimited, func(o *api.Options) {
		o.Hosts, o.Limits.Attestations = c.ca, o.Limits.Requests
	})
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	c.roots = x509.NewCertPool()
	c.roots.AppendCertsFromPEM(pem)
	c.site.Register("h1", "h2")
	c.site.Join("h1", "h2")
	return c
}

// authority is the service's, whose clock is off by so much.
func (c *certificates) authority(off time.Duration) *hostca.Service {
	c.t.Helper()
	s, err := hostca.New(hostca.Options{
		Store: c.store, Root: keyringtest.Root(c.t, "a"), Domain: trustDomain, Log: storetest.Quiet(), Now: func() time.Time { return time.Now().Add(off) },
	})
	if err == nil {
		err = s.Prepare(c.t.Context())
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func (c *certificates) key() *ecdsa.PrivateKey {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	return key
}

// issue has an authority certify a fresh key.
func (c *certificates) issue(from *hostca.Service, host string) tls.Certificate {
	c.t.Helper()
	key := c.key()
	cert, err := from.Issue(c.t.Context(), host, &key.PublicKey)
	if err != nil {
		c.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// hold hands a host over, which has its key certified then. It returns the certificate, and the status token.
func (c *certificates) hold(host string) (tls.Certificate, string) {
	c.t.Helper()
	a := c.site.Attest(host)
	seal := a.Seal(c.t)
	key := a.Certify(c.t, seal)
	sealed, err := c.site.Submit(a, seal)
	fatal(c.t, err)
	return tls.Certificate{Certificate: [][]byte{sealed.Certificate}, PrivateKey: key}, a.Result.StatusToken
}

// selfSigned has the right name, but no authority vouches for it.
func (c *certificates) selfSigned(host string) tls.Certificate {
	c.t.Helper()
	key := c.key()
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: true, URIs: []*url.URL{{Scheme: "spiffe", Host: trustDomain, Path: "/host/" + host}},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// client shows a certificate whatever the service asks for; nil: none.
func (c *certificates) client(cert *tls.Certificate) *http.Client {
	conf := &tls.Config{RootCAs: c.roots, MinVersion: tls.VersionTLS13, ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	if cert != nil {
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true}}
	c.t.Cleanup(client.CloseIdleConnections)
	return client
}

// ask returns status and code of the answer.
func (c *certificates) ask(client *http.Client, method, path, token string) (int, string, []byte) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.URL+path, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w, err := client.Do(r)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer w.Body.Close()
	body, err := io.ReadAll(io.LimitReader(w.Body, 1<<20))
	if err != nil {
		c.t.Fatal(err)
	}
	var p v1.Problem
	if w.StatusCode >= 400 {
		if err := json.Unmarshal(body, &p); err != nil {
			c.t.Fatalf("%s %s: %d %q", method, path, w.StatusCode, body)
		}
	}
	return w.StatusCode, p.Code, body
}

const statusRoute = "GET /v1/attest/status"

// TestEveryRouteWithACertificate asks every route with client certificates: foreign
// ones open nothing, not even beside an operator's token, and a host's own opens its
// status.
func TestEveryRouteWithACertificate(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	other := newCertificates(t)
	own, status := c.hold("h1")
	before := len(c.site.Actors())
	var (
		foreign  = other.issue(other.ca, "h1")
		expired  = c.issue(c.authority(-9*time.Hour), "h1")
		early    = c.issue(c.authority(time.Hour), "h1")
		self     = c.selfSigned("h1")
		replaced = c.issue(c.ca, "h1")
		another  = c.issue(c.ca, "h2")
		nobody   = c.issue(c.ca, "h3")
	)
	for _, tc := range []struct {
		name           string
		cert           *tls.Certificate
		others, status int
	}{
		{"certificate of another CA", &foreign, 401, 401},
		{"certificate that has expired", &expired, 401, 401},
		{"certificate of the time to come", &early, 401, 401},
		{"self-signed certificate with the right name", &self, 401, 401},
		{"certificate that the host does not hold any more", &replaced, 403, 401},
		{"certificate for another host, which does not hold it", &another, 403, 401},
		{"certificate for a host that is not in inventory", &nobody, 403, 401},
		{"the host's own certificate", &own, 403, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := c.client(tc.cert)
			for name, who := range access {
				method, path, _ := strings.Cut(name, " ")
				path = strings.NewReplacer("{id}", "x", "{name}", "x").Replace(path)
				if who == "public" {
					if got, _, _ := c.ask(client, method, path, ""); got == 401 || got == 403 {
						t.Errorf("%s, for everybody: %d", name, got)
					}
					continue
				}
				for i, token := range []string{"", c.Viewer, c.Operator, status} {
					want := tc.others
					if name == statusRoute {
						want = tc.status
					}
					code := map[int]string{401: v1.CodeUnauthenticated, 403: v1.CodeForbidden}[want]
					if status, got, body := c.ask(client, method, path, token); status != want || got != code {
						t.Errorf("%s with token %d: %d %s, want %d %s: %s", name, i, status, got, want, code, body)
					}
				}
			}
			for _, path := range []string{"/metrics", "/metrics/fabric"} {
				if status, _, _ := c.ask(client, "GET", path, c.Operator); status != tc.others {
					t.Errorf("%s: %d, want %d", path, status, tc.others)
				}
			}
		})
	}
	if got := c.site.Actors()[before:]; len(got) > 0 {
		t.Errorf("something was changed: %v", got)
	}
}

// TestRevokedCertificate: a change of the record counts at the next request, on the connection that is open.
func TestRevokedCertificate(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	own, _ := c.hold("h1")
	client := c.client(&own)
	if status, _, body := c.ask(client, "GET", "/v1/attest/status", ""); status != 200 || !strings.Contains(string(body), `"id":"h1"`) {
		t.Fatalf("own status: %d %s", status, body)
	}
	c.site.Release("h1")
	if status, code, _ := c.ask(client, "GET", "/v1/attest/status", ""); status != 401 || code != v1.CodeUnauthenticated {
		t.Errorf("revoked: %d %s, want 401", status, code)
	}
}

// TestAuthorityRotates: certificates of before count on until the authority is changed
// at once, and the listener asks for those of the new one without a restart.
func TestAuthorityRotates(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	own, _ := c.hold("h1")
	status := func(cert *tls.Certificate) int {
		t.Helper()
		got, _, _ := c.ask(c.client(cert), "GET", "/v1/attest/status", "")
		return got
	}
	if _, err := c.ca.Rotate(t.Context(), "olga", v1.AuthorityRotation{Reason: "drill"}); err != nil {
		t.Fatal(err)
	}
	if got := status(&own); got != 200 {
		t.Errorf("after a rotation: %d, want 200", got)
	}
	all, err := c.ca.Rotate(t.Context(), "olga", v1.AuthorityRotation{Reason: "stolen", AtOnce: true})
	if err != nil || len(all.Items) != 1 {
		t.Fatalf("at once: %+v, %v", all, err)
	}
	if got := status(&own); got != 401 {
		t.Errorf("after the authority was changed at once: %d, want 401", got)
	}
	fresh, _ := c.hold("h1")
	asked := false
	client := c.client(nil)
	client.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(i *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked = i.SupportsCertificate(&fresh) == nil
		return &fresh, nil
	}
	if got, _, _ := c.ask(client, "GET", "/v1/attest/status", ""); got != 200 || !asked {
		t.Errorf("a certificate of the new authority: %d, asked for %v", got, asked)
	}
}

// TestCertificatesAreNotResumed: with a session ticket a thief could go on without the key, which never leaves the TPM.
func TestCertificatesAreNotResumed(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	own, _ := c.hold("h1")
	client := c.client(&own)
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), "GET", c.URL+"/v1/attest/status", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		w, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		w.Body.Close()
		client.CloseIdleConnections()
		if w.TLS.DidResume || w.StatusCode != 200 {
			t.Errorf("status %d, resumed %v", w.StatusCode, w.TLS.DidResume)
		}
	}
}

// TestWithoutAuthority: a service that issues no certificates asks for none, and takes none.
func TestWithoutAuthority(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	own := c.issue(c.ca, "h1")
	plain := apitest.Start(t, c.site)
	c.URL, c.CAFile = plain.URL, plain.CAFile
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	c.roots.AppendCertsFromPEM(pem)
	if status, code, _ := c.ask(c.client(&own), "GET", "/v1/attest/status", ""); status != 401 || code != v1.CodeUnauthenticated {
		t.Errorf("status %d %s, want 401", status, code)
	}
	if status, code, _ := c.ask(c.client(nil), "GET", "/v1/host-authority", plain.Viewer); status != 503 || code != v1.CodeUnavailable {
		t.Errorf("authorities: %d %s, want 503", status, code)
	}
}

// TestStoreThatDoesNotAnswer: strangers' connections wait for no store, which no
// certificate is believed without.
func TestStoreThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	own, _ := c.hold("h1")
	client := c.client(&own) // its connection stands when the store ends
	if status, _, body := c.ask(client, "GET", "/v1/attest/status", ""); status != 200 {
		t.Fatalf("own status: %d %s", status, body)
	}
	c.stall.Stall(true)
	if _, err := c.ca.Rotate(expired(t), "olga", v1.AuthorityRotation{Reason: "what is at hand counts no more", AtOnce: true}); err == nil {
		t.Fatal("rotated without a store")
	}
	if status, _, _ := c.ask(client, "GET", "/v1/attest/status", ""); status != 503 {
		t.Errorf("with a certificate, on an open connection: %d, want 503", status)
	}
	if status, _, _ := c.ask(c.client(&own), "GET", "/v1/attest/status", ""); status != 401 {
		t.Errorf("with a certificate: %d, want 401", status)
	}
	if status, _, _ := c.ask(c.client(nil), "GET", "/v1/hosts", c.Viewer); status != 200 {
		t.Errorf("with a token: %d, want 200", status)
	}
}

func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
