package clientcert

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"portcullis/api/credential"
	"portcullis/api/roles"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const uri = "spiffe://example.org/ns/prov/maas"

// issuer signs certificates of tests.
type issuer struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes a certificate; parent nil: it signs itself.
func sign(t testing.TB, parent *issuer, tmpl *x509.Certificate, public crypto.PublicKey, own *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	by, key := tmpl, own
	if parent != nil {
		by, key = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, by, public, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func authorityTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

// newIssuer makes an authority below parent, which may be nil; change may change its template.
func newIssuer(t testing.TB, parent *issuer, name string, change ...func(*x509.Certificate)) *issuer {
	t.Helper()
	tmpl, key := authorityTemplate(name), newKey(t)
	for _, f := range change {
		f(tmpl)
	}
	return &issuer{t, sign(t, parent, tmpl, key.Public(), key), key}
}

func leafTemplate() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(0x0a1b2c), NotBefore: noon.Add(-time.Minute), NotAfter: noon.Add(time.Hour), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// svid issues a certificate for SPIFFE IDs.
func (i *issuer) svid(ids []string, change ...func(*x509.Certificate)) *x509.Certificate {
	i.t.Helper()
	tmpl := leafTemplate()
	for _, id := range ids {
		u, err := url.Parse(id)
		if err != nil {
			i.t.Fatal(err)
		}
		tmpl.URIs = append(tmpl.URIs, u)
	}
	for _, f := range change {
		f(tmpl)
	}
	return sign(i.t, i, tmpl, newKey(i.t).Public(), nil)
}

// host issues a certificate for DNS names.
func (i *issuer) host(names []string, change ...func(*x509.Certificate)) *x509.Certificate {
	i.t.Helper()
	tmpl := leafTemplate()
	tmpl.DNSNames = names
	for _, f := range change {
		f(tmpl)
	}
	return sign(i.t, i, tmpl, newKey(i.t).Public(), nil)
}

func free(context.Context) (func(), bool) { return func() {}, true }

func rules() []Rule {
	return []Rule{
		{SPIFFE: uri, Role: credential.Operator},
		{SPIFFE: "spiffe://example.org/ns/prov/", Role: roles.Scheduler},
		{SPIFFE: "spiffe://example.org/ns/acme/", Role: credential.Tenant, Scope: credential.ScopeForm{Tenants: []string{"acme"}}},
		{DNS: "slurm.example.org", Role: credential.Viewer},
	}
}

func authorityOf(i *issuer) Authority {
	return Authority{Name: "site", TrustDomain: "example.org", Roots: []*x509.Certificate{i.cert}, Rules: rules()}
}

func verifier(t testing.TB, all ...Authority) *Verifier {
	t.Helper()
	v, err := New(all)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ask returns the owner of certificates, or how they are refused.
func ask(t testing.TB, v *Verifier, now time.Time, shown ...*x509.Certificate) (credential.Principal, *Refused) {
	t.Helper()
	who, err := v.Authenticate(t.Context(), shown, now, free)
	if err == nil {
		return who, nil
	}
	r, ok := errors.AsType[*Refused](err)
	if !ok || r.Hint == "" || !strings.HasPrefix(r.Error(), "client certificate: ") || who.Name != "" {
		t.Fatalf("%v (%+v): want a refusal with a hint and without an owner", err, who)
	}
	return who, r
}
