package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/credential"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// confine has the operator's requests of f carry the credential of a scheduler: the P_Keys 0x0100 to 0x01ff, and hosts
// whose ids begin with gpu-. The function that it returns restores the credential without a scope.
func (f *fixture) confine(t *testing.T) (back func()) {
	t.Helper()
	token, digest := credential.New()
	all, allDigest := credential.New()
	tokens, err := credential.Parse("tokens.yaml", fmt.Appendf(nil, `tokens:
- {name: slurm, role: operator, sha256: %s, p_keys: [0x0100-0x01ff], hosts: ['gpu-*']}
- {name: olga, role: operator, sha256: %s}
`, digest, allDigest))
	if err != nil {
		t.Fatal(err)
	}
	f.server.SetTokens(tokens)
	f.operator = token
	return func() { f.operator = all }
}

// attempt is a request, and the answer to it.
type attempt struct {
	path, body string
	status     int
	code       string // of the problem; empty: it succeeds
}

// post sends requests of the operator, one after the other. Each must be answered as it says.
func (f *fixture) post(t *testing.T, requests ...attempt) {
	t.Helper()
	for _, r := range requests {
		f.want(t, f.change("POST", r.path, "", r.body), r.status)
	}
}

// scoped has, for each operation that a credential with ranges of P_Keys may use at all, requests outside of its scope
// and one within. Every other operation that changes something has to refuse it (forbidden).
var scoped = map[string][]attempt{
	"create-tenant": {
		{"/v1/tenants", `{"name":"x1","p_keys":["0x0001-0x0010"]}`, 403, "p_key_out_of_scope"},
		{"/v1/tenants", `{"name":"x2","p_keys":["0x0180-0x0200"]}`, 403, "p_key_out_of_scope"},
		{"/v1/tenants", `{"name":"mine","p_keys":["0x0110-0x011f"]}`, 201, ""},
	},
	"create-cluster": {
		{"/v1/clusters", `{"name":"c1","tenant":"other"}`, 403, "tenant_out_of_scope"},
		{"/v1/clusters", `{"name":"c1","tenant":"empty"}`, 403, "tenant_out_of_scope"},
		{"/v1/clusters", `{"name":"c1","tenant":"wide"}`, 403, "tenant_out_of_scope"},
		{"/v1/clusters", `{"name":"c1","tenant":"mine","p_key":"0x0001"}`, 403, "p_key_out_of_scope"},
		{"/v1/clusters", `{"name":"c1","tenant":"mine","p_key":"0x0150"}`, 403, "p_key_out_of_scope"},
		{"/v1/clusters", `{"name":"c1","tenant":"mine","p_key":"0x0118"}`, 201, ""},
		{"/v1/clusters", `{"name":"c2","tenant":"mine"}`, 201, ""},
		{"/v1/clusters", `{"name":"s1","tenant":"mine","shared":true}`, 201, ""},
	},
	"assign-host": {
		{"/v1/hosts/gpu-1/assign", `{"cluster":"theirs"}`, 403, "p_key_out_of_scope"},
		{"/v1/hosts/login-1/assign", `{"cluster":"c1"}`, 403, "host_out_of_scope"},
		{"/v1/hosts/gpu-3/assign", `{"cluster":"c1"}`, 409, "host_assigned"},
		{"/v1/hosts/gpu-1/assign", `{"cluster":"c1"}`, 202, ""},
	},
	// Of a batch each host is refused by itself: what is not in the scope is unchanged at the end.
	"assign-hosts": {
		{"/v1/batches/assign", `{"cluster":"theirs","hosts":[{"id":"gpu-2"}]}`, 200, ""},
		{"/v1/batches/assign", `{"cluster":"c1","hosts":[{"id":"login-1"},{"id":"gpu-3"}]}`, 200, ""},
	},
	"release-hosts": {
		{"/v1/batches/release", `{"confirm":2,"hosts":[{"id":"gpu-3","epoch":1},{"id":"login-1","epoch":0}]}`, 200, ""},
	},
	"label-tenant": {
		{"/v1/tenants/other/labels", `{"labels":{"a":"b"}}`, 403, "tenant_out_of_scope"},
		{"/v1/tenants/mine/labels", `{"labels":{"a":"b"}}`, 200, ""},
	},
	"label-cluster": {
		{"/v1/clusters/theirs/labels", `{"labels":{"a":"b"}}`, 403, "p_key_out_of_scope"},
		{"/v1/clusters/c1/labels", `{"labels":{"a":"b"}}`, 200, ""},
	},
	"label-host": {
		{"/v1/hosts/login-1/labels", `{"labels":{"a":"b"}}`, 403, "host_out_of_scope"},
		{"/v1/hosts/gpu-1/labels", `{"labels":{"a":"b"}}`, 200, ""},
	},
	"release-host": {
		{"/v1/hosts/gpu-3/release", ``, 403, "p_key_out_of_scope"},
		{"/v1/hosts/gpu-1/release", ``, 202, ""},
	},
	"use-cluster": {
		{"/v1/clusters/theirs/uses/s1", ``, 403, "p_key_out_of_scope"},
		{"/v1/clusters/c1/uses/storage", ``, 403, "p_key_out_of_scope"},
		{"/v1/clusters/c1/uses/s1", ``, 200, ""},
	},
	"stop-using-cluster": {
		{"/v1/clusters/theirs/uses/storage", ``, 403, "p_key_out_of_scope"},
		{"/v1/clusters/c1/uses/s1", ``, 200, ""},
	},
	"delete-cluster": {
		{"/v1/clusters/theirs", ``, 403, "p_key_out_of_scope"},
		{"/v1/clusters/c2", ``, 204, ""},
		{"/v1/clusters/c1", ``, 204, ""},
		{"/v1/clusters/s1", ``, 204, ""},
	},
	"delete-tenant": {
		{"/v1/tenants/other", ``, 403, "tenant_out_of_scope"},
		{"/v1/tenants/empty", ``, 403, "tenant_out_of_scope"},
		{"/v1/tenants/wide", ``, 403, "tenant_out_of_scope"},
		{"/v1/tenants/mine", ``, 204, ""},
	},
}

// inOrder names the operations of scoped in an order in which their requests make sense.
var inOrder = []string{
	"create-tenant", "create-cluster", "assign-host", "assign-hosts", "release-hosts", "label-tenant", "label-cluster", "label-host", "release-host", "use-cluster", "stop-using-cluster", "delete-cluster", "delete-tenant",
}

// TestScopeHoldsOnEveryRoute has a credential with ranges of P_Keys ask every operation that changes something for what
// is not in its scope.
func TestScopeHoldsOnEveryRoute(t *testing.T) {
	f := decided(t, site(t, "gpu-1", "gpu-3", "login-1"))
	f.post(t,
		attempt{"/v1/tenants", `{"name":"other"}`, 201, ""},
		attempt{"/v1/tenants", `{"name":"empty"}`, 201, ""},
		attempt{"/v1/tenants", `{"name":"wide","p_keys":["0x0100-0x0200"]}`, 201, ""},
		attempt{"/v1/clusters", `{"name":"theirs","tenant":"other"}`, 201, ""},
		attempt{"/v1/clusters", `{"name":"storage","tenant":"other","shared":true}`, 201, ""},
		attempt{"/v1/hosts/gpu-3/assign", `{"cluster":"theirs"}`, 202, ""},
	)
	f.want(t, f.change("PUT", "/v1/clusters/theirs/uses/storage", "", ""), 200)
	before := f.all(t)
	back := f.confine(t)

	methods, matches, refused := map[string]string{}, map[string]string{}, 0
	for _, d := range operations(t, f) {
		methods[d.ID] = d.method
		if d.demands() {
			matches[d.ID] = "*"
		}
		if d.method == http.MethodGet || !d.asks() || scoped[d.ID] != nil {
			continue
		}
		if d.ID == "attestation-result" || d.ID == "make-plan" { // of what every credential may read
			continue
		}
		refused++
		wantProblem(t, f.change(d.method, d.path, "", ""), 403, v1.CodeForbidden)
	}
	if refused < 30 {
		t.Errorf("%d operations refuse the credential altogether, want those of inventory, topology, keys and so on", refused)
	}
	if len(inOrder) != len(scoped) {
		t.Fatalf("%d operations in order, %d in the table", len(inOrder), len(scoped))
	}
	for _, id := range inOrder {
		if methods[id] == "" {
			t.Fatalf("no operation %s in the document", id)
		}
		for _, r := range scoped[id] {
			t.Run(id+" "+r.path+r.body, func(t *testing.T) {
				w := f.change(methods[id], r.path, matches[id], r.body)
				if r.code == "" {
					f.want(t, w, r.status)
				} else {
					wantProblem(t, w, r.status, r.code)
				}
			})
		}
	}
	back()
	if after := f.all(t); after != before {
		t.Errorf("what is not in the scope was changed:\n%s\nwas\n%s", after, before)
	}
}

// Only an operator whose credential has an adopted P_Key names it for a cluster.
func TestWhoNamesAnAdoptedPKey(t *testing.T) {
	s := apitest.NewSite(t)
	_, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
		return tenancy.PKeys().Put(tx, "0x0110", tenancy.PKeyRecord{State: tenancy.PKeyAdopted})
	})
	fatal(t, err)
	tokens := "tokens:\n"
	shown := map[string]string{}
	for name, role := range map[string]string{"slurm": "scheduler", "olga": "operator", "plain": "operator"} {
		token, digest := credential.New()
		shown[name] = token
		tokens += fmt.Sprintf("- {name: %s, role: %s, sha256: %s", name, role, digest)
		if name != "plain" {
			tokens += ", p_keys: [0x0100-0x01ff]"
		}
		tokens += "}\n"
	}
	parsed, err := credential.Parse("tokens.yaml", []byte(tokens))
	fatal(t, err)
	f := fixtureOn(t, s, unlimited, func(o *api.Options) { o.Tokens = parsed })
	f.want(t, f.do("POST", "/v1/tenants", shown["olga"], `{"name":"moved","p_keys":["0x0110-0x011f"]}`), 201)
	const named = `{"name":"moved-1","tenant":"moved","p_key":"0x0110"}`
	wantProblem(t, f.do("POST", "/v1/clusters", shown["slurm"], named), 403, "p_key_adopted")
	wantProblem(t, f.do("POST", "/v1/clusters", shown["plain"], named), 403, "p_key_out_of_scope")
	f.want(t, f.do("POST", "/v1/clusters", shown["slurm"], `{"name":"other","tenant":"moved"}`), 201)
	f.want(t, f.do("POST", "/v1/clusters", shown["olga"], named), 201)
}

// all returns the tenants, clusters and assigned hosts there are.
func (f *fixture) all(t *testing.T) string {
	t.Helper()
	out := ""
	for _, path := range []string{"/v1/tenants", "/v1/clusters", "/v1/hosts/gpu-3"} {
		w := f.change("GET", path, "", "")
		f.want(t, w, 200)
		out += w.Body.String()
	}
	return out
}

// TestHostsOfATokenGoWithItsPKeys: hosts in the file of tokens confine nothing by themselves, so that is refused.
func TestHostsOfATokenGoWithItsPKeys(t *testing.T) {
	_, digest := credential.New()
	for _, wrong := range []string{"hosts: [a]", "p_keys: [0x0100], hosts: ['[']", "p_keys: [0x0100], hosts: ['']"} {
		if _, err := credential.Parse("tokens.yaml", fmt.Appendf(nil, "tokens:\n- {name: x, role: operator, sha256: %s, %s}\n", digest, wrong)); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}
