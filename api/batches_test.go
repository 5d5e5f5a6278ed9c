package api_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api"
	"portcullis/api/limit"
	"portcullis/api/roles"
	v1 "portcullis/api/v1"
)

// batchOf returns what became of the hosts of a batch.
func batchOf(t *testing.T, w *httptest.ResponseRecorder) (out v1.Batch) {
	t.Helper()
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	fatal(t, json.Unmarshal(w.Body.Bytes(), &out))
	return out
}

// changedAndRefused returns the ids of the hosts that were changed, and the codes of the others by id.
func changedAndRefused(b v1.Batch) (changed []string, refused map[string]string) {
	refused = map[string]string{}
	for _, h := range b.Changed {
		changed = append(changed, h.ID)
	}
	for _, h := range b.Refused {
		refused[h.ID] = fmt.Sprint(h.Status, " ", h.Code)
	}
	return changed, refused
}

// clusterOf returns the cluster that a host is assigned to.
func (f *fixture) clusterOf(t *testing.T, id string) string {
	t.Helper()
	var h v1.Host
	w := f.do("GET", "/v1/hosts/"+id, f.operator, "")
	f.want(t, w, 200)
	fatal(t, json.Unmarshal(w.Body.Bytes(), &h))
	return h.Cluster
}

// TestBatches: each host of a batch is judged as a request about it alone is, and one that is refused stops no other.
func TestBatches(t *testing.T) {
	t.Parallel()
	f := decided(t, site(t, "h1", "h2", "h3", "h4", "h5"))
	f.post(t,
		attempt{"/v1/tenants", `{"name":"acme"}`, 201, ""},
		attempt{"/v1/clusters", `{"name":"c1","tenant":"acme"}`, 201, ""},
		attempt{"/v1/clusters", `{"name":"c2","tenant":"acme"}`, 201, ""},
		attempt{"/v1/hosts/h4/assign", `{"cluster":"c2"}`, 202, ""},
	)
	const assign, release = "/v1/batches/assign", "/v1/batches/release"
	post := func(path, body string) *httptest.ResponseRecorder {
		t.Helper()
		return f.change("POST", path, "", body)
	}

	changed, refused := changedAndRefused(batchOf(t, post(assign, `{"cluster":"c1","hosts":[{"id":"h2"},{"id":"none"},{"id":"h1","epoch":0},{"id":"h3","epoch":7},{"id":"h4"}]}`)))
	if want := []string{"h2", "h1"}; !slices.Equal(changed, want) {
		t.Errorf("assigned %v, want %v in the order of the request", changed, want)
	}
	if d := cmp.Diff(map[string]string{"none": "404 host_unknown", "h3": "412 changed", "h4": "409 host_assigned"}, refused); d != "" {
		t.Errorf("refused (-want +got):\n%s", d)
	}
	if got := f.clusterOf(t, "h3"); got != "" {
		t.Errorf("h3 is of %q", got)
	}

	wantProblem(t, post(assign, `{"cluster":"c1","hosts":[{"id":"h5"},{"id":"h3"},{"id":"h5"}]}`), 422, "host_twice")
	wantProblem(t, post(assign, `{"cluster":"c1","hosts":[]}`), 422, v1.CodeInvalid)
	wantProblem(t, post(release, `{"confirm":1,"hosts":[{"id":"h1"}]}`), 422, v1.CodeInvalid) // the assignment is not named
	var many []string
	for i := range v1.MaxBatch + 1 {
		many = append(many, fmt.Sprintf(`{"id":"x%d","epoch":1}`, i))
	}
	wantProblem(t, post(release, `{"confirm":257,"hosts":[`+strings.Join(many, ",")+`]}`), 422, v1.CodeInvalid)

	const hosts = `"hosts":[{"id":"h1","epoch":1},{"id":"h2","epoch":1},{"id":"h4","epoch":2},{"id":"h5","epoch":0},{"id":"none","epoch":1}]`
	for _, confirm := range []string{"", `"confirm":4,`, `"confirm":6,`} {
		p := wantProblem(t, post(release, `{`+confirm+hosts+`}`), 409, v1.CodeConfirm)
		if !strings.Contains(p.Detail, "nothing was done: cluster c1 loses 2 of its 2 (its last); cluster c2 loses 1 of its 1 (its last); 1 have no cluster; 1 are not there") ||
			!strings.Contains(p.Hint, `"confirm": 5`) {
			t.Errorf("the refusal says %q, cure %q", p.Detail, p.Hint)
		}
	}
	if got := f.clusterOf(t, "h1"); got != "c1" {
		t.Errorf("without a confirmation h1 is of %q", got)
	}
	changed, refused = changedAndRefused(batchOf(t, post(release, `{"confirm":5,`+hosts+`}`)))
	if want := []string{"h1", "h2"}; !slices.Equal(changed, want) {
		t.Errorf("released %v, want %v", changed, want)
	}
	if d := cmp.Diff(map[string]string{"none": "404 host_unknown", "h4": "412 changed", "h5": "409 host_not_assigned"}, refused); d != "" {
		t.Errorf("refused (-want +got):\n%s", d)
	}
	if got := f.clusterOf(t, "h4"); got != "c2" {
		t.Errorf("h4, of which another assignment was named, is of %q", got)
	}
}

// TestBatchOfATenant: a tenant releases hosts of its own by a batch, learns nothing of others, and assigns none.
func TestBatchOfATenant(t *testing.T) {
	t.Parallel()
	f := decided(t, site(t, "h1", "h2", "h3"))
	tokens := f.tokensOfRoles(t)
	f.operator = tokens[roles.Operator]
	f.post(t,
		attempt{"/v1/tenants", `{"name":"acme"}`, 201, ""},
		attempt{"/v1/tenants", `{"name":"zeta"}`, 201, ""},
		attempt{"/v1/clusters", `{"name":"c1","tenant":"acme"}`, 201, ""},
		attempt{"/v1/clusters", `{"name":"theirs","tenant":"zeta"}`, 201, ""},
		attempt{"/v1/hosts/h1/assign", `{"cluster":"c1"}`, 202, ""},
		attempt{"/v1/hosts/h2/assign", `{"cluster":"theirs"}`, 202, ""},
	)
	own := tokens[roles.Tenant]
	wantProblem(t, f.do("POST", "/v1/batches/assign", own, `{"cluster":"c1","hosts":[{"id":"h3"}]}`), 403, v1.CodeForbidden)
	body := func(other string) string {
		return `{"hosts":[{"id":"h1","epoch":1},{"id":"` + other + `","epoch":1}]}`
	}
	theirs := wantProblem(t, f.do("POST", "/v1/batches/release", own, body("h2")), 409, v1.CodeConfirm)
	nobodys := wantProblem(t, f.do("POST", "/v1/batches/release", own, body("none")), 409, v1.CodeConfirm)
	if theirs.Detail != nobodys.Detail || !strings.Contains(theirs.Detail, "cluster c1 loses 1 of its 1 (its last); 1 are not there") {
		t.Errorf("a host of another tenant: %q\na host that is not there: %q", theirs.Detail, nobodys.Detail)
	}
	got := batchOf(t, f.do("POST", "/v1/batches/release", own, `{"confirm":2,`+body("h2")[1:]))
	changed, refused := changedAndRefused(got)
	if !slices.Equal(changed, []string{"h1"}) || refused["h2"] != "404 host_unknown" {
		t.Errorf("released %v, refused %v", changed, refused)
	}
	if is := f.clusterOf(t, "h2"); is != "theirs" {
		t.Errorf("the host of another tenant is of %q", is)
	}
}

// TestBatchIsCharged: a batch counts against the rate of its token as requests about its hosts do.
func TestBatchIsCharged(t *testing.T) {
	t.Parallel()
	f := decided(t, site(t, "h1"), func(o *api.Options) { o.Limits.Tokens = limit.Rate{PerSecond: 0.001, Burst: 10} })
	var hosts []string
	for i := range 30 {
		hosts = append(hosts, fmt.Sprintf(`{"id":"x%d"}`, i))
	}
	batchOf(t, f.do("POST", "/v1/batches/assign", f.operator, `{"cluster":"c1","hosts":[`+strings.Join(hosts, ",")+`]}`))
	wantProblem(t, f.do("GET", "/v1/hosts", f.operator, ""), 429, v1.CodeRateLimited)
}

// TestBatchIsAnsweredOnce: a batch of as many hosts as there may be is answered as before when it is repeated.
func TestBatchIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	f := answering(t)
	names := make([]string, v1.MaxBatch)
	for i := range names {
		names[i] = fmt.Sprintf("compute-%04d", i)
	}
	f.site.Register(names...)
	f.want(t, f.change("POST", "/v1/tenants", "", `{"name":"acme"}`), 201)
	f.want(t, f.change("POST", "/v1/clusters", "", `{"name":"c1","tenant":"acme"}`), 201)
	var hosts []string
	for _, id := range names {
		hosts = append(hosts, `{"id":"`+id+`","epoch":0}`)
	}
	body := `{"cluster":"c1","hosts":[` + strings.Join(hosts, ",") + `]}`
	first := f.named("k1", "POST", "/v1/batches/assign", body)
	if b := batchOf(t, first); len(b.Changed) != v1.MaxBatch || b.Changed[7].Epoch != 1 {
		t.Fatalf("%d hosts were assigned", len(b.Changed))
	}
	again := f.named("k1", "POST", "/v1/batches/assign", body)
	if again.Code != 200 || again.Body.String() != first.Body.String() || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("the repetition is answered %d %.200s", again.Code, again.Body)
	}
}
