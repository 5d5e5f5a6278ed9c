package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/credential"
	"portcullis/api/limit"
	"portcullis/api/oidc"
)

// people answers in place of package oidc: the tokens of its keys are good, and those of known need no verification.
type people struct {
	good, known map[string]credential.Principal
	refused     *oidc.Refused // of all others
	asked       int
}

func (p *people) Known(token string, _ time.Time) (credential.Principal, bool) {
	who, ok := p.known[token]
	return who, ok
}

func (p *people) Authenticate(ctx context.Context, token string, _ time.Time, turn oidc.Turn) (credential.Principal, error) {
	if who, ok := p.known[token]; ok {
		return who, nil
	}
	p.asked++
	leave, ok := turn(ctx)
	if !ok {
		return credential.Principal{}, &oidc.Refused{Busy: true, Detail: "busy", Hint: "try again"}
	}
	defer leave()
	if who, ok := p.good[token]; ok {
		p.known[token] = who
		return who, nil
	}
	return credential.Principal{}, p.refused
}

// jwt is text in the form of a JWT, and of its size.
func jwt(name string) string { return "eyJ" + strings.Repeat("a", 1000) + "." + name + ".c2ln" }

// TestTokensOfIdentityProviders: a bearer in the form of a JWT goes to the verifier, its role counts as that of any token, and
// what it refuses is answered by its reason.
func TestTokensOfIdentityProviders(t *testing.T) {
	t.Parallel()
	ends := time.Now().Add(time.Hour)
	p := &people{
		good: map[string]credential.Principal{
			jwt("olga"): {Name: "oidc:corp:olga", Role: credential.Operator, Expires: ends},
			jwt("vic"):  {Name: "oidc:corp:vic", Role: credential.Viewer, Expires: ends},
		},
		known: map[string]credential.Principal{}, refused: &oidc.Refused{Detail: "it ended at noon", Hint: "log in again"},
	}
	f := newFixture(t, unlimited, func(o *api.Options) { o.Verifier = p })
	const tenant = `{"name":"acme"}`
	if w := f.do("GET", "/v1/tenants", jwt("vic"), ""); w.Code != http.StatusOK {
		t.Errorf("a viewer reads: %d %s", w.Code, w.Body)
	}
	wantProblem(t, f.do("POST", "/v1/tenants", jwt("vic"), tenant), 403, "forbidden")
	if w := f.do("POST", "/v1/tenants", jwt("olga"), tenant); w.Code >= 300 {
		t.Errorf("an operator changes: %d %s", w.Code, w.Body)
	}
	wantProblem(t, f.do("GET", "/v1/tenants", jwt("eve"), ""), 401, "unauthenticated")
	p.refused = &oidc.Refused{Forbidden: true, Detail: "no role", Hint: "add a rule"}
	wantProblem(t, f.do("GET", "/v1/tenants", jwt("guest"), ""), 403, "forbidden")
	p.refused = &oidc.Refused{Busy: true, Detail: "busy", Hint: "try again"}
	wantProblem(t, f.do("GET", "/v1/tenants", jwt("late"), ""), 503, "unavailable")

	without := newFixture(t, unlimited)
	wantProblem(t, without.do("GET", "/v1/tenants", jwt("olga"), ""), 401, "unauthenticated")
}

// TestUnknownJWTsCountAsStrangers: a token that was not verified yet has no share of its own, and none is looked at once its source
// has used up its share; a known one still counts for its owner alone.
func TestUnknownJWTsCountAsStrangers(t *testing.T) {
	t.Parallel()
	p := &people{
		known:   map[string]credential.Principal{jwt("olga"): {Name: "oidc:corp:olga", Role: credential.Operator}},
		refused: &oidc.Refused{Detail: "its signature is wrong", Hint: "log in again"},
	}
	f := newFixture(t, unlimited, func(o *api.Options) {
		o.Verifier, o.Limits.Refusals = p, limit.Rate{PerSecond: 0.001, Burst: 3}
	})
	for n := range 20 {
		if w := f.do("GET", "/v1/tenants", jwt(strings.Repeat("x", n+1)), ""); n >= 3 && w.Code != http.StatusTooManyRequests {
			t.Errorf("request %d: %d", n, w.Code)
		}
	}
	if p.asked != 3 {
		t.Errorf("%d tokens were looked at, want 3", p.asked)
	}
	if w := f.do("GET", "/v1/tenants", jwt("olga"), ""); w.Code != http.StatusOK {
		t.Errorf("a known token at the same address: %d %s", w.Code, w.Body)
	}
}
