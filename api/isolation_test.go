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

// Ports lists a port for each filter that it is given.
func (p *prover) Ports(_ context.Context, q v1.IsolationPortQuery) (*v1.IsolationPorts, error) {
	return &v1.IsolationPorts{Items: []v1.IsolationPortVerdict{{Host: q.Host, Tenant: q.Tenant, Verdict: q.Verdict}}, Next: q.After}, nil
}

// Drift lists a row for each filter that it is given.
func (p *prover) Drift(_ context.Context, q v1.DriftQuery) (*v1.DriftList, error) {
	return &v1.DriftList{Items: []v1.Drift{{Host: q.Host, Kind: q.Kind, In: v1.DriftInSwitch}}, Next: q.After}, nil
}

// Operators and auditors may have isolation proven; others, and a credential with ranges of P_Keys, may not.
func TestVerifyIsolation(t *testing.T) {
	t.Parallel()
	p := &prover{}
	f := newFixture(t, func(o *api.Options) { o.Isolation = p })
	auditor, digest := credential.New()
	confined, confinedDigest := credential.New()
	operator, operatorDigest := credential.New()
	tenant, tenantDigest := credential.New()
	tokens, err := credential.Parse("tokens.yaml", fmt.Appendf(nil,
		"tokens:\n- {name: anna, role: auditor, sha256: %s}\n- {name: slurm, role: operator, sha256: %s, p_keys: [0x0100-0x01ff]}\n- {name: olga, role: operator, sha256: %s}\n- {name: acme, role: tenant, tenants: [acme], sha256: %s}\n",
		digest, confinedDigest, operatorDigest, tenantDigest))
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
	wantProblem(t, f.do("GET", "/v1/verify/ports", f.viewer, ""), 401, v1.CodeUnauthenticated) // its token is none any more
	wantProblem(t, f.do("GET", "/v1/verify/ports", confined, ""), 403, v1.CodeForbidden)
	wantProblem(t, f.do("GET", "/v1/verify/ports?verdict=unknown", auditor, ""), 422, "invalid_request")
	for _, token := range []string{auditor, operator, tenant} {
		w := f.do("GET", "/v1/verify/ports?host=h1&tenant=acme&verdict=unproven&after=x", token, "")
		if want := `"items":[{"host":"h1","tenant":"acme","guid":"0x0000000000000000","verdict":"unproven"}],"next":"x"`; w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	for _, token := range []string{confined, tenant} {
		wantProblem(t, f.do("GET", "/v1/fabric/drift", token, ""), 403, v1.CodeForbidden)
	}
	wantProblem(t, f.do("GET", "/v1/fabric/drift?kind=splendid", auditor, ""), 422, "invalid_request")
	for _, token := range []string{auditor, operator} {
		w := f.do("GET", "/v1/fabric/drift?host=h1&kind=stray&after=x", token, "")
		if want := `"items":[{"kind":"stray","in":"switch","host":"h1",`; w.Code != 200 || !strings.Contains(w.Body.String(), want) || !strings.Contains(w.Body.String(), `"next":"x"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	elsewhere := newFixture(t)
	wantProblem(t, elsewhere.do("GET", "/v1/fabric/drift", elsewhere.operator, ""), 503, v1.CodeSMElsewhere)
	wantProblem(t, elsewhere.do("GET", "/v1/verify/ports", elsewhere.viewer, ""), 403, v1.CodeForbidden)
	wantProblem(t, elsewhere.do("GET", "/v1/verify/ports", elsewhere.operator, ""), 503, v1.CodeSMElsewhere)
	wantProblem(t, elsewhere.do("GET", "/v1/verify", elsewhere.operator, ""), 503, v1.CodeSMElsewhere)
	wantProblem(t, elsewhere.do("POST", "/v1/verify", elsewhere.operator, ""), 503, v1.CodeSMElsewhere)
}
