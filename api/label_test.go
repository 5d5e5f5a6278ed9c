package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/audit"
	"portcullis/api/hostlabel"
	"portcullis/api/label"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// labels reads the body of an answer about labels.
func labels(t *testing.T, w *httptest.ResponseRecorder) v1.Labels {
	t.Helper()
	var l v1.Labels
	if w.Code != http.StatusOK {
		t.Fatalf("status %d; body: %s", w.Code, w.Body)
	}
	fatal(t, json.Unmarshal(w.Body.Bytes(), &l))
	if etag := w.Header().Get("ETag"); etag != `"`+l.Version+`"` || l.Version == "" || l.Labels == nil {
		t.Errorf("ETag %s of %+v", etag, l)
	}
	return l
}

// newLabelFixture serves a site with a tenant, two clusters and three hosts, two of them assigned.
func newLabelFixture(t *testing.T) *fixture {
	t.Helper()
	f := answering(t)
	f.site.Register("host-1", "host-2", "host-3")
	for _, r := range [][2]string{
		{"/v1/tenants", `{"name":"acme","labels":{"tier":"gold","example.com/Owner":"Ada"}}`},
		{"/v1/tenants", `{"name":"zeta"}`},
		{"/v1/clusters", `{"name":"train","tenant":"acme","labels":{"env":"prod"}}`},
		{"/v1/clusters", `{"name":"test","tenant":"zeta","labels":{"env":"dev","team":""}}`},
	} {
		f.want(t, f.change("POST", r[0], "", r[1]), 201)
	}
	f.want(t, f.change("POST", "/v1/hosts/host-1/assign", "", `{"cluster":"train"}`), 202)
	f.want(t, f.change("POST", "/v1/hosts/host-2/assign", "", `{"cluster":"test"}`), 202)
	return f
}

// TestLabelObjects changes labels of each kind of object, and looks at them wherever the object is shown.
func TestLabelObjects(t *testing.T) {
	t.Parallel()
	f := newLabelFixture(t)
	for _, object := range []string{"/v1/hosts/host-1", "/v1/clusters/train", "/v1/tenants/acme"} {
		path := object + "/labels"
		was := labels(t, f.change("GET", path, "", ""))
		clear := map[string]any{}
		for key := range was.Labels {
			clear[key] = nil
		}
		body, err := json.Marshal(map[string]any{"labels": clear})
		fatal(t, err)
		none := labels(t, f.change("PATCH", path, `"`+was.Version+`"`, string(body)))
		if len(none.Labels) != 0 {
			t.Fatalf("%s: %v are left", path, none)
		}
		set := labels(t, f.change("PATCH", path, `"`+none.Version+`"`, `{"labels":{"rack.example/Row":"A.1","gpu":"","x":"y"}}`))
		changed := labels(t, f.change("PATCH", path, "", `{"labels":{"gpu":"h100","x":null,"no":null}}`))
		want := map[string]string{"rack.example/Row": "A.1", "gpu": "h100"}
		if d := cmp.Diff(want, changed.Labels); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
		// The version is that of the labels, and of no others.
		p := wantProblem(t, f.change("PATCH", path, `"`+set.Version+`"`, `{"labels":{"x":"z"}}`), 412, v1.CodeChanged)
		if !strings.Contains(p.Detail, "labels of ") {
			t.Errorf("%s: %s", path, p.Detail)
		}
		if again := labels(t, f.change("PATCH", path, `"`+changed.Version+`"`, `{"labels":{"gpu":"h100"}}`)); again.Version != changed.Version {
			t.Errorf("%s: the version changed though nothing did", path)
		}
		var shown struct{ Labels map[string]string }
		fatal(t, json.Unmarshal(f.change("GET", object, "", "").Body.Bytes(), &shown))
		if d := cmp.Diff(want, shown.Labels); d != "" {
			t.Errorf("GET %s (-want +got):\n%s", object, d)
		}
	}
	for _, path := range []string{"/v1/hosts?selector=gpu", "/v1/hosts?view=summary&selector=gpu", "/v1/clusters?selector=gpu", "/v1/tenants?selector=gpu"} {
		var l v1.List[struct{ Labels map[string]string }]
		fatal(t, json.Unmarshal(f.change("GET", path, "", "").Body.Bytes(), &l))
		if len(l.Items) != 1 || l.Items[0].Labels["gpu"] != "h100" {
			t.Errorf("%s: %+v", path, l)
		}
	}
	// What else is done to an object leaves its labels alone, and shows them.
	for _, r := range [][3]string{{"PUT", "/v1/tenants/acme/quota", `{"hosts":5}`}, {"POST", "/v1/hosts/host-1/release", ""}} {
		w := f.change(r[0], r[1], "*", r[2])
		if w.Code >= 300 || !strings.Contains(w.Body.String(), `"gpu":"h100"`) {
			t.Errorf("%s %s: %d %s", r[0], r[1], w.Code, w.Body)
		}
	}
	// Each change is in the audit log once: the objects had 0, 1 and 2 labels.
	entries, err := audit.Book{Store: f.site.Store}.List(t.Context(), v1.AuditQuery{Limit: v1.MaxPage})
	fatal(t, err)
	var logged []string
	for i := range entries.Items {
		e := &entries.Items[i]
		if strings.HasSuffix(e.Action, ".label") {
			logged = append(logged, e.Actor+" "+e.Action+" "+e.Object+": "+e.Detail)
		}
	}
	if d := cmp.Diff([]string{
		"olga host.label host/host-1: gpu=, rack.example/Row=A.1, x=y",
		"olga host.label host/host-1: gpu=h100, x removed",
		"olga cluster.label cluster/train: env removed",
		"olga cluster.label cluster/train: gpu=, rack.example/Row=A.1, x=y",
		"olga cluster.label cluster/train: gpu=h100, x removed",
		"olga tenant.label tenant/acme: example.com/Owner removed, tier removed",
		"olga tenant.label tenant/acme: gpu=, rack.example/Row=A.1, x=y",
		"olga tenant.label tenant/acme: gpu=h100, x removed",
	}, logged); d != "" {
		t.Errorf("audit log (-want +got):\n%s", d)
	}
}

// TestLabelsRefused: what is malformed or passes a bound changes nothing, and the answer says what is wrong.
func TestLabelsRefused(t *testing.T) {
	t.Parallel()
	f := newLabelFixture(t)
	before := labels(t, f.change("GET", "/v1/clusters/train/labels", "", ""))
	many, large := map[string]string{}, map[string]string{}
	for i := range 32 {
		many[fmt.Sprintf("k%02d", i)] = ""
		large[strings.Repeat("p.", 126)+"p/"+fmt.Sprintf("%063d", i)] = strings.Repeat("v", 63)
	}
	text := func(m map[string]string) string {
		b, err := json.Marshal(map[string]any{"labels": m})
		fatal(t, err)
		return string(b)
	}
	for _, tt := range []struct {
		body, says string
		status     int
	}{
		{`{"labels":{"a b":"c"}}`, "label key", 422},
		{`{"labels":{"a b":null}}`, "label key", 422},
		{`{"labels":{"a":"b c"}}`, `label a: value \"b c\"`, 422},
		{`{"labels":{"a":1}}`, "string", 422},
		{`{"labels":{"a":{"b":"c"}}}`, "string", 422},
		{`{"labels":null}`, "object", 422},
		{`{}`, "labels", 422},
		{`{"labels":{},"version":"1"}`, "unexpected", 422},
		{`{"labels":{"a":"b","a":"c"}}`, "twice", 400},
		{`{"LABELS":{"a":"b"}}`, "lower case", 400},
		{text(many), "33 labels", 422},
		{strings.Replace(text(large), `{"labels":{`, `{"labels":{"env":null,`, 1), "labels of 12160 bytes", 422},
	} {
		w := f.change("PATCH", "/v1/clusters/train/labels", "", tt.body)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%.60s: %d %s, want %d and %q", tt.body, w.Code, w.Body, tt.status, tt.says)
		}
	}
	for _, body := range []string{`{"name":"new","tenant":"acme","labels":{"a b":"c"}}`, `{"name":"new","tenant":"acme","labels":{"a":null}}`} {
		if w := f.change("POST", "/v1/clusters", "", body); w.Code != 422 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	wantProblem(t, f.change("POST", "/v1/tenants", "", `{"name":"new","labels":{"a":"b!"}}`), 422, "labels_invalid")
	r := httptest.NewRequest("PATCH", "/v1/clusters/train/labels", strings.NewReader(`{"labels":{"a":"b"}}`))
	r.Header = http.Header{"Authorization": {"Bearer " + f.operator}, "Content-Type": {"application/json"}}
	if p := wantProblem(t, f.send(r), 415, v1.CodeMediaType); !strings.Contains(p.Hint, "application/merge-patch+json") {
		t.Errorf("hint: %s", p.Hint)
	}
	if after := labels(t, f.change("GET", "/v1/clusters/train/labels", "", "")); !cmp.Equal(before, after) {
		t.Errorf("labels changed: %v", after)
	}
	for path, code := range map[string]string{"/v1/hosts/none/labels": "host_unknown", "/v1/clusters/none/labels": "cluster_unknown", "/v1/tenants/none/labels": "tenant_unknown"} {
		wantProblem(t, f.change("GET", path, "", ""), 404, code)
		wantProblem(t, f.change("PATCH", path, "", `{"labels":{"a":"b"}}`), 404, code)
	}
}

// TestLabelOnce: a change that is sent again with its key is not made again.
func TestLabelOnce(t *testing.T) {
	t.Parallel()
	f := newLabelFixture(t)
	const path, body = "/v1/hosts/host-1/labels", `{"labels":{"a":"b"}}`
	first := labels(t, f.named("k1", "PATCH", path, body))
	labels(t, f.change("PATCH", path, "", `{"labels":{"a":null}}`))
	again := f.named("k1", "PATCH", path, body)
	if got := labels(t, again); got.Version != first.Version || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("sent again: %+v %v", got, again.Header())
	}
	if now := labels(t, f.change("GET", path, "", "")); len(now.Labels) != 0 {
		t.Errorf("labels: %v", now)
	}
}

// TestSelectors: lists have what the selector chooses, in pages, and a cursor is good for the selector of its page alone.
func TestSelectors(t *testing.T) {
	t.Parallel()
	f := newLabelFixture(t)
	for host, body := range map[string]string{"host-1": `{"labels":{"gpu":"h100","row":"a"}}`, "host-3": `{"labels":{"gpu":"a100"}}`} {
		labels(t, f.change("PATCH", "/v1/hosts/"+host+"/labels", "", body))
	}
	names := func(path string) (out []string, next string) {
		t.Helper()
		w := f.do("GET", path, f.viewer, "")
		f.want(t, w, 200)
		var l v1.List[struct{ ID, Name string }]
		fatal(t, json.Unmarshal(w.Body.Bytes(), &l))
		for _, i := range l.Items {
			out = append(out, i.ID+i.Name)
		}
		return out, l.Next
	}
	for _, tt := range []struct {
		list, selector string
		want           []string
	}{
		{"hosts", "gpu", []string{"host-1", "host-3"}},
		{"hosts", "!gpu", []string{"host-2"}},
		{"hosts", "gpu!=h100", []string{"host-2", "host-3"}},
		{"hosts", "gpu in (h100,a100),row notin (a)", []string{"host-3"}},
		{"hosts", "gpu=none", nil},
		{"clusters", "env in (dev,prod)", []string{"test", "train"}},
		{"clusters", "team=", []string{"test"}},
		{"tenants", "tier=gold,example.com/Owner=Ada", []string{"acme"}},
		{"tenants", "!tier", []string{"zeta"}},
	} {
		views := []string{""}
		if tt.list == "hosts" {
			views = []string{"", "&view=summary", "&view=id", "&view=id&phase=quarantined", "&phase=awaiting"}
		}
		for _, view := range views {
			want := tt.want
			if strings.Contains(view, "phase") {
				free := strings.Contains(view, "quarantined")
				want = slices.DeleteFunc(slices.Clone(want), func(h string) bool { return (h == "host-3") != free })
			}
			var got []string
			for after := ""; ; {
				page, next := names("/v1/" + tt.list + "?limit=1&selector=" + url.QueryEscape(tt.selector) + view + "&after=" + after)
				got = append(got, page...)
				if next == "" {
					break
				}
				after = next
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s %q %s: %q, want %q", tt.list, tt.selector, view, got, want)
			}
		}
	}
	_, next := names("/v1/hosts?limit=1&selector=gpu")
	if got, _ := names("/v1/hosts?limit=1&selector=%20gpu&after=" + next); !slices.Equal(got, []string{"host-3"}) {
		t.Errorf("the same selector in other words: %q", got)
	}
	for _, other := range []string{"/v1/hosts?after=", "/v1/hosts?selector=!gpu&after=", "/v1/clusters?selector=gpu&after="} {
		wantProblem(t, f.do("GET", other+next, f.viewer, ""), 422, v1.CodeCursor)
	}
	_, plain := names("/v1/hosts?limit=1")
	wantProblem(t, f.do("GET", "/v1/hosts?selector=gpu&after="+plain, f.viewer, ""), 422, v1.CodeCursor)
	for _, list := range []string{"hosts", "hosts?view=id", "clusters", "tenants"} {
		path := "/v1/" + list + "?selector="
		if strings.Contains(list, "?") {
			path = "/v1/" + list + "&selector="
		}
		p := wantProblem(t, f.do("GET", path+url.QueryEscape("a=b,c<d"), f.viewer, ""), 422, "selector_invalid")
		if !strings.Contains(p.Detail, "byte 6") {
			t.Errorf("%s: %s", list, p.Detail)
		}
		wantProblem(t, f.do("GET", path+strings.Repeat("a,", 512)+"b", f.viewer, ""), 422, v1.CodeInvalid)
	}
}

// TestLabelsOfOthers: a credential of a tenant sees the labels of its tenant and clusters, and neither those of others nor those of
// hosts, which stay from tenant to tenant. It changes none, and its selectors say nothing about what it does not see.
func TestLabelsOfOthers(t *testing.T) {
	t.Parallel()
	f, tenant := newTenantFixture(t)
	backend, _ := f.site.Parts()
	for _, o := range []struct {
		keeper api.LabelKeeper
		name   string
	}{
		{backend.Labels.Tenants, "theirs"},
		{backend.Labels.Tenants, "acme"},
		{backend.Labels.Clusters, "theirs"},
		{backend.Labels.Clusters, "train"},
		{backend.Labels.Hosts, "theirs"},
		{backend.Labels.Hosts, "host-1"},
	} {
		_, err := o.keeper.PatchLabels(t.Context(), "olga", o.name, label.Patch{"secret": new("s1")})
		fatal(t, err)
	}
	for _, path := range []string{"/v1/tenants/acme", "/v1/clusters/train"} {
		if got := labels(t, f.do("GET", path+"/labels", tenant, "")); got.Labels["secret"] != "s1" {
			t.Errorf("%s: %v", path, got)
		}
	}
	for _, path := range []string{"/v1/tenants/NAME/labels", "/v1/clusters/NAME/labels"} {
		one, other := f.about(tenant, theirs, "GET", path, "", http.Header{}), f.about(tenant, nobodys, "GET", path, "", http.Header{})
		if d := cmp.Diff(other, one); d != "" || one.Status != 404 {
			t.Errorf("%s: %d, tells another's object (+) from none (-):\n%s", path, one.Status, d)
		}
	}
	for _, path := range []string{"/v1/hosts/host-1", "/v1/hosts", "/v1/hosts?view=summary"} {
		if w := f.do("GET", path, tenant, ""); w.Code != 200 || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s shows labels of a host: %s", path, w.Body)
		}
	}
	wantProblem(t, f.do("GET", "/v1/hosts/host-1/labels", tenant, ""), 403, v1.CodeForbidden)
	for _, path := range []string{"/v1/tenants/acme", "/v1/clusters/train", "/v1/hosts/host-1", "/v1/hosts/theirs"} {
		wantProblem(t, f.do("PATCH", path+"/labels", tenant, `{"labels":{"secret":null}}`), 403, v1.CodeForbidden)
	}
	for query, want := range map[string]int{
		"/v1/hosts?selector=secret": 0, "/v1/hosts?selector=!secret": 1, "/v1/hosts?view=id&selector=secret=s1": 0, "/v1/hosts?view=id&selector=!secret": 1,
		"/v1/clusters?selector=secret": 1, "/v1/clusters?selector=!secret": 1, "/v1/tenants?selector=secret": 1, "/v1/tenants?selector=!secret": 0,
	} {
		var l v1.List[map[string]any]
		w := f.do("GET", query, tenant, "")
		f.want(t, w, 200)
		fatal(t, json.Unmarshal(w.Body.Bytes(), &l))
		if len(l.Items) != want || l.Next != "" {
			t.Errorf("%s: %d items, want %d: %s", query, len(l.Items), want, w.Body)
		}
	}
}

// TestLabelsEndWithTheirObject: a later object of the same name has none of them.
func TestLabelsEndWithTheirObject(t *testing.T) {
	t.Parallel()
	f := newLabelFixture(t)
	body := `{"labels":{"a":"b"}}`
	had, none := map[string]v1.Labels{}, map[string]v1.Labels{}
	file := f.change("GET", "/v1/inventory/export", "", "").Body.String()
	for _, path := range []string{"/v1/tenants/zeta", "/v1/clusters/test", "/v1/hosts/host-3"} {
		none[path] = labels(t, f.change("PATCH", path+"/labels", "", `{"labels":{"env":null,"team":null}}`))
		had[path] = labels(t, f.change("PATCH", path+"/labels", "", body))
	}
	f.want(t, f.change("POST", "/v1/hosts/host-2/release", "*", ""), 202)
	f.want(t, f.change("DELETE", "/v1/clusters/test", "*", ""), 204)
	f.want(t, f.change("DELETE", "/v1/tenants/zeta", "*", ""), 204)
	f.want(t, f.change("DELETE", "/v1/hosts/host-3", "*", `{"reason":"it left"}`), 204)
	f.want(t, f.change("POST", "/v1/tenants", "", `{"name":"zeta"}`), 201)
	f.want(t, f.change("POST", "/v1/clusters", "", `{"name":"test","tenant":"zeta"}`), 201)
	f.site.Import(file)
	for path, was := range had {
		if got := labels(t, f.change("GET", path+"/labels", "", "")); len(got.Labels) != 0 {
			t.Errorf("%s: %v", path, got)
		}
		wantProblem(t, f.change("PATCH", path+"/labels", `"`+was.Version+`"`, body), 412, v1.CodeChanged)
		if !strings.HasPrefix(path, "/v1/hosts/") { // neither are they those of the earlier object where both have none
			wantProblem(t, f.change("PATCH", path+"/labels", `"`+none[path].Version+`"`, body), 412, v1.CodeChanged)
		}
		again := labels(t, f.change("PATCH", path+"/labels", "", body))
		if same := again.Version == labels(t, f.change("PATCH", path+"/labels", "", body)).Version; !same {
			t.Errorf("%s: two versions of the same labels", path)
		}
	}
}

// TestManyLabels: with ten thousand hosts that have as many labels as fit, a selector that chooses one costs a few short pages, and
// the largest page is one that a client reads.
func TestManyLabels(t *testing.T) {
	t.Parallel()
	s := apitest.NewSite(t)
	f := fixtureOn(t, s, unlimited)
	const hosts, mostAnswer = 10_000, 64 << 20
	var y strings.Builder
	y.WriteString("hosts:\n")
	for i := range hosts {
		fmt.Fprintf(&y, "- {id: h%04d, hcas: [{node_guid: 0x%x, ports: [{port: 1, guid: 0x%x, cable: 0x%x/%d}]}]}\n", i, 0x10000+2*i, 0x10001+2*i, 0x900000+i/32, i%32+1)
	}
	s.Import(y.String())
	set := label.Set{}
	for i := range label.Most {
		set[strings.Repeat("p.", 20)+fmt.Sprintf("p/%023d", i)] = strings.Repeat("v", 62)
	}
	fatal(t, set.Check())
	for first := 0; first < hosts; first += 100 {
		_, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
			for i := first; i < first+100; i++ {
				if err := hostlabel.Records().Put(tx, fmt.Sprintf("h%04d", i), hostlabel.Record{Labels: set}); err != nil {
					return err
				}
			}
			return nil
		})
		fatal(t, err)
	}
	labels(t, f.change("PATCH", "/v1/hosts/h9000/labels", "", `{"labels":{"`+strings.Repeat("p.", 20)+`p/00000000000000000000000":null,"one":"1"}}`))
	requirements := "one"
	for i := 1; i < label.MostRequirements; i++ {
		requirements += fmt.Sprintf(",k%d notin (a,b,c)", i)
	}
	var got []string
	pages := 0
	for after := ""; ; pages++ {
		w := f.do("GET", "/v1/hosts?view=id&selector="+url.QueryEscape(requirements)+"&after="+after, f.viewer, "")
		f.want(t, w, 200)
		var l v1.List[v1.HostID]
		fatal(t, json.Unmarshal(w.Body.Bytes(), &l))
		for _, h := range l.Items {
			got = append(got, h.ID)
		}
		if after = l.Next; after == "" {
			break
		}
	}
	if !slices.Equal(got, []string{"h9000"}) || pages > 2 {
		t.Errorf("%q after %d pages", got, pages)
	}
	w := f.do("GET", fmt.Sprintf("/v1/hosts?limit=%d", v1.MaxPage), f.viewer, "")
	f.want(t, w, 200)
	if n := w.Body.Len(); n > mostAnswer/2 || n < v1.MaxPage*label.MostBytes {
		t.Errorf("the largest page has %d bytes: clients read %d", n, mostAnswer)
	}
}
