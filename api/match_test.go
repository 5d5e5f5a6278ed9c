package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/apitest"
	"portcullis/api/inventory"
	v1 "portcullis/api/v1"
)

// parameter is a parameter of an operation in the OpenAPI document.
type parameter struct {
	Name, In string
	Required bool
}

// documented is an operation of the OpenAPI document.
type documented struct {
	ID         string `json:"operationId"`
	Parameters []parameter
	Security   []map[string][]string
	method     string
	template   string // of path
	path       string // with a value for each parameter
}

func (d *documented) has(name, in string) bool {
	for _, p := range d.Parameters {
		if p.Name == name && p.In == in {
			return true
		}
	}
	return false
}

// asks reports whether the operation asks for the credential of an operator or a machine.
func (d *documented) asks() bool {
	return len(d.Security) == 2 && d.Security[0]["operator"] != nil && d.Security[1]["machine"] != nil
}

// demands reports whether the operation is refused without If-Match.
func (d *documented) demands() bool {
	return slices.Contains(d.Parameters, parameter{"If-Match", "header", true})
}

// operations returns every operation of the document, with values for the parameters of its path.
func operations(t *testing.T, f *fixture) []documented {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]documented
	}
	if err := json.Unmarshal(f.do("GET", "/openapi.json", "", "").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	values := strings.NewReplacer("{id}", "h1", "{name}", "n1", "{shared}", "n2", "{number}", "1", "{guid}", "0x0000000000000001",
		"{mgid}", "ff12:401b:ffff::1", "{host}", "h1", "{class}", "c1", "{version}", "1", "{ticket}", "t1", "{kind}", "rack",
		"{digest}", strings.Repeat("0f", 32), "{level}", "0", "{tile}", "0")
	var out []documented
	for path, methods := range doc.Paths {
		for method, d := range methods {
			d.method, d.template, d.path = strings.ToUpper(method), path, values.Replace(path)
			if strings.ContainsAny(d.path, "{}") {
				t.Fatalf("%s: no value for a parameter of %s", d.ID, path)
			}
			out = append(out, d)
		}
	}
	if len(out) < 90 {
		t.Fatalf("the document has %d operations, want all", len(out))
	}
	return out
}

// conditional sends a request with a condition.
func (f *fixture) conditional(method, path, header, value string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+f.operator)
	r.Header.Set(header, value)
	return f.send(r)
}

// TestConditionsAreNeverIgnored sends conditions to every operation and path.
func TestConditionsAreNeverIgnored(t *testing.T) {
	f := newFixture(t, unlimited, func(o *api.Options) { o.Limits.Attestations = o.Limits.Requests })
	honour := 0
	for _, d := range operations(t, f) {
		headers := []string{"If-Unmodified-Since"}
		if d.has("If-Match", "header") {
			honour++
			wantProblem(t, f.conditional(d.method, d.path, "If-Match", "7"), http.StatusBadRequest, v1.CodeBadRequest)
			wantProblem(t, f.conditional(d.method, d.path, "If-Match", ""), http.StatusBadRequest, v1.CodeBadRequest)
		} else {
			headers = append(headers, "If-Match")
		}
		if d.method != "GET" {
			headers = append(headers, "If-None-Match", "If-Modified-Since")
		}
		for _, header := range headers {
			p := wantProblem(t, f.conditional(d.method, d.path, header, `"99"`), http.StatusBadRequest, v1.CodeCondition)
			if !strings.Contains(p.Detail, header) {
				t.Errorf("%s: the problem does not name %s: %s", d.ID, header, p.Detail)
			}
		}
	}
	if honour < 12 {
		t.Errorf("%d operations compare If-Match, want those of hosts, clusters, tenants and revisions", honour)
	}
	for _, path := range []string{"/livez", "/readyz", "/version", "/metrics", "/metrics/fabric", "/openapi.json", "/openapi.yaml"} {
		wantProblem(t, f.conditional("GET", path, "If-Match", "*"), http.StatusBadRequest, v1.CodeCondition)
	}
	if got := f.site.Actors(); len(got) > 0 {
		t.Errorf("changes were made: %v", got)
	}
}

// decided is a fixture whose backend really decides.
func decided(t *testing.T, site *admissiontest.Site, edit ...func(*api.Options)) *fixture {
	t.Helper()
	return newFixture(t, append([]func(*api.Options){unlimited, func(o *api.Options) { o.Backend, o.Tenancy = apitest.Real{Service: site.Service()}.Parts() }}, edit...)...)
}

// change sends a request of the operator with a body and, unless it is empty, If-Match.
func (f *fixture) change(method, path, match, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+f.operator)
	if body != "" {
		r.Header.Set("Content-Type", bodyType(method))
	}
	if match != "" {
		r.Header.Set("If-Match", match)
	}
	return f.send(r)
}

func (f *fixture) want(t *testing.T, w *httptest.ResponseRecorder, status int) string {
	t.Helper()
	if w.Code != status {
		t.Fatalf("status %d, want %d; body: %s", w.Code, status, w.Body)
	}
	return w.Header().Get("ETag")
}

// TestDelayedReleaseMissesTheNextTenancy has a request for one tenancy arrive in the next.
func TestDelayedReleaseMissesTheNextTenancy(t *testing.T) {
	f := decided(t, site(t, "h1"))
	f.want(t, f.change("POST", "/v1/tenants", "", `{"name":"t1"}`), http.StatusCreated)
	f.want(t, f.change("POST", "/v1/clusters", "", `{"name":"a","tenant":"t1"}`), http.StatusCreated)
	f.want(t, f.change("POST", "/v1/clusters", "", `{"name":"b","tenant":"t1"}`), http.StatusCreated)

	free := f.want(t, f.change("GET", "/v1/hosts/h1", "", ""), http.StatusOK)
	first := f.want(t, f.change("POST", "/v1/hosts/h1/assign", free, `{"cluster":"a"}`), http.StatusAccepted)
	if free != `"0"` || first != `"1"` {
		t.Fatalf("ETags %s and %s, want the numbers of assignments", free, first)
	}
	f.want(t, f.change("POST", "/v1/hosts/h1/release", first, ""), http.StatusAccepted)
	again := wantProblem(t, f.change("POST", "/v1/hosts/h1/release", first, ""), http.StatusConflict, "host_not_assigned")
	if !strings.Contains(again.Detail, "h1") {
		t.Errorf("a repeated release is told %q", again.Detail)
	}
	second := f.want(t, f.change("POST", "/v1/hosts/h1/assign", first, `{"cluster":"b"}`), http.StatusAccepted)

	late := wantProblem(t, f.change("POST", "/v1/hosts/h1/release", first, ""), http.StatusPreconditionFailed, v1.CodeChanged)
	if !strings.Contains(late.Detail, "assignment 2 holds now, to cluster b") {
		t.Errorf("a delayed release is told %q", late.Detail)
	}
	wantProblem(t, f.change("POST", "/v1/hosts/h1/assign", first, `{"cluster":"b"}`), http.StatusPreconditionFailed, v1.CodeChanged)
	wantProblem(t, f.change("POST", "/v1/hosts/h1/release", `W/`+second, ""), http.StatusPreconditionFailed, v1.CodeChanged)
	wantProblem(t, f.change("POST", "/v1/hosts/h1/tpm-cleared", first, `{"reason":"r"}`), http.StatusPreconditionFailed, v1.CodeChanged)
	wantProblem(t, f.change("POST", "/v1/hosts/h1/guid-resolved", first, `{"reason":"r"}`), http.StatusPreconditionFailed, v1.CodeChanged)
	f.want(t, f.change("POST", "/v1/hosts/h1/release", `"7", `+second, ""), http.StatusAccepted)
}

// TestNameThatIsTakenAgain has a request for a cluster and a tenant arrive at later ones of the same name.
func TestNameThatIsTakenAgain(t *testing.T) {
	f := decided(t, site(t, "h1"))
	first := f.want(t, f.change("POST", "/v1/tenants", "", `{"name":"t1"}`), http.StatusCreated)
	cluster := f.want(t, f.change("POST", "/v1/clusters", "", `{"name":"a","tenant":"t1"}`), http.StatusCreated)
	f.want(t, f.change("POST", "/v1/clusters", "", `{"name":"s","tenant":"t1","shared":true}`), http.StatusCreated)
	f.want(t, f.change("DELETE", "/v1/clusters/a", cluster, ""), http.StatusNoContent)
	later := f.want(t, f.change("POST", "/v1/clusters", "", `{"name":"a","tenant":"t1"}`), http.StatusCreated)
	if later == cluster {
		t.Fatalf("two clusters of one name have the ETag %s", later)
	}
	for method, path := range map[string]string{"DELETE": "/v1/clusters/a", "PUT": "/v1/clusters/a/uses/s"} {
		wantProblem(t, f.change(method, path, cluster, ""), http.StatusPreconditionFailed, v1.CodeChanged)
	}
	f.want(t, f.change("PUT", "/v1/clusters/a/uses/s", later, ""), http.StatusOK)
	wantProblem(t, f.change("DELETE", "/v1/clusters/a/uses/s", cluster, ""), http.StatusPreconditionFailed, v1.CodeChanged)
	f.want(t, f.change("DELETE", "/v1/clusters/a", later, ""), http.StatusNoContent)
	f.want(t, f.change("DELETE", "/v1/clusters/s", "*", ""), http.StatusNoContent)
	wantProblem(t, f.change("DELETE", "/v1/tenants/t1", cluster, ""), http.StatusPreconditionFailed, v1.CodeChanged)
	f.want(t, f.change("DELETE", "/v1/tenants/t1", first, ""), http.StatusNoContent)
}

// site makes a service that really decides, and whose inventory has hosts with an adapter of one port each, cabled to
// switch 0x10. It runs as long as the test.
func site(t *testing.T, hosts ...string) *admissiontest.Site {
	t.Helper()
	s := admissiontest.New(t)
	var y strings.Builder
	y.WriteString("hosts:\n")
	for i, id := range hosts {
		fmt.Fprintf(&y, "- {id: %s, rack: r%d, hcas: [{node_guid: 0x%d00, ports: [{port: 1, guid: 0x%d01, cable: 0x10/%d}]}]}\n", id, i+1, i+1, i+1, i+1)
	}
	_, err := s.Service().Inventory().ImportInventory(t.Context(), "alice", []inventory.File{{Name: "hosts.yaml", Data: []byte(y.String())}}, v1.RepairTicket{}, false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWhatTakesAwayNamesItsVersion sends what takes away from a host, tenant or cluster without a version.
func TestWhatTakesAwayNamesItsVersion(t *testing.T) {
	f := newFixture(t, unlimited)
	var demanding []string
	for _, d := range operations(t, f) {
		if !d.demands() {
			continue
		}
		demanding = append(demanding, d.ID)
		p := wantProblem(t, f.change(d.method, d.path, "", ""), http.StatusPreconditionRequired, v1.CodeVersionMissing)
		object := strings.Join(strings.Split(d.path, "/")[:4], "/")
		if !strings.Contains(p.Detail, "If-Match") || !strings.Contains(p.Hint, "GET "+object+" ") || !strings.Contains(p.Hint, "If-Match: *") {
			t.Errorf("%s: the problem does not name the header, or how to read the version: %s; %s", d.ID, p.Detail, p.Hint)
		}
		if w := f.change("GET", object, "", ""); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "no such path") {
			t.Errorf("%s: %s is no path of an object: %s", d.ID, object, w.Body)
		}
		if w := f.change(d.method, d.path, "*", ""); w.Code == http.StatusPreconditionRequired || w.Code == http.StatusPreconditionFailed {
			t.Errorf("%s with any version: %d %s", d.ID, w.Code, w.Body)
		}
	}
	slices.Sort(demanding)
	want := []string{"delete-cluster", "delete-tenant", "release-host", "remove-host", "stop-using-cluster"}
	if !slices.Equal(demanding, want) {
		t.Errorf("If-Match is demanded by %v, want %v", demanding, want)
	}
	if got := f.site.Actors(); len(got) > 0 {
		t.Errorf("changes were made: %v", got)
	}
}

// TestRequestWithoutVersionIsSentAgain sends a request with its key again, now with the version that it lacked.
func TestRequestWithoutVersionIsSentAgain(t *testing.T) {
	t.Parallel()
	f := answering(t)
	made := f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`)
	wantStatus(t, made, http.StatusCreated)
	wantProblem(t, f.named("k2", "DELETE", "/v1/tenants/acme", ""), http.StatusPreconditionRequired, v1.CodeVersionMissing)
	wantStatus(t, f.named("k2", "DELETE", "/v1/tenants/acme", "", "If-Match", made.Header().Get("Etag")), http.StatusNoContent)
}
