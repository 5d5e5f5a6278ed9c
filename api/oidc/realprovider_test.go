package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"portcullis/api/credential"
	"portcullis/packaging/testenv"
)

// TestRealProvider: tokens that a provider of another project makes are accepted if they are for this service, of an issuer that is
// configured, not over, and signed with a key that it publishes now; all others are refused by their reason.
func TestRealProvider(t *testing.T) {
	t.Parallel()
	p := testenv.StartProviders(t)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(p.CA) {
		t.Fatal("the provider has no CA")
	}
	now := time.Now()
	issuer := Issuer{
		Name: "corp", URL: p.URLs[0], Audience: "portcullis", TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13},
		Rules: []Rule{{Claim: "sub", Value: "id1", Role: credential.Viewer}},
	}
	v := verifierOf(t, issuer)
	refresh := func() {
		t.Helper()
		if err := v.providers[issuer.URL].refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	want := func(what, token string, at time.Time, refused string) {
		t.Helper()
		// The context is over, so that no keys are waited for: the test says when they are read.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		who, err := v.Authenticate(ctx, token, at, func(context.Context) (func(), bool) { return func() {}, true })
		r, _ := errors.AsType[*Refused](err)
		switch {
		case refused == "" && (err != nil || who.Name != "oidc:corp:id1" || who.Provider != "corp" || who.Role != credential.Viewer || !who.Expires.After(now)):
			t.Errorf("%s: %+v, %v", what, who, err)
		case refused != "" && (r == nil || !strings.Contains(r.Detail, refused)):
			t.Errorf("%s: %v, want refused: %s", what, err, refused)
		}
	}

	first := p.Order("token 0 portcullis")
	want("a token over its time, never seen before", first, now.Add(2*time.Hour), "it ended at")
	want("a good token", first, now, "")
	want("a token over its time, verified before", first, now.Add(2*time.Hour), "it ended at")
	want("a token before its time", first, now.Add(-time.Hour), "it was made at")
	billing := p.Order("token 0 billing")
	want("a token for another client", billing, now, `it was made for others: its aud has not "portcullis"`)
	want("a token of another provider", p.Order("token 1 portcullis"), now, "is none of those that are accepted here")
	parts, others := strings.Split(first, "."), strings.Split(billing, ".")
	want("claims of one token under the signature of another", others[0]+"."+parts[1]+"."+others[2], now, "its signature is not that of key")

	p.Order("rotate 0")
	second := p.Order("token 0 portcullis")
	want("a key that was not read yet", second, now, "it is signed with a key of the id")
	refresh()
	want("the key that signs now", second, now, "")
	want("the earlier key, which is still published", first, now, "")
	p.Order("retire 0")
	refresh()
	want("a key that was taken back", first, now, "it is signed with a key of the id")
	want("the key that signs now, alone", second, now, "")

	// The issuer must be written just as the provider writes it, and a server must prove itself.
	slash, stranger := issuer, issuer
	slash.URL += "/"
	stranger.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	for refused, i := range map[string]Issuer{"its metadata is of the issuer": slash, "certificate": stranger} {
		if err := verifierOf(t, i).providers[i.URL].refresh(t.Context()); err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v, want %q", i.URL, err, refused)
		}
	}
}

func verifierOf(t *testing.T, i Issuer) *Verifier {
	t.Helper()
	v, err := New([]Issuer{i}, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
