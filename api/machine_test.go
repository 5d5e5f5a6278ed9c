package api_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/clientcert"
	"portcullis/api/credential"
	"portcullis/api/limit"
	"portcullis/api/roles"
	v1 "portcullis/api/v1"
)

// machines is an API that takes certificates of machines beside those of hosts.
type machines struct {
	*certificates
	root     *x509.Certificate
	key      *ecdsa.PrivateKey
	verifier *clientcert.Verifier
}

func newMachines(t *testing.T, edit ...func(*api.Options)) *machines {
	t.Helper()
	m := &machines{certificates: newCertificates(t)}
	m.root, m.key = m.authorityOfMachines("machines of tests")
	var err error
	if m.verifier, err = clientcert.New(m.authorities()); err != nil {
		t.Fatal(err)
	}
	m.Server = apitest.Start(t, m.site, append([]func(*api.Options){unlimited, func(o *api.Options) { o.Hosts, o.Machines = m.ca, m.verifier }}, edit...)...)
	m.roots = poolOfFile(t, m.CAFile)
	return m
}

func poolOfFile(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	text, err := os.ReadFile(file)
	fatal(t, err)
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("no certificate in %s", file)
	}
	return pool
}

func (m *machines) authorityOfMachines(name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	key := m.certificates.key()
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	fatal(m.t, err)
	root, err := x509.ParseCertificate(der)
	fatal(m.t, err)
	return root, key
}

// authorities are those of the configuration.
func (m *machines) authorities() []clientcert.Authority {
	return []clientcert.Authority{{
		Name: "site", TrustDomain: "example.org", Roots: []*x509.Certificate{m.root},
		Rules: []clientcert.Rule{
			{SPIFFE: "spiffe://example.org/viewer", Role: roles.Viewer},
			{SPIFFE: "spiffe://example.org/op/", Role: roles.Operator},
			{SPIFFE: "spiffe://example.org/acme", Role: roles.Tenant, Scope: credential.ScopeForm{Tenants: []string{"acme"}}},
		},
	}}
}

// machine issues a certificate for a path in the trust domain.
func (m *machines) machine(path string, life time.Duration) tls.Certificate {
	m.t.Helper()
	key := m.certificates.key()
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(life), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: path}},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, m.root, key.Public(), m.key)
	fatal(m.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// send sends a request with a body.
func (m *machines) send(client *http.Client, method, path, body string) int {
	m.t.Helper()
	r, err := http.NewRequestWithContext(m.t.Context(), method, m.URL+path, strings.NewReader(body))
	fatal(m.t, err)
	r.Header.Set("Content-Type", "application/json")
	w, err := client.Do(r)
	fatal(m.t, err)
	w.Body.Close()
	return w.StatusCode
}

// TestMachineIsAnOwner: a certificate has the role of its rule, and the audit log names its SPIFFE ID. With a token beside it the request is refused.
func TestMachineIsAnOwner(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	viewer, op, tenant := m.machine("/viewer", time.Hour), m.machine("/op/maas", time.Hour), m.machine("/acme", time.Hour)
	const name = "x509:site:spiffe://example.org/op/maas"
	if got := m.send(m.client(&viewer), "POST", "/v1/tenants", `{"name":"zeta"}`); got != 403 {
		t.Errorf("a viewer changes: %d", got)
	}
	if got := m.send(m.client(&op), "POST", "/v1/tenants", `{"name":"zeta"}`); got >= 300 {
		t.Errorf("an operator changes: %d", got)
	}
	if all := m.site.Actors(); len(all) == 0 || all[len(all)-1] != name {
		t.Errorf("the audit log names %q", all)
	}
	status, _, body := m.ask(m.client(&op), "GET", "/v1/whoami", "")
	var who v1.WhoAmI
	if err := json.Unmarshal(body, &who); status != 200 || err != nil || who.Name != name || who.Method != "x509" || who.Provider != "site" || who.Role != "operator" || who.Expires == nil || !who.Expires.Before(time.Now().Add(time.Hour)) {
		t.Errorf("whoami: %d %s", status, body)
	}
	status, _, body = m.ask(m.client(&tenant), "GET", "/v1/whoami", "")
	if err := json.Unmarshal(body, &who); status != 200 || err != nil || len(who.Scope.Tenants) != 1 || who.Scope.Tenants[0] != "acme" {
		t.Errorf("whoami of a tenant: %d %s", status, body)
	}
	for _, token := range []string{m.Operator, "unknown"} {
		if status, code, _ := m.ask(m.client(&op), "GET", "/v1/tenants", token); status != 400 || code != v1.CodeTwoCredentials {
			t.Errorf("with a token beside it: %d %s", status, code)
		}
		if status, code, _ := m.ask(m.client(&op), "GET", "/metrics", token); status != 400 || code != v1.CodeTwoCredentials {
			t.Errorf("metrics with a token beside it: %d %s", status, code)
		}
	}
	if status, _, _ := m.ask(m.client(&viewer), "GET", "/metrics", ""); status != 200 {
		t.Errorf("metrics: %d", status)
	}
	if status, _, _ := m.ask(m.client(nil), "GET", "/v1/tenants", m.Viewer); status != 200 {
		t.Errorf("a token without a certificate: %d", status)
	}
	if status, _, _ := m.ask(m.client(&op), "GET", "/v1/attest/status", ""); status != 401 {
		t.Errorf("a machine is asked as a host: %d", status)
	}
}

// TestMachineOfAnotherOrigin: a page of the web changes nothing with the certificate of the browser that shows it.
func TestMachineOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	op := m.machine("/op/maas", time.Hour)
	client := m.client(&op)
	for _, tt := range []struct {
		method, path, header, value string
		refused                     bool
	}{
		{"POST", "/v1/results/keys/rotate", "Sec-Fetch-Site", "cross-site", true},
		{"POST", "/v1/results/keys/rotate", "Sec-Fetch-Site", "same-site", true},
		{"POST", "/v1/results/keys/rotate", "Origin", "https://pages.example.net", true},
		{"POST", "/v1/results/keys/rotate", "Sec-Fetch-Site", "same-origin", false},
		{"POST", "/v1/results/keys/rotate", "Origin", m.URL, false},
		{"GET", "/v1/tenants", "Sec-Fetch-Site", "cross-site", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, m.URL+tt.path, http.NoBody)
		fatal(t, err)
		r.Header.Set(tt.header, tt.value)
		w, err := client.Do(r)
		fatal(t, err)
		w.Body.Close()
		if (w.StatusCode == http.StatusForbidden) != tt.refused || w.StatusCode == http.StatusUnauthorized {
			t.Errorf("%s %s with %s %s: %d, refused %v is wanted", tt.method, tt.path, tt.header, tt.value, w.StatusCode, tt.refused)
		}
	}
}

// TestMachineCertificatesThatOpenNothing: certificates that no authority signed, or that are of hosts, open nothing; neither does a token beside them.
func TestMachineCertificatesThatOpenNothing(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	own, _ := m.hold("h1")
	issued := m.issue(m.ca, "h1")
	stranger := m.selfSigned("h1")
	unnamed := m.machine("/unnamed", time.Hour)
	short := m.machine("/viewer", -time.Second)
	root, key := m.authorityOfMachines("machines of tests") // the same name, another key
	m.root, m.key, root, key = root, key, m.root, m.key
	impostor := m.machine("/op/maas", time.Hour)
	m.root, m.key = root, key
	for name, tt := range map[string]struct {
		cert *tls.Certificate
		want int
	}{
		"a host's":                      {&own, 403},
		"one of the authority of hosts": {&issued, 403},
		"signed by itself":              {&stranger, 401},
		"without a rule":                {&unnamed, 403},
		"ended":                         {&short, 401},
		"of another authority":          {&impostor, 401},
	} {
		for _, token := range []string{"", m.Operator} {
			for _, path := range []string{"/v1/tenants", "/v1/whoami", "/metrics"} {
				if status, code, _ := m.ask(m.client(tt.cert), "GET", path, token); status != tt.want || code == "" {
					t.Errorf("%s at %s, token %v: %d %s, want %d", name, path, token != "", status, code, tt.want)
				}
			}
		}
	}
}

// TestAuthorityForHostsIsNone: the certificates of hosts become no operators, whatever the configuration says of their authority.
func TestAuthorityForHostsIsNone(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	own, _ := m.hold("h1")
	leaf, err := x509.ParseCertificate(own.Certificate[0])
	fatal(t, err)
	all, err := m.ca.Authorities(t.Context())
	fatal(t, err)
	if _, err := clientcert.ReadRoots([]byte(all.Items[0].Certificate)); err == nil || !strings.Contains(err.Error(), "it signs certificates of hosts") {
		t.Errorf("the authority for hosts in a file: %v", err)
	}
	if m.verifier.Judges(leaf) {
		t.Error("the certificate of a host is judged as that of a machine")
	}
	if _, err := m.verifier.Verify([]*x509.Certificate{leaf}, time.Now()); err == nil {
		t.Error("the certificate of a host is accepted")
	}
}

// TestMachineIsRevoked: what a reload removes is refused at the next request of the connection that is open, and its stream ends.
func TestMachineIsRevoked(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	cert := m.machine("/viewer", time.Hour)
	client := m.client(&cert)
	opened, ended := m.stream(client, "/v1/hosts/h1/watch", "")
	<-opened
	change := func(edit func(*clientcert.Authority)) {
		all := m.authorities()
		edit(&all[0])
		fatal(t, m.verifier.Set(all))
		m.API.SetClientAuthorities()
	}
	change(func(a *clientcert.Authority) { a.Refuse = []clientcert.Denial{{SPIFFE: "spiffe://example.org/other"}} })
	select {
	case <-ended:
		t.Fatal("a stream ended though its certificate is good")
	default:
	}
	if status, _, _ := m.ask(client, "GET", "/v1/tenants", ""); status != 200 {
		t.Errorf("not revoked: %d", status)
	}
	change(func(a *clientcert.Authority) { a.Refuse = []clientcert.Denial{{SPIFFE: "spiffe://example.org/viewer"}} })
	<-ended
	if status, _, _ := m.ask(client, "GET", "/v1/tenants", ""); status != 401 {
		t.Errorf("revoked: %d", status)
	}
	change(func(a *clientcert.Authority) { a.Rules = a.Rules[1:] })
	if status, _, _ := m.ask(client, "GET", "/v1/tenants", ""); status != 403 {
		t.Errorf("without its rule: %d", status)
	}
	fatal(t, m.verifier.Set(nil))
	if status, _, _ := m.ask(client, "GET", "/v1/tenants", ""); status != 401 {
		t.Errorf("without authorities: %d", status)
	}
}

// stream opens a stream. The first channel is closed when it has begun, the second one when it has ended.
func (m *machines) stream(client *http.Client, path, token string) (opened, ended chan struct{}) {
	m.t.Helper()
	opened, ended = make(chan struct{}), make(chan struct{})
	r, err := http.NewRequestWithContext(m.t.Context(), "GET", m.URL+path, http.NoBody)
	fatal(m.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w, err := client.Do(r)
	fatal(m.t, err)
	if w.StatusCode != 200 {
		m.t.Fatalf("%s: %d", path, w.StatusCode)
	}
	go func() {
		defer close(ended)
		defer w.Body.Close()
		lines := bufio.NewScanner(w.Body)
		first := sync.OnceFunc(func() { close(opened) })
		for lines.Scan() {
			first()
		}
	}()
	return opened, ended
}

// TestStreamEndsWithItsCertificate: a stream ends when the certificate does, and that of a token when the token is removed.
func TestStreamEndsWithItsCertificate(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	cert := m.machine("/viewer", 3*time.Second)
	client := m.client(&cert)
	opened, ended := m.stream(client, "/v1/hosts/h1/watch", "")
	_, kept := m.stream(m.client(nil), "/v1/hosts/h1/watch", m.Operator)
	_, removed := m.stream(m.client(nil), "/v1/hosts/h1/watch", m.Viewer)
	<-opened
	<-ended
	if status, _, body := m.ask(client, "GET", "/v1/tenants", ""); status != 401 || !strings.Contains(string(body), "it ended at") {
		t.Errorf("on the open connection: %d %s", status, body)
	}
	tokens, err := credential.Parse("tokens.yaml", fmt.Appendf(nil, "tokens: [{name: olga, role: operator, sha256: %x}]\n", sha256.Sum256([]byte(m.Operator))))
	fatal(t, err)
	m.API.SetTokens(tokens)
	<-removed
	select {
	case <-kept:
		t.Error("the stream of a token that is still good ended")
	default:
	}
}

// TestWhoIsAskedForACertificate: a client is asked where there are authorities, and sees by their names whether one of its own is meant.
func TestWhoIsAskedForACertificate(t *testing.T) {
	t.Parallel()
	m := newMachines(t, func(o *api.Options) { o.Hosts = nil })
	fits, foreign := m.machine("/viewer", time.Hour), m.selfSigned("h1")
	asked := func() (times int, fitting, other bool) {
		client := m.client(nil)
		client.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(i *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			times++
			fitting, other = i.SupportsCertificate(&fits) == nil, i.SupportsCertificate(&foreign) == nil
			return &tls.Certificate{}, nil
		}
		for range 2 {
			if status, _, _ := m.ask(client, "GET", "/v1/tenants", m.Viewer); status != 200 {
				t.Errorf("a client that shows none: %d", status)
			}
			client.CloseIdleConnections()
		}
		return times, fitting, other
	}
	if n, fitting, other := asked(); n != 2 || !fitting || other {
		t.Errorf("asked %d times, for its own %v, for a foreign one %v; want each connection to be asked for its own", n, fitting, other)
	}
	fatal(t, m.verifier.Set(nil))
	if n, _, _ := asked(); n != 0 {
		t.Errorf("without authorities a client was asked %d times", n)
	}
}

// TestCertificatesOfMachinesAreNotResumed: a ticket would carry the certificate past its end, and to a thief without the key.
func TestCertificatesOfMachinesAreNotResumed(t *testing.T) {
	t.Parallel()
	m := newMachines(t, func(o *api.Options) { o.Hosts = nil })
	cert := m.machine("/viewer", time.Hour)
	client := m.client(&cert)
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), "GET", m.URL+"/v1/tenants", http.NoBody)
		fatal(t, err)
		w, err := client.Do(r)
		fatal(t, err)
		w.Body.Close()
		client.CloseIdleConnections()
		if w.TLS.DidResume || w.StatusCode != 200 {
			t.Errorf("status %d, resumed %v", w.StatusCode, w.TLS.DidResume)
		}
	}
}

// TestUnknownCertificatesCountAsStrangers: a certificate that is not verified yet has no share of its own, and a known one counts for its owner alone.
func TestUnknownCertificatesCountAsStrangers(t *testing.T) {
	t.Parallel()
	m := newMachines(t, func(o *api.Options) {
		o.Limits.Refusals, o.Limits.Tokens = limit.Rate{PerSecond: 0.001, Burst: 3}, limit.Rate{PerSecond: 0.001, Burst: 5}
	})
	good, foreign := m.machine("/viewer", time.Hour), m.selfSigned("h1")
	client := m.client(&good)
	if status, _, _ := m.ask(client, "GET", "/v1/tenants", ""); status != 200 {
		t.Fatalf("status %d", status)
	}
	stranger := m.client(&foreign)
	for n := range 4 {
		if status, _, _ := m.ask(stranger, "GET", "/v1/tenants", ""); (status == 429) != (n == 3) {
			t.Errorf("stranger, request %d: %d", n, status)
		}
	}
	for n := range 7 {
		if status, _, _ := m.ask(client, "GET", "/v1/tenants", ""); (status == 429) != (n >= 5) {
			t.Errorf("known, request %d: %d", n, status)
		}
	}
}

// TestMachineIsNotPassedOn: what only the leader answers is not asked in the name of a machine by another instance.
func TestMachineIsNotPassedOn(t *testing.T) {
	t.Parallel()
	u := &url.URL{Scheme: "https", Host: "leader.example:8443"}
	m := newMachines(t, func(o *api.Options) { o.Leadership = &led{peer: &api.Peer{Name: "b", URL: u}} })
	cert := m.machine("/op/maas", time.Hour)
	status, code, body := m.ask(m.client(&cert), "GET", "/v1/fabric/ports", "")
	if status != 421 || code != v1.CodeNotLeader || !strings.Contains(string(body), "https://leader.example:8443") {
		t.Errorf("%d %s", status, body)
	}
	if status, _, _ := m.ask(m.client(&cert), "GET", "/v1/tenants", ""); status != 200 {
		t.Errorf("what each instance answers: %d", status)
	}
}

// TestMachineVerifierIsBusy: a certificate that is not known waits for a turn like any other work for strangers.
func TestMachineVerifierIsBusy(t *testing.T) {
	t.Parallel()
	m := newMachines(t, func(o *api.Options) { o.Machines = busyVerifier{o.Machines} })
	cert := m.machine("/viewer", time.Hour)
	if status, code, _ := m.ask(m.client(&cert), "GET", "/v1/tenants", ""); status != 503 || code != v1.CodeUnavailable {
		t.Errorf("%d %s", status, code)
	}
}

// busyVerifier finds no turn.
type busyVerifier struct{ api.MachineVerifier }

func (b busyVerifier) Authenticate(ctx context.Context, shown []*x509.Certificate, now time.Time, _ clientcert.Turn) (credential.Principal, error) {
	return b.MachineVerifier.Authenticate(ctx, shown, now, func(context.Context) (func(), bool) { return nil, false })
}
