package api_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"portcullis/api/roles"
	v1 "portcullis/api/v1"
)

// TestQuotaOfATenant: an operator sets the quota of a tenant, which reads it with what it has, and cannot change it. More is refused
// by name, and what is there is released.
func TestQuotaOfATenant(t *testing.T) {
	t.Parallel()
	f := decided(t, site(t, "h1", "h2"))
	tokens := f.tokensOfRoles(t)
	f.operator = tokens[roles.Operator]
	tenantOf := func(w *httptest.ResponseRecorder) (out v1.Tenant) {
		t.Helper()
		f.want(t, w, 200)
		fatal(t, json.Unmarshal(w.Body.Bytes(), &out))
		return out
	}

	tag := f.want(t, f.change("POST", "/v1/tenants", "", `{"name":"acme"}`), 201)
	f.want(t, f.change("POST", "/v1/tenants", "", `{"name":"zeta"}`), 201)
	for _, c := range []string{"c1", "c2"} {
		f.want(t, f.change("POST", "/v1/clusters", "", fmt.Sprintf(`{"name":%q,"tenant":"acme"}`, c)), 201)
	}
	const path, body = "/v1/tenants/acme/quota", `{"hosts":1,"clusters":1}`
	w := f.change("PUT", path, tag, body)
	got := tenantOf(w)
	if *got.Quota.Hosts != 1 || got.Quota.PKeys != nil || !slices.Equal(got.Exceeded, []string{"clusters"}) || w.Header().Get("ETag") == tag {
		t.Errorf("quota below what is there: %s, ETag %s", w.Body, w.Header().Get("ETag"))
	}
	wantProblem(t, f.change("PUT", path, tag, `{}`), 412, v1.CodeChanged)
	wantProblem(t, f.change("PUT", path, "", `{"hosts":-1}`), 422, v1.CodeInvalid)
	wantProblem(t, f.change("PUT", "/v1/tenants/nobody/quota", "", `{}`), 404, "tenant_unknown")
	for r, token := range tokens {
		if r != roles.Operator {
			wantProblem(t, f.do("PUT", path, token, `{"hosts":9}`), 403, v1.CodeForbidden)
		}
	}

	f.want(t, f.change("POST", "/v1/hosts/h1/assign", "", `{"cluster":"c1"}`), 202)
	p := wantProblem(t, f.change("POST", "/v1/hosts/h2/assign", "", `{"cluster":"c2"}`), 409, "quota_exceeded")
	if p.Detail != "tenant acme may have 1 hosts and has 1: one more is refused" || !strings.Contains(p.Hint, "portcullis tenant quota acme --hosts N") {
		t.Errorf("the refusal says %q, cure %q", p.Detail, p.Hint)
	}
	p = wantProblem(t, f.change("POST", "/v1/clusters", "", `{"name":"c3","tenant":"acme"}`), 409, "quota_exceeded")
	if p.Detail != "tenant acme may have 1 clusters and has 2: one more is refused" {
		t.Errorf("the refusal says %q", p.Detail)
	}
	own := tenantOf(f.do("GET", "/v1/tenants/acme", tokens[roles.Tenant], ""))
	if want := (v1.TenantUse{Hosts: 1, Clusters: 2, PKeys: 2}); own.Use != want || *own.Quota.Clusters != 1 {
		t.Errorf("the tenant reads %+v of %+v, want %+v", own.Use, own.Quota, want)
	}
	wantProblem(t, f.do("GET", "/v1/tenants/zeta", tokens[roles.Tenant], ""), 404, "tenant_unknown")

	f.want(t, f.do("POST", "/v1/hosts/h1/release", tokens[roles.Tenant], ""), 428) // as ever: it names what it takes away
	f.want(t, f.change("POST", "/v1/hosts/h1/release", "*", ""), 202)
	f.want(t, f.change("DELETE", "/v1/clusters/c1", "*", ""), 204)
	f.want(t, f.change("POST", "/v1/hosts/h2/assign", "", `{"cluster":"c2"}`), 202)
	wantProblem(t, f.change("DELETE", "/v1/tenants/acme", tag, ""), 412, v1.CodeChanged)
}
