package oidc

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"portcullis/api/credential"
)

const issuerURL = "https://idp.test/realms/corp"

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// signer signs tokens with a key of an algorithm.
type signer struct {
	alg jose.SignatureAlgorithm
	id  string
	key crypto.Signer
}

func ecSigner(t testing.TB, id string) *signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{jose.ES256, id, k}
}

func edSigner(t testing.TB, id string) *signer {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{jose.EdDSA, id, k}
}

var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func rsaSigner(t testing.TB, alg jose.SignatureAlgorithm, id string) *signer {
	t.Helper()
	k, err := rsaKey()
	if err != nil {
		t.Fatal(err)
	}
	return &signer{alg, id, k}
}

// sign signs claims with a header of typ, and more.
func (s *signer) sign(t testing.TB, content any, more map[jose.HeaderKey]any) string {
	t.Helper()
	o := new(jose.SignerOptions).WithType("JWT")
	if s.id != "" {
		o.WithHeader("kid", s.id)
	}
	for k, v := range more {
		o.WithHeader(k, v)
	}
	by, err := jose.NewSigner(jose.SigningKey{Algorithm: s.alg, Key: s.key}, o)
	if err != nil {
		t.Fatal(err)
	}
	raw, isText := content.(string)
	if !isText {
		b, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(b)
	}
	signed, err := by.Sign([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// set returns the JWK Set of the public keys of signers.
func set(t testing.TB, of ...*signer) []byte {
	t.Helper()
	out := jose.JSONWebKeySet{}
	for _, s := range of {
		out.Keys = append(out.Keys, jose.JSONWebKey{Key: s.key.Public(), KeyID: s.id, Use: "sig"})
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// good returns the claims of a token that is accepted at start, with changes: nil takes a claim away.
func good(change map[string]any) map[string]any {
	c := map[string]any{
		"iss": issuerURL, "sub": "7f3a", "aud": "portcullis", "preferred_username": "olga",
		"iat": start.Unix(), "exp": start.Add(5 * time.Minute).Unix(),
		"realm_access": map[string]any{"roles": []string{"staff", "fabric-operators"}},
	}
	for k, v := range change {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

func corp() Issuer {
	return Issuer{
		Name: "corp", URL: issuerURL, Audience: "portcullis", NameClaim: "preferred_username",
		Rules: []Rule{
			{Claim: "realm_access.roles", Value: "fabric-operators", Role: credential.Operator},
			{Claim: "realm_access.roles", Value: "staff", Role: credential.Viewer},
		},
	}
}

// idp answers in place of a provider.
type idp struct {
	mu   sync.Mutex
	keys []byte
	err  error
	read int // times that the keys were
}

func (p *idp) serve(keys []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys, p.err = keys, err
}

func (p *idp) reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read
}

func (p *idp) fetch(_ context.Context, url string, _ int64) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.HasSuffix(url, "/.well-known/openid-configuration") {
		p.read++
		return []byte(`{"issuer":"` + issuerURL + `","jwks_uri":"https://idp.test/keys"}`), p.err
	}
	return p.keys, p.err
}

// newTest returns a verifier whose provider answers with keys.
func newTest(t testing.TB, now func() time.Time, keys []byte) (*Verifier, *idp) {
	t.Helper()
	p := &idp{keys: keys}
	v, err := newVerifier([]Issuer{corp()}, slog.New(slog.DiscardHandler), now, func(*Issuer) fetcher { return p.fetch })
	if err != nil {
		t.Fatal(err)
	}
	return v, p
}

// ready has a verifier read the keys once.
func ready(t testing.TB, v *Verifier) *Verifier {
	t.Helper()
	for _, p := range v.providers {
		if err := p.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func atStart() time.Time { return start }

// anyTime is a turn that is always there.
func anyTime(context.Context) (func(), bool) { return func() {}, true }

func wantRefused(t *testing.T, err error, word string) *Refused {
	t.Helper()
	r, ok := errors.AsType[*Refused](err)
	if !ok || !strings.Contains(r.Detail, word) || r.Hint == "" {
		t.Errorf("error %v, want a refusal with a hint that says %q", err, word)
		return &Refused{}
	}
	return r
}
