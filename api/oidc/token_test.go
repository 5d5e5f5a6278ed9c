package oidc

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"portcullis/api/credential"
)

// TestGoodTokens: each algorithm that is accepted, and each form in which audience and type may be.
func TestGoodTokens(t *testing.T) {
	t.Parallel()
	rs, ps, es, ed := rsaSigner(t, jose.RS256, "rsa"), rsaSigner(t, jose.PS256, "rsa"), ecSigner(t, "ec"), edSigner(t, "ed")
	v, _ := newTest(t, atStart, set(t, rs, es, ed))
	ready(t, v)
	want := credential.Principal{Name: "oidc:corp:olga", Provider: "corp", Role: credential.Operator, Created: start, Expires: start.Add(5*time.Minute + Leeway)}
	for name, token := range map[string]string{
		"RS256": rs.sign(t, good(nil), nil), "PS256": ps.sign(t, good(nil), nil), "ES256": es.sign(t, good(nil), nil), "EdDSA": ed.sign(t, good(nil), nil),
		"audiences":    es.sign(t, good(map[string]any{"aud": []string{"account", "portcullis"}}), nil),
		"access token": es.sign(t, good(nil), map[jose.HeaderKey]any{"typ": "at+jwt"}),
		"skewed clock": es.sign(t, good(map[string]any{"nbf": start.Add(20 * time.Second).Unix()}), nil),
	} {
		who, err := v.Authenticate(t.Context(), token, start, anyTime)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		who.Created, who.Expires = who.Created.UTC(), who.Expires.UTC()
		if diff := cmp.Diff(want, who); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if _, known := v.Known(token, start.Add(4*time.Minute)); !known {
			t.Errorf("%s is not remembered", name)
		}
		if _, known := v.Known(token, start.Add(5*time.Minute+Leeway)); known {
			t.Errorf("%s is known after its end", name)
		}
	}
}

// TestRefusedTokens: what is wrong with each is what the refusal says, and none is remembered.
func TestRefusedTokens(t *testing.T) {
	t.Parallel()
	rs, es, other := rsaSigner(t, jose.RS256, "rsa"), ecSigner(t, "ec"), ecSigner(t, "ec")
	v, _ := newTest(t, atStart, set(t, rs, es))
	ready(t, v)
	with := func(name string, value any) string { return es.sign(t, good(map[string]any{name: value}), nil) }
	header := func(name jose.HeaderKey, value any) string {
		return es.sign(t, good(nil), map[jose.HeaderKey]any{name: value})
	}
	at := func(d time.Duration) int64 { return start.Add(d).Unix() }
	parts := strings.Split(with("sub", "7f3a"), ".")
	text, err := json.Marshal(good(nil))
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	for _, c := range []struct{ name, token, word string }{
		{"wrong audience", with("aud", "other"), "made for others"},
		{"part of the audience", with("aud", "portcullis2"), "made for others"},
		{"no audience", with("aud", nil), "made for others"},
		{"expired", with("exp", at(-Leeway)), "ended"},
		{"no end", with("exp", nil), "exp or iat"},
		{"end as text", with("exp", "tomorrow"), "claims"},
		{"end out of range", with("exp", 1e300), "claims"},
		{"lives long", with("exp", at(MaxLife+time.Second)), "at most 24h"},
		{"ends before it begins", es.sign(t, good(map[string]any{"iat": at(20 * time.Second), "exp": at(10 * time.Second)}), nil), "at most"},
		{"not yet", with("nbf", at(time.Minute)), "not good before"},
		{"made later", with("iat", at(time.Minute)), "made at"},
		{"other issuer", with("iss", "https://evil.test"), "none of those"},
		{"issuer with a slash", with("iss", issuerURL+"/"), "none of those"},
		{"no subject", with("sub", nil), "no sub"},
		{"bound to a key", with("cnf", map[string]any{"jkt": "x"}), "cnf"},
		{"logout token", with("events", map[string]any{}), "events"},
		{"logout type", header("typ", "logout+jwt"), "typ"},
		{"key in the token", header("jwk", jose.JSONWebKey{Key: other.key.Public()}), "jwk"},
		{"certificate in the token", header("x5c", []string{"AAAA"}), "x5c"},
		{"critical header", header("crit", []string{"exp"}), "crit"},
		{"signed by another key", other.sign(t, good(nil), nil), "signature"},
		{"other claims", parts[0] + "." + encode([]byte(strings.Replace(string(text), "7f3a", "7f3b", 1))) + "." + parts[2], "signature"},
		{"no signature", parts[0] + "." + parts[1] + ".", "signature"},
		{"alg of another key", (&signer{jose.ES256, "rsa", es.key}).sign(t, good(nil), nil), "another one"},
		{"alg ES384", encode([]byte(`{"alg":"ES384","kid":"ec"}`)) + "." + parts[1] + "." + parts[2], "alg"},
		{"alg none", encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + ".", "alg"},
		{"alg None", encode([]byte(`{"alg":"None","typ":"JWT"}`)) + "." + parts[1] + ".", "alg"},
		{"two algs", encode([]byte(`{"alg":"none","alg":"ES256"}`)) + "." + parts[1] + "." + parts[2], "header"},
		{"claim twice", es.sign(t, strings.Replace(string(text), `{`, `{"sub":"root",`, 1), nil), "claims"},
		{"claims in capitals", es.sign(t, strings.Replace(string(text), `"sub"`, `"SUB"`, 1), nil), "no sub"},
		{"claims are a list", es.sign(t, `[1]`, nil), "claims"},
		{"no role", es.sign(t, good(map[string]any{"realm_access": nil}), nil), "no rule"},
		{"role of another claim", with("realm_access", map[string]any{"groups": []string{"fabric-operators"}}), "no rule"},
		{"no name", with("preferred_username", nil), "preferred_username"},
		{"name with a line", with("preferred_username", "ol\nga"), "preferred_username"},
		{"name written backwards", with("preferred_username", "olga\u202e"), "preferred_username"},
		{"name that is long", with("preferred_username", strings.Repeat("o", maxName+1)), "preferred_username"},
		{"huge", with("more", strings.Repeat("m", MaxToken)), "form"},
		{"no token", "eyJ", "form"},
	} {
		who, err := v.Authenticate(t.Context(), c.token, start, anyTime)
		if err == nil || who.Role != "" {
			t.Errorf("%s: accepted as %+v", c.name, who)
			continue
		}
		if r := wantRefused(t, err, c.word); r.Forbidden != (c.word == "no rule") {
			t.Errorf("%s: forbidden %v", c.name, r.Forbidden)
		}
	}
	if len(v.verified) != 0 {
		t.Errorf("%d refused tokens are remembered", len(v.verified))
	}
}

// TestPublicKeyAsSecret: HMAC with what all know, the public key in each form that a verifier could take for a secret.
func TestPublicKeyAsSecret(t *testing.T) {
	t.Parallel()
	rs := rsaSigner(t, jose.RS256, "rsa")
	keys := set(t, rs)
	v, _ := newTest(t, atStart, keys)
	ready(t, v)
	der, err := x509.MarshalPKIXPublicKey(rs.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range [][]byte{der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), keys} {
		by, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: secret}, new(jose.SignerOptions).WithHeader("kid", "rsa"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(good(nil))
		if err != nil {
			t.Fatal(err)
		}
		signed, err := by.Sign(text)
		if err != nil {
			t.Fatal(err)
		}
		token, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Authenticate(t.Context(), token, start, anyTime)
		wantRefused(t, err, "HS256")
	}
}

// TestRules: the first rule that holds assigns the role, and an address counts when the provider verified it.
func TestRules(t *testing.T) {
	t.Parallel()
	es := ecSigner(t, "ec")
	for _, c := range []struct {
		name    string
		change  map[string]any
		nameBy  string
		role    credential.Role
		refused string
	}{
		{"first of two", nil, "", credential.Operator, ""},
		{"second", map[string]any{"realm_access": map[string]any{"roles": []string{"staff"}}}, "", credential.Viewer, ""},
		{"a string", map[string]any{"realm_access": map[string]any{"roles": "staff"}}, "", credential.Viewer, ""},
		{"no prefix", map[string]any{"realm_access": map[string]any{"roles": "staff2"}}, "", "", "no rule"},
		{"a name with dots", map[string]any{"realm_access": nil, "realm_access.roles": "staff"}, "", credential.Viewer, ""},
		{"an object", map[string]any{"realm_access": map[string]any{"roles": map[string]any{"staff": true}}}, "", "", "no rule"},
		{"verified address", map[string]any{"email": "o@corp.test", "email_verified": true}, "email", credential.Operator, ""},
		{"address of nobody", map[string]any{"email": "o@corp.test"}, "email", "", "not verified"},
		{"address verified as text", map[string]any{"email": "o@corp.test", "email_verified": "true"}, "email", "", "not verified"},
	} {
		i := corp()
		i.NameClaim = c.nameBy
		u, err := parse(es.sign(t, good(c.change), nil))
		if err != nil {
			t.Fatal(err)
		}
		who, err := i.owner(&u.claims)
		if c.refused != "" {
			wantRefused(t, err, c.refused)
			continue
		}
		if err != nil || who.Role != c.role {
			t.Errorf("%s: role %q, error %v, want role %q", c.name, who.Role, err, c.role)
		}
	}
}

// TestTenantsOfAToken: a rule with the role tenant has the names of tenants, or the claim that holds them; a token without good
// names there is refused.
func TestTenantsOfAToken(t *testing.T) {
	t.Parallel()
	es := ecSigner(t, "ec")
	for _, c := range []struct {
		name    string
		rule    Rule
		tenants any // in the token
		want    []string
		refused string
	}{
		{"a list of the rule", Rule{Tenants: []string{"acme"}}, "zeta", []string{"acme"}, ""},
		{"a text", Rule{TenantsClaim: "tenants"}, "zeta", []string{"zeta"}, ""},
		{"a list", Rule{TenantsClaim: "tenants"}, []string{"zeta", "acme", "zeta"}, []string{"acme", "zeta"}, ""},
		{"in an object", Rule{TenantsClaim: "org.tenants"}, nil, []string{"acme"}, ""},
		{"no claim", Rule{TenantsClaim: "tenants"}, nil, nil, "does not say of which tenants: 0 tenants"},
		{"an empty list", Rule{TenantsClaim: "tenants"}, []string{}, nil, "0 tenants"},
		{"a number among them", Rule{TenantsClaim: "tenants"}, []any{"acme", 7}, nil, `"" is no name`},
		{"an object", Rule{TenantsClaim: "tenants"}, map[string]any{"acme": true}, nil, "0 tenants"},
		{"a name that none has", Rule{TenantsClaim: "tenants"}, "*", nil, `"*" is no name`},
		{"too many", Rule{TenantsClaim: "tenants"}, many(credential.MaxTenants + 1), nil, "65 tenants"},
	} {
		i := corp()
		c.rule.Claim, c.rule.Value, c.rule.Role = "realm_access.roles", "staff", credential.Tenant
		i.Rules = []Rule{c.rule}
		if p := i.Problems(); len(p) > 0 {
			t.Errorf("%s: %v", c.name, p)
		}
		u, err := parse(es.sign(t, good(map[string]any{"tenants": c.tenants, "org": map[string]any{"tenants": []string{"acme"}}}), nil))
		if err != nil {
			t.Fatal(err)
		}
		who, err := i.owner(&u.claims)
		if c.refused != "" {
			wantRefused(t, err, c.refused)
			continue
		}
		if err != nil || who.Role != credential.Tenant || !slices.Equal(who.Tenants, c.want) {
			t.Errorf("%s: %+v, error %v, want %q", c.name, who, err, c.want)
		}
	}
}

func many(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("t%d", i))
	}
	return out
}

// FuzzParse: a token of any bytes ends in a refusal or in claims, and no token without a signature of a known key is accepted.
func FuzzParse(f *testing.F) {
	es := ecSigner(f, "ec")
	token := es.sign(f, good(nil), nil)
	f.Add(token)
	f.Add(strings.Replace(token, ".", "..", 1))
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add(es.sign(f, `{"iss":"`+issuerURL+`","aud":[1],"exp":-1}`, nil))
	v, _ := newTest(f, atStart, set(f, ecSigner(f, "ec")))
	ready(f, v)
	f.Fuzz(func(t *testing.T, token string) {
		u, err := parse(token)
		if err == nil && (u.signed == nil || u.claims.all == nil) {
			t.Errorf("%q: neither refused nor read", token)
		}
		if who, err := v.verify(token, start); err == nil {
			t.Errorf("%q is accepted as %+v", token, who)
		}
	})
}
