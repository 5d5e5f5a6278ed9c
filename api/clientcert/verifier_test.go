package clientcert

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/ca"
	"portcullis/api/credential"
	"portcullis/api/roles"
)

// TestAccepted: the first rule that matches assigns role and scope, and the owner is named by authority and SPIFFE ID or DNS name.
func TestAccepted(t *testing.T) {
	t.Parallel()
	root := newIssuer(t, nil, "root")
	between := newIssuer(t, root, "between", func(c *x509.Certificate) { c.NotAfter = noon.Add(30 * time.Minute) })
	v := verifier(t, authorityOf(root))
	for name, tt := range map[string]struct {
		shown []*x509.Certificate
		want  credential.Principal
	}{
		"SPIFFE ID":                              {[]*x509.Certificate{root.svid([]string{uri})}, credential.Principal{Name: "x509:site:" + uri, Role: credential.Operator}},
		"path prefix":                            {[]*x509.Certificate{root.svid([]string{uri + "2"})}, credential.Principal{Name: "x509:site:" + uri + "2", Role: roles.Scheduler}},
		"tenant":                                 {[]*x509.Certificate{root.svid([]string{"spiffe://example.org/ns/acme/x"})}, credential.Principal{Name: "x509:site:spiffe://example.org/ns/acme/x", Role: credential.Tenant, Tenants: []string{"acme"}}},
		"without a usage":                        {[]*x509.Certificate{root.svid([]string{uri}, func(c *x509.Certificate) { c.ExtKeyUsage = nil })}, credential.Principal{Name: "x509:site:" + uri, Role: credential.Operator}},
		"DNS name":                               {[]*x509.Certificate{root.host([]string{"login.example.org", "Slurm.Example.org"})}, credential.Principal{Name: "x509:site:slurm.example.org", Role: credential.Viewer}},
		"another scheme":                         {[]*x509.Certificate{root.host([]string{"slurm.example.org"}, func(c *x509.Certificate) { c.URIs = []*url.URL{{Scheme: "https", Host: "x.example"}} })}, credential.Principal{Name: "x509:site:slurm.example.org", Role: credential.Viewer}},
		"with one between, which ends before it": {[]*x509.Certificate{between.svid([]string{uri}), between.cert}, credential.Principal{Name: "x509:site:" + uri, Role: credential.Operator, Expires: between.cert.NotAfter}},
	} {
		who, refused := ask(t, v, noon, tt.shown...)
		if refused != nil {
			t.Errorf("%s: %v", name, refused)
			continue
		}
		leaf := tt.shown[0]
		tt.want.Provider, tt.want.Machine, tt.want.Created = "site", true, leaf.NotBefore
		if tt.want.Expires.IsZero() {
			tt.want.Expires = leaf.NotAfter
		}
		if d := cmp.Diff(tt.want, who); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if known, ok := v.Known(leaf, noon); !ok || known.Name != who.Name {
			t.Errorf("%s: not known afterwards", name)
		}
		if _, ok := v.Known(leaf, who.Expires); ok {
			t.Errorf("%s: known at its end", name)
		}
	}
}

// rawURI puts a URI into a certificate that url.URL would write in another way.
func rawURI(t *testing.T, uris ...string) func(*x509.Certificate) {
	t.Helper()
	var list []asn1.RawValue
	for _, u := range uris {
		list = append(list, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(u)})
	}
	der, err := asn1.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *x509.Certificate) {
		c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: oidAltName, Value: der})
	}
}

// TestRefused: each rule of X509-SVID and RFC 5280 that a certificate breaks has it refused, with a reason of its own.
func TestRefused(t *testing.T) {
	t.Parallel()
	root := newIssuer(t, nil, "root")
	twin := newIssuer(t, nil, "root") // same name, another key
	below := newIssuer(t, root, "below")
	lower := newIssuer(t, below, "lower")
	lowest := newIssuer(t, lower, "lowest")
	bottom := newIssuer(t, lowest, "bottom")
	ended := newIssuer(t, root, "ended", func(c *x509.Certificate) { c.NotAfter = noon.Add(-time.Second) })
	server := newIssuer(t, root, "server", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	nameBound := newIssuer(t, root, "bound", func(c *x509.Certificate) {
		c.PermittedURIDomains, c.PermittedDNSDomains, c.PermittedDNSDomainsCritical = []string{"other.example"}, []string{"other.example"}, true
	})
	nochain := newIssuer(t, root, "leafy", func(c *x509.Certificate) { c.MaxPathLenZero = true })
	under := newIssuer(t, nochain, "under")
	large, err := rsa.GenerateKey(rand.Reader, 1024+512)
	if err != nil {
		t.Fatal(err)
	}
	withKey := func(public any) *x509.Certificate {
		tmpl := leafTemplate()
		tmpl.DNSNames = []string{"slurm.example.org"}
		return sign(t, root, tmpl, public, nil)
	}
	hosts, err := ca.NewHosts("example.org", noon.Add(-time.Minute), noon.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	host, err := hosts.IssueHost("example.org", "h1", &key.PublicKey, noon, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	good := []string{uri}
	machine := &issuer{t, nil, newKey(t)}
	tmpl := leafTemplate()
	tmpl.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/ns/prov/maas"}}
	machine.cert = sign(t, root, tmpl, machine.key.Public(), nil)
	one := func(c *x509.Certificate) []*x509.Certificate { return []*x509.Certificate{c} }
	usage := func(u ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = u }
	}
	v := verifier(t, authorityOf(root))
	for name, tt := range map[string]struct {
		shown []*x509.Certificate
		want  string
	}{
		"none":                         {nil, "there is none"},
		"another authority":            {one(newIssuer(t, nil, "other").svid(good)), "no authority of site vouches for it"},
		"an authority of the name":     {one(twin.svid(good)), "no authority of site vouches for it"},
		"signed by itself":             {one(sign(t, nil, func() *x509.Certificate { c := leafTemplate(); c.DNSNames = []string{"slurm.example.org"}; return c }(), key.Public(), key)), "no authority of site vouches for it"},
		"signed by another machine":    {[]*x509.Certificate{machine.svid(good), machine.cert}, "no authority of site vouches for it"},
		"ended":                        {one(root.svid(good, func(c *x509.Certificate) { c.NotAfter = noon.Add(-time.Second) })), "it ended at 2026-11-30T11:59:59Z"},
		"not yet":                      {one(root.svid(good, func(c *x509.Certificate) { c.NotBefore = noon.Add(time.Second) })), "it is not good before 2026-11-30T12:00:01Z"},
		"one above has ended":          {[]*x509.Certificate{ended.svid(good), ended.cert}, "an authority above it has ended"},
		"one above is missing":         {one(below.svid(good)), "no authority of site vouches for it"},
		"one above is for servers":     {[]*x509.Certificate{server.svid(good), server.cert}, "no authority of site vouches for it"},
		"one above is for other URIs":  {[]*x509.Certificate{nameBound.svid(good), nameBound.cert}, "no authority of site vouches for it"},
		"one above is for other names": {[]*x509.Certificate{nameBound.host([]string{"slurm.example.org"}), nameBound.cert}, "no authority of site vouches for it"},
		"a path that is too long":      {[]*x509.Certificate{under.svid(good), under.cert, nochain.cert}, "no authority of site vouches for it"},
		"many certificates":            {[]*x509.Certificate{bottom.svid(good), bottom.cert, lowest.cert, lower.cert, below.cert}, "5 certificates were shown, at most 4"},
		"an authority":                 {one(root.svid(good, func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, c.KeyUsage|x509.KeyUsageCertSign })), "it is of an authority"},
		"key usage certSign":           {one(root.svid(good, func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCRLSign })), "its key usage lets it sign"},
		"key usage without signatures": {one(root.svid(good, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment })), "no digitalSignature"},
		"no key usage":                 {one(root.svid(good, func(c *x509.Certificate) { c.KeyUsage = 0 })), "no digitalSignature"},
		"a server's":                   {one(root.svid(good, usage(x509.ExtKeyUsageServerAuth))), "no clientAuth"},
		"for anything":                 {one(root.svid(good, usage(x509.ExtKeyUsageAny))), "no clientAuth"},
		"for something unknown":        {one(root.svid(good, usage(), func(c *x509.Certificate) { c.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{1, 2, 3}} })), "no clientAuth"},
		"a DNS name without a usage":   {one(root.host([]string{"slurm.example.org"}, usage())), "no clientAuth"},
		"a DNS name for servers":       {one(root.host([]string{"slurm.example.org"}, usage(x509.ExtKeyUsageServerAuth))), "no clientAuth"},
		"a wildcard":                   {one(root.host([]string{"slurm.example.org", "*.example.org"})), "a wildcard names no machine"},
		"no name":                      {one(root.host(nil, func(c *x509.Certificate) { c.Subject.CommonName = "slurm.example.org" })), "neither a SPIFFE ID nor a DNS name"},
		"two SPIFFE IDs":               {one(root.svid([]string{uri, uri + "2"})), "it has 2 URIs"},
		"a SPIFFE ID and a URI":        {one(root.svid([]string{"https://x.example/", uri})), "it has 2 URIs"},
		"another trust domain":         {one(root.svid([]string{"spiffe://evil.example/ns/prov/maas"})), "its trust domain \"evil.example\" is none of those"},
		"a trust domain alone":         {one(root.svid([]string{"spiffe://example.org"})), "has no path"},
		"a SPIFFE ID in capitals":      {one(root.svid(nil, rawURI(t, "SPIFFE://example.org/ns/prov/maas"))), "malformed"},
		"an encoded SPIFFE ID":         {one(root.svid(nil, rawURI(t, "spiffe://example.org/ns/prov/%6daas"))), "malformed"},
		"a SPIFFE ID with a fragment":  {one(root.svid(nil, rawURI(t, uri+"#"))), "malformed"},
		"a SPIFFE ID with a query":     {one(root.svid(nil, rawURI(t, uri+"?"))), "malformed"},
		"a SPIFFE ID with a port":      {one(root.svid(nil, rawURI(t, "spiffe://example.org:80/ns/prov/maas"))), "malformed"},
		"a SPIFFE ID with dots":        {one(root.svid(nil, rawURI(t, "spiffe://example.org/ns/prov/../maas"))), "malformed"},
		"a DNS name beside the ID":     {one(root.svid([]string{"spiffe://example.org/else"}, func(c *x509.Certificate) { c.DNSNames = []string{"slurm.example.org"} })), "no rule of the authority site"},
		"without a rule":               {one(root.host([]string{"else.example.org"})), "no rule of the authority site assigns a role to else.example.org"},
		"a small key":                  {one(withKey(&large.PublicKey)), "RSA key of 1536 bits"},
		"a huge key":                   {one(withKey(&rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 8191, 1), E: 65537})), "RSA key of 8192 bits"},
		"a host of this service":       {one(host), "it is one of a host"},
		"below an authority for hosts": {[]*x509.Certificate{root.svid(good), hosts.Certificate()}, "it is one of a host"},
		"a large certificate":          {one(root.svid(good, func(c *x509.Certificate) { c.Subject.CommonName = strings.Repeat("x", 9000) })), "bytes was shown, at most 8192"},
	} {
		_, refused := ask(t, v, noon, tt.shown...)
		if refused == nil || !strings.Contains(refused.Detail, tt.want) {
			t.Errorf("%s: %v, want %q", name, refused, tt.want)
		}
		if forbidden := strings.Contains(tt.want, "no rule"); refused != nil && refused.Forbidden != forbidden {
			t.Errorf("%s: forbidden %v", name, refused.Forbidden)
		}
		if len(tt.shown) > 0 {
			if _, ok := v.Known(tt.shown[0], noon); ok {
				t.Errorf("%s: known afterwards", name)
			}
		}
	}
}

// TestDenials: what refuse lists is refused whatever the rules say, and another certificate of the same machine is not if it is the serial.
func TestDenials(t *testing.T) {
	t.Parallel()
	root := newIssuer(t, nil, "root")
	other := func(c *x509.Certificate) { c.SerialNumber = big.NewInt(77) }
	id, next, dns := root.svid([]string{uri}), root.svid([]string{uri}, other), root.host([]string{"slurm.example.org", "login.example.org"}, other)
	for _, tt := range []struct {
		deny               Denial
		id, next, dnsNamed bool // still accepted
	}{
		{Denial{Serial: "0A:1b:2c"}, false, true, true},
		{Denial{Serial: "a1b2c"}, false, true, true},
		{Denial{Serial: "00000a1b2c"}, false, true, true},
		{Denial{SPIFFE: uri}, false, false, true},
		{Denial{SPIFFE: "spiffe://example.org/ns/"}, false, false, true},
		{Denial{SPIFFE: "spiffe://example.org/"}, false, false, true},
		{Denial{SPIFFE: "spiffe://example.org/ns/prov/maa"}, true, true, true},
		{Denial{DNS: "login.example.org"}, true, true, false},
	} {
		a := authorityOf(root)
		v := verifier(t, a)
		for _, c := range []*x509.Certificate{id, next, dns} {
			if _, refused := ask(t, v, noon, c); refused != nil {
				t.Fatal(refused)
			}
		}
		a.Refuse = []Denial{tt.deny}
		if err := v.Set([]Authority{a}); err != nil {
			t.Fatal(err)
		}
		for n, c := range []*x509.Certificate{id, next, dns} {
			want := []bool{tt.id, tt.next, tt.dnsNamed}[n]
			_, refused := ask(t, v, noon, c)
			if (refused == nil) != want || refused != nil && !strings.Contains(refused.Detail, "the list refuse of the authority site has it") {
				t.Errorf("%+v, certificate %d: %v, want accepted: %v", tt.deny, n, refused, want)
			}
		}
	}
}

// TestReplacedAuthorities: what was verified by authorities that are gone counts no more, and a mistake leaves those of before.
func TestReplacedAuthorities(t *testing.T) {
	t.Parallel()
	root, next := newIssuer(t, nil, "root"), newIssuer(t, nil, "next")
	v, c := verifier(t, authorityOf(root)), root.svid([]string{uri})
	if _, refused := ask(t, v, noon, c); refused != nil {
		t.Fatal(refused)
	}
	broken := authorityOf(next)
	broken.Rules = nil
	if err := v.Set([]Authority{broken}); err == nil {
		t.Error("an authority without rules is taken")
	}
	if _, ok := v.Known(c, noon); !ok {
		t.Error("a mistake took away what was in use")
	}
	if err := v.Set([]Authority{authorityOf(next)}); err != nil {
		t.Fatal(err)
	}
	if _, ok := v.Known(c, noon); ok {
		t.Error("a certificate of an authority that is gone is known")
	}
	if _, refused := ask(t, v, noon, c); refused == nil {
		t.Error("a certificate of an authority that is gone is accepted")
	}
	if !v.Judges(c) {
		t.Error("it is left to others")
	}
	if err := v.Set(nil); err != nil || v.Judges(c) {
		t.Errorf("without authorities: %v, judges %v", err, v.Judges(c))
	}
	if _, refused := ask(t, v, noon, c); refused == nil {
		t.Error("accepted without authorities")
	}
}

// TestWorkIsBounded: a certificate that is not known is not looked at without a turn, a known one needs none, and what is remembered is bounded.
func TestWorkIsBounded(t *testing.T) {
	t.Parallel()
	root := newIssuer(t, nil, "root")
	v, c := verifier(t, authorityOf(root)), root.svid([]string{uri})
	none := func(context.Context) (func(), bool) { return nil, false }
	_, err := v.Authenticate(t.Context(), []*x509.Certificate{c}, noon, none)
	if r, ok := errors.AsType[*Refused](err); !ok || !r.Busy {
		t.Fatalf("without a turn: %v", err)
	}
	left := 0
	if _, err := v.Authenticate(t.Context(), []*x509.Certificate{c}, noon, func(context.Context) (func(), bool) { return func() { left++ }, true }); err != nil || left != 1 {
		t.Fatalf("%v, turns returned: %d", err, left)
	}
	if _, err := v.Authenticate(t.Context(), []*x509.Certificate{c}, noon, none); err != nil {
		t.Errorf("a known one: %v", err)
	}
	s := v.now.Load()
	for n := range maxVerified + 10 {
		s.remember(&x509.Certificate{Raw: []byte{byte(n), byte(n >> 8)}}, credential.Principal{})
	}
	if len(s.verified) != maxVerified {
		t.Errorf("%d certificates are remembered", len(s.verified))
	}
}

// TestSeveralAuthorities: each vouches for its own trust domain alone, and for DNS names by its own rules.
func TestSeveralAuthorities(t *testing.T) {
	t.Parallel()
	first, second := newIssuer(t, nil, "first"), newIssuer(t, nil, "second")
	a, b := authorityOf(first), authorityOf(second)
	b.Name, b.TrustDomain = "other", "other.example"
	b.Rules = []Rule{{SPIFFE: "spiffe://other.example/", Role: credential.Viewer}, {DNS: "slurm.example.org", Role: roles.Auditor}}
	v := verifier(t, a, b)
	for _, tt := range []struct {
		c    *x509.Certificate
		name string
		role credential.Role
	}{
		{first.svid([]string{uri}), "x509:site:" + uri, credential.Operator},
		{second.svid([]string{uri}), "", ""},
		{second.svid([]string{"spiffe://other.example/x"}), "x509:other:spiffe://other.example/x", credential.Viewer},
		{first.svid([]string{"spiffe://other.example/x"}), "", ""},
		{first.host([]string{"slurm.example.org"}), "x509:site:slurm.example.org", credential.Viewer},
		{second.host([]string{"slurm.example.org"}), "x509:other:slurm.example.org", roles.Auditor},
	} {
		who, refused := ask(t, v, noon, tt.c)
		if who.Name != tt.name || who.Role != tt.role || (refused == nil) != (tt.name != "") {
			t.Errorf("%v: %+v, %v", append(slices.Clone(tt.c.DNSNames), tt.name), who, refused)
		}
	}
}

// TestNothingShown: to verify no certificate is a refusal, also where a reload took away the authorities in between.
func TestNothingShown(t *testing.T) {
	v := verifier(t, authorityOf(newIssuer(t, nil, "a")))
	if who, err := v.Verify(nil, noon); err == nil || who.Name != "" {
		t.Errorf("%+v, %v", who, err)
	}
}

// TestKnownIsBounded: a certificate that is too large to be verified is not looked up: its digest would be work for each request of a
// stranger.
func TestKnownIsBounded(t *testing.T) {
	root := newIssuer(t, nil, "a")
	v, leaf := verifier(t, authorityOf(root)), root.svid([]string{uri})
	if _, r := ask(t, v, noon, leaf); r != nil {
		t.Fatal(r)
	}
	large := *leaf
	large.Raw = append(slices.Clone(leaf.Raw), make([]byte, maxShown)...)
	v.now.Load().verified[sha256.Sum256(large.Raw)] = credential.Principal{Name: "x509:site:large", Expires: noon.Add(time.Hour)}
	if who, ok := v.Known(&large, noon); ok {
		t.Errorf("looked up: %+v", who)
	}
	if who, ok := v.Known(leaf, noon); !ok || who.Name == "" {
		t.Errorf("not known: %+v", who)
	}
}
