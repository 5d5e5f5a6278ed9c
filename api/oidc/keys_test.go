package oidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// TestKeySets: what verifies nothing is left out, and a set without a good key, or one that is too large, is refused.
func TestKeySets(t *testing.T) {
	t.Parallel()
	ec := ecSigner(t, "ec")
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	jwk := func(key any, id, use string, alg jose.SignatureAlgorithm) string {
		b, err := json.Marshal(jose.JSONWebKey{Key: key, KeyID: id, Use: use, Algorithm: string(alg)})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	public := ec.key.Public()
	one := jwk(public, "ec", "sig", jose.ES256)
	many := make([]string, maxKeys+1)
	for i := range many {
		many[i] = jwk(public, fmt.Sprint(i), "", "")
	}
	keys := func(of ...string) string { return `{"keys":[` + strings.Join(of, ",") + `]}` }
	for _, c := range []struct{ name, set, wrong string }{
		{"one", keys(one), ""},
		{"beside a curve that is not accepted", keys(jwk(p384.Public(), "big", "sig", ""), one), ""},
		{"beside one for encryption", keys(jwk(public, "enc", "enc", ""), one), ""},
		{"beside a secret", keys(`{"kty":"oct","k":"AAAA","kid":"s"}`, one), ""},
		{"beside a kind of the future", keys(`{"kty":"AKP","pub":"AAAA","kid":"f"}`, one), ""},
		{"no key", keys(), "no key for"},
		{"empty", `{}`, "no key for"},
		{"no object", `[]`, "no JWK Set"},
		{"two of one id", keys(one, one), "two keys"},
		{"a private key", keys(jwk(ec.key, "ec", "sig", "")), "private"},
		{"a short key", keys(jwk(short.Public(), "rsa", "sig", "")), "1024 bits"},
		{"another curve", keys(jwk(p384.Public(), "big", "sig", "")), "P-384"},
		{"not on the curve", keys(`{"kty":"EC","crv":"P-256","kid":"x","x":"` + strings.Repeat("A", 43) + `","y":"` + strings.Repeat("A", 43) + `"}`), "key 1"},
		{"HS256 with a public key", keys(strings.Replace(one, "ES256", "HS256", 1)), "HS256"},
		{"many keys", keys(many...), "at most 64"},
		{"huge", keys(one) + strings.Repeat(" ", maxKeySet), "more than"},
	} {
		got, err := parseKeys([]byte(c.set))
		switch {
		case c.wrong == "" && (err != nil || len(got.keys) != 1):
			t.Errorf("%s: %v", c.name, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: error %v, want %q", c.name, err, c.wrong)
		}
	}
}

// TestOnlyKey: a token without an id of a key means the only one, and none of several.
func TestOnlyKey(t *testing.T) {
	t.Parallel()
	a, b, nameless := ecSigner(t, "a"), ecSigner(t, "b"), ecSigner(t, "")
	nameless.key = a.key
	token := nameless.sign(t, good(nil), nil)
	v, idp := newTest(t, atStart, set(t, a))
	ready(t, v)
	if _, err := v.verify(token, start); err != nil {
		t.Error(err)
	}
	idp.serve(set(t, a, b), nil)
	ready(t, v)
	_, err := v.verify(token, start)
	wantRefused(t, err, "key of the id")
}

func FuzzKeys(f *testing.F) {
	f.Add(set(f, ecSigner(f, "a"), edSigner(f, "b")))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseKeys(b); err == nil && len(s.keys) == 0 {
			t.Errorf("%q: a set without keys is taken", b)
		}
		if from, err := parseMetadata(b, issuerURL); err == nil && !strings.HasPrefix(strings.ToLower(from), "https://") {
			t.Errorf("%q: keys from %q", b, from)
		}
	})
}
