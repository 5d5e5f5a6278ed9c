package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api"
	"portcullis/api/credential"
	"portcullis/api/limit"
	"portcullis/api/oidc"
	v1 "portcullis/api/v1"
)

// TestLogins: any caller gets the public client of each identity provider that has one, and nothing that the operator did not write
// for that: no rules, no claims, and no provider without a client.
func TestLogins(t *testing.T) {
	t.Parallel()
	rules := []oidc.Rule{{Claim: "groups", Value: "fabric-operators", Role: credential.Operator}}
	issuers := []oidc.Issuer{
		{Name: "corp", URL: "https://idp.test", Audience: "portcullis", NameClaim: "upn", Rules: rules, CA: []byte("PEM"), Login: &oidc.Login{ClientID: "cli", Scopes: []string{"openid", "api"}}},
		{Name: "dex", URL: "https://dex.test", Audience: "cli", Rules: rules, Login: &oidc.Login{ClientID: "cli"}},
		{Name: "both", URL: "https://both.test", Audience: "cli", Rules: rules, Login: &oidc.Login{ClientID: "cli", Token: oidc.AccessToken}},
		{Name: "quiet", URL: "https://quiet.test", Audience: "portcullis", Rules: rules},
	}
	f := newFixture(t, unlimited, func(o *api.Options) { o.Logins = api.LoginsOf(issuers) })
	want := v1.Logins{Providers: []v1.LoginProvider{
		{Name: "corp", Issuer: "https://idp.test", ClientID: "cli", Scopes: []string{"openid", "api"}, Audience: "portcullis", Token: "access", CA: "PEM"},
		{Name: "dex", Issuer: "https://dex.test", ClientID: "cli", Scopes: []string{"openid", "offline_access"}, Audience: "cli", Token: "id"},
		{Name: "both", Issuer: "https://both.test", ClientID: "cli", Scopes: []string{"openid", "offline_access"}, Audience: "cli", Token: "access"},
	}}
	for name, token := range map[string]string{"no credential": "", "a wrong one": "pcop_wrong", "a viewer's": f.viewer} {
		w := f.do("GET", "/v1/login", token, "")
		var got v1.Logins
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
			t.Fatalf("%s: %d %s", name, w.Code, w.Body)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		for _, hidden := range []string{"quiet", "fabric-operators", "groups", "upn"} {
			if strings.Contains(w.Body.String(), hidden) {
				t.Errorf("%s: the answer has %q: %s", name, hidden, w.Body)
			}
		}
	}
	wantProblem(t, f.do("POST", "/v1/login", "", "{}"), 405, v1.CodeMethodNotAllowed)
	wantProblem(t, f.do("GET", "/v1/login?x=1", "", ""), 422, v1.CodeInvalid)
}

// TestNoLogins: a service without identity providers says so with an empty list.
func TestNoLogins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if w := f.do("GET", "/v1/login", "", ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"providers":[]}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestLoginsAreBounded: requests for it count as those of all callers without a credential do.
func TestLoginsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *api.Options) { o.Limits.Requests = limit.Rate{PerSecond: 1e-9, Burst: 2} })
	for range 2 {
		if w := f.do("GET", "/v1/login", "", ""); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	wantProblem(t, f.do("GET", "/v1/login", "", ""), 429, v1.CodeRateLimited)
}
