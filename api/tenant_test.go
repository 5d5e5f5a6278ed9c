package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/apitest"
	"portcullis/api/credential"
	"portcullis/api/idempotency"
	"portcullis/api/roles"
	"portcullis/api/ufm"
	v1 "portcullis/api/v1"
	"portcullis/attest/result"
	"portcullis/attest/result/token"
)

// Names of the same length: a tenant, a cluster and a host have the first, which are another's, and nothing has the second.
const theirs, nobodys = "theirs", "nobody"

// newTenantFixture serves a site of two tenants, each with a cluster and an admitted host, and a shared cluster of the first that
// both use. It returns the token of a credential for the first.
func newTenantFixture(t *testing.T) (f *fixture, tenant string) {
	t.Helper()
	svc := apitest.NewResults(t, nil)
	site := apitest.NewSite(t, func(o *admission.Options) { o.Results = svc })
	f = fixtureOn(t, site, unlimited, func(o *api.Options) {
		o.UFM = &ufm.Settings{}
		o.Results, o.Answers = svc, idempotency.New(site.Store, time.Now, idempotency.DefaultRate())
	})
	site.Register("host-1", theirs)
	site.Admit("host-1")
	for _, r := range [][2]string{
		{"/v1/tenants", `{"name":"theirs"}`},
		{"/v1/clusters", `{"name":"theirs","tenant":"theirs"}`},
		{"/v1/clusters", `{"name":"disks","tenant":"acme","shared":true}`},
	} {
		f.want(t, f.change("POST", r[0], "", r[1]), 201)
	}
	f.want(t, f.change("POST", "/v1/hosts/theirs/assign", "", `{"cluster":"theirs"}`), 202)
	for _, c := range []string{"train", "theirs"} {
		f.want(t, f.change("PUT", "/v1/clusters/"+c+"/uses/disks", "", ""), 200)
	}
	site.Place(theirs)
	site.Hand(theirs)
	site.Program()
	tenant, digest := credential.New()
	known, err := credential.Parse("tokens.yaml", fmt.Appendf(nil, "tokens:\n- {name: of-acme, role: tenant, sha256: %s, tenants: [acme]}\n", digest))
	fatal(t, err)
	f.server.SetTokens(known)
	return f, tenant
}

// asked is the answer to a request, without what names the request, and the work that the store did for it.
type asked struct {
	Status int
	Header http.Header
	Body   string
	Work   []string
}

var requestIDs = regexp.MustCompile(`"request_id":"[0-9a-f]{16}"`)

// about sends a request about objects with a name.
func (f *fixture) about(token, name, method, path, body string, header http.Header) asked {
	r := httptest.NewRequest(method, strings.ReplaceAll(path, "NAME", name), strings.NewReader(strings.ReplaceAll(body, "NAME", name)))
	r.Header = header.Clone()
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", bodyType(method))
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		r.Header.Set("Idempotency-Key", key+name)
	}
	f.site.Work()
	w := f.send(r)
	w.Header().Del("X-Request-Id")
	return asked{w.Code, w.Header(), strings.ReplaceAll(requestIDs.ReplaceAllString(w.Body.String(), ""), name, "NAME"), f.site.Work()}
}

// named has a NAME for each parameter of a path that names a tenant, cluster or host.
var named = strings.NewReplacer("{id}", "NAME", "{name}", "NAME", "{shared}", "NAME", "{host}", "NAME", "{number}", "1",
	"{guid}", "0x0000000000000001", "{mgid}", "ff12:401b:ffff::1", "{class}", "c1", "{version}", "1", "{ticket}", "t1", "{kind}", "rack")

// TestAnothersObjectIsNone has a credential of a tenant ask every operation about objects of another tenant and about objects that
// do not exist. The answers are the same to the byte, and so is what the store was asked for them.
func TestAnothersObjectIsNone(t *testing.T) {
	t.Parallel()
	f, tenant := newTenantFixture(t)
	compared, allowed := 0, 0
	same := func(method, path, body string, header http.Header) asked {
		t.Helper()
		compared++
		one := f.about(tenant, theirs, method, path, body, header)
		other := f.about(tenant, nobodys, method, path, body, header)
		if d := cmp.Diff(other, one); d != "" {
			t.Errorf("%s %s %s %v tells another's object (+) from none (-):\n%s", method, path, body, header, d)
		}
		return one
	}
	for _, d := range operations(t, f) {
		if !d.asks() {
			continue
		}
		path, headers := named.Replace(d.template), []http.Header{{}}
		if d.has("If-Match", "header") {
			headers = append(headers, http.Header{"If-Match": {"*"}}, http.Header{"If-Match": {`"1"`}})
		}
		if d.has("Idempotency-Key", "header") {
			headers = append(headers, http.Header{"If-Match": {"*"}, "Idempotency-Key": {"once-" + d.ID}}, http.Header{"If-Match": {"*"}, "Idempotency-Key": {"once-" + d.ID}})
		}
		for _, h := range headers {
			for _, body := range []string{"", "{}", `{"cluster":"NAME"}`} {
				if d.method == http.MethodGet && body != "" {
					continue
				}
				got := same(d.method, path, body, h)
				if !roles.Allows(roles.Tenant, d.ID) {
					if got.Status != http.StatusForbidden || len(got.Work) > 0 {
						t.Errorf("%s: status %d, and the store was asked %v; want 403 and nothing", d.ID, got.Status, got.Work)
					}
					continue
				}
				allowed++
				if strings.Contains(path, "NAME") && got.Status < 400 {
					t.Errorf("%s: status %d about an object of another tenant", d.ID, got.Status)
				}
				if strings.Contains(path, "NAME") && len(h) == 1 && h.Get("If-Match") == "*" && body == "" && got.Status != http.StatusNotFound {
					t.Errorf("%s: status %d, want 404", d.ID, got.Status)
				}
			}
		}
	}
	after := url.QueryEscape("aG9zdHMAaG9zdC0w") // hosts, host-0
	for _, path := range []string{
		"/v1/hosts?tenant=NAME", "/v1/hosts?cluster=NAME", "/v1/hosts?tenant=acme&cluster=NAME", "/v1/hosts?tenant=NAME&cluster=train",
		"/v1/hosts?view=id&cluster=NAME", "/v1/hosts?view=summary&tenant=NAME", "/v1/hosts?prefix=NAME", "/v1/hosts?phase=admitted&prefix=NAME",
		"/v1/hosts?view=id&prefix=NAME&after=" + after, "/v1/clusters?tenant=NAME", "/metrics", "/metrics/fabric", "/readyz",
	} {
		same(http.MethodGet, path, "", http.Header{})
	}
	if compared < 120 || allowed < 12 {
		t.Errorf("%d requests compared, %d of operations that the role may use", compared, allowed)
	}
	f.site.Work()
	if got := f.site.Actors(); !slices.Contains(got, "of-acme") {
		t.Errorf("the audit log has %q: that a tenant reached for hosts it does not have is not recorded", got)
	}
}

// TestTenantSeesItsOwn: lists have what the tenant has, however many others there are, and what it is shown names nothing of others.
func TestTenantSeesItsOwn(t *testing.T) {
	t.Parallel()
	f, tenant := newTenantFixture(t)
	get := func(path string, to any) string {
		t.Helper()
		w := f.do("GET", path, tenant, "")
		f.want(t, w, 200)
		if strings.Contains(w.Body.String(), theirs) {
			t.Errorf("%s names what another tenant has: %s", path, w.Body)
		}
		fatal(t, json.Unmarshal(w.Body.Bytes(), to))
		return w.Body.String()
	}
	var tenants v1.List[v1.Tenant]
	get("/v1/tenants?limit=1", &tenants)
	var clusters, page v1.List[v1.Cluster]
	get("/v1/clusters", &clusters)
	if len(tenants.Items) != 1 || tenants.Items[0].Name != "acme" || tenants.Next != "" {
		t.Errorf("tenants: %+v", tenants)
	}
	if len(clusters.Items) != 2 || clusters.Items[0].Name != "disks" || !slices.Equal(clusters.Items[0].Users, []string{"train"}) || clusters.Items[1].Name != "train" {
		t.Errorf("clusters: %+v", clusters)
	}
	get("/v1/clusters?limit=1", &page)
	next := v1.List[v1.Cluster]{}
	get("/v1/clusters?limit=1&after="+page.Next, &next)
	if len(page.Items) != 1 || len(next.Items) != 1 || next.Items[0].Name != "train" || next.Next != "" {
		t.Errorf("pages: %+v, %+v", page, next)
	}
	for _, query := range []string{"", "?tenant=acme", "?cluster=train", "?tenant=acme&cluster=train", "?phase=admitted", "?prefix=h", "?limit=1"} {
		var hosts v1.List[v1.Host]
		get("/v1/hosts"+query, &hosts)
		if len(hosts.Items) != 1 || hosts.Items[0].ID != "host-1" || hosts.Next != "" {
			t.Errorf("%s: %+v", query, hosts)
		}
	}
	var one v1.Host
	get("/v1/hosts/host-1", &one)
	if one.Cluster != "train" || one.Status.Phase != v1.PhaseAdmitted || one.Status.Reference != "" || one.HCAs[0].Ports[0].Seen.IsZero() {
		t.Errorf("host: %+v", one)
	}
	for _, path := range []string{"/v1/events", "/v1/events/watch", "/v1/audit", "/v1/pkeys/quarantined", "/metrics", "/metrics/fabric"} {
		wantProblem(t, f.do("GET", path, tenant, ""), 403, v1.CodeForbidden)
	}
}

// TestTenantsResult: what is signed for a tenant has nothing of the audit log, nor by which reference the host was accepted.
func TestTenantsResult(t *testing.T) {
	t.Parallel()
	f, tenant := newTenantFixture(t)
	w := f.do("POST", "/v1/hosts/host-1/attestation-result", tenant, "")
	f.want(t, w, 200)
	var r v1.AttestationResult
	fatal(t, json.Unmarshal(w.Body.Bytes(), &r))
	keys, err := token.ParseKeys(f.do("GET", "/.well-known/jwks.json", "", "").Body.Bytes())
	fatal(t, err)
	b, _, err := token.Verify(r.Result, keys)
	fatal(t, err)
	c, err := result.Decode(b)
	fatal(t, err)
	if c.Audit != nil || c.Host.Reference != "" || c.Host.State != result.StateAdmitted {
		t.Errorf("claims: %+v", c)
	}
}

// TestTenantGivesAHostBack: once it is released, the host does not exist for the tenant, and a stream of it ends.
func TestTenantGivesAHostBack(t *testing.T) {
	t.Parallel()
	f, tenant := newTenantFixture(t)
	release := func(match string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/v1/hosts/host-1/release", http.NoBody)
		r.Header = http.Header{"Authorization": {"Bearer " + tenant}, "If-Match": {match}}
		return f.send(r)
	}
	stream := make(chan string)
	r := httptest.NewRequest("GET", "/v1/hosts/host-1/watch", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+tenant)
	go func() { w := f.send(r); stream <- w.Body.String() }()
	f.want(t, release(`"7"`), 412)
	w := release(`"1"`)
	f.want(t, w, 202)
	var h v1.Host
	fatal(t, json.Unmarshal(w.Body.Bytes(), &h))
	if h.Status.Phase != v1.PhaseReleasing {
		t.Errorf("released: %+v", h)
	}
	wantProblem(t, release("*"), 404, "host_unknown")
	wantProblem(t, f.do("GET", "/v1/hosts/host-1", tenant, ""), 404, "host_unknown")
	if got := <-stream; strings.Contains(got, theirs) {
		t.Errorf("stream: %s", got)
	}
}

// TestSurfaceOfUFMIsClosedToTenants: it shows the whole fabric.
func TestSurfaceOfUFMIsClosedToTenants(t *testing.T) {
	t.Parallel()
	f, tenant := newTenantFixture(t)
	for path, want := range map[string]int{"/ufmRest/resources/systems": 403, "/ufmRest/resources/pkeys/": 403} {
		if w := f.do("GET", path, tenant, ""); w.Code != want || strings.Contains(w.Body.String(), theirs) {
			t.Errorf("%s: status %d, want %d: %s", path, w.Code, want, w.Body)
		}
	}
	if w := f.do("GET", "/ufmRest/resources/systems", f.others(t), ""); w.Code != 200 {
		t.Errorf("a viewer: status %d: %s", w.Code, w.Body)
	}
}

// others has the server know the token of a viewer alone, and returns it.
func (f *fixture) others(t *testing.T) string {
	t.Helper()
	viewer, digest := credential.New()
	known, err := credential.Parse("tokens.yaml", fmt.Appendf(nil, "tokens:\n- {name: vic, role: viewer, sha256: %s}\n", digest))
	fatal(t, err)
	f.server.SetTokens(known)
	return viewer
}
