package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/credential"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

// prover records the requests that it receives.
type prover struct{ said []string }

func (p *prover) Prove(_ context.Context, actor string, q v1.IsolationQuery) (*v1.Isolation, error) {
	p.said = append(p.said, actor+" "+q.Tenant)
	if q.Tenant == "busy" {
		return nil, &refusal.Error{Code: "verify_running", Status: refusal.Conflict, Detail: "the fabric is being read", Hint: "ask again"}
	}
	return &v1.Isolation{Verdict: v1.IsolationUnknown, Reason: "nothing was read"}, nil
}

// Kept has a result once something was asked.
func (p *prover) Kept(context.Context) (*v1.IsolationKept, error) {
	if len(p.said) == 0 {
		return nil, refusal.New(refusal.NotFound, v1.CodeNotExamined, "portcullis verify examines them", "nothing was examined")
	}
	return &v1.IsolationKept{Found: v1.Isolation{Verdict: v1.Isolated}, By: v1.ByItself, Age: 60, MaxAge: 10800, Current: true}, nil
}

// Operators and auditors may have isolation proven; others, and a credential with ranges of P_Keys, may not.
func TestVerifyIsolation(t *testing.T) {
	t.Parallel()
	p := &prover{}
	f := newFixture(t, func(o *api.Options) { o.Isolation = p })
	auditor, digest := credential.New()
	confined, confinedDigest := credential.New()
	operator, operatorDigest := credential.New()
	tokens, err := credential.Parse("tokens.yaml", fmt.Appendf(nil,
		"tokens:\n- {name: anna, role: auditor, sha256: %s}\n- {name: slurm, role: operator, sha256: %s, p_keys: [0x0100-0x01ff]}\n- {name: olga, role: operator, sha256: %s}\n",
		digest, confinedDigest, operatorDigest))
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, f.do("POST", "/v1/verify", f.viewer, ""), 403, v1.CodeForbidden)
	wantProblem(t, f.do("GET", "/v1/verify", f.viewer, ""), 403, v1.CodeForbidden)
	f.server.SetTokens(tokens)
	wantProblem(t, f.do("POST", "/v1/verify", confined, ""), 403, v1.CodeForbidden)
	wantProblem(t, f.do("GET", "/v1/verify", confined, ""), 403, v1.CodeForbidden)
	wantProblem(t, f.do("GET", "/v1/verify", auditor, ""), 404, v1.CodeNotExamined)
	for _, token := range []string{auditor, operator} {
		if w := f.do("POST", "/v1/verify?tenant=acme", token, ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"verdict":"unknown"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	wantProblem(t, f.do("POST", "/v1/verify?tenant=busy", operator, ""), 409, "verify_running")
	if got := strings.Join(p.said, ", "); got != "anna acme, olga acme, olga busy" {
		t.Errorf("asked: %q", got)
	}
	if w := f.do("GET", "/v1/verify", auditor, ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"by":"service"`) || len(p.said) != 3 {
		t.Errorf("%d %s; asked: %q", w.Code, w.Body, p.said)
	}
	elsewhere := newFixture(t)
	wantProblem(t, elsewhere.do("GET", "/v1/verify", elsewhere.operator, ""), 503, v1.CodeSMElsewhere)
	wantProblem(t, elsewhere.do("POST", "/v1/verify", elsewhere.operator, ""), 503, v1.CodeSMElsewhere)
}
