package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/limit"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// fixture is a server without a network: requests go straight to the handler.
type fixture struct {
	site             *apitest.Site
	server           *api.Server
	operator, viewer string
	log              *bytes.Buffer
}

func newFixture(t testing.TB, edit ...func(*api.Options)) *fixture {
	t.Helper()
	return fixtureOn(t, apitest.NewSite(t), edit...)
}

func fixtureOn(t testing.TB, site *apitest.Site, edit ...func(*api.Options)) *fixture {
	t.Helper()
	f := &fixture{site: site, log: &bytes.Buffer{}}
	o, operator, viewer, err := apitest.Options(f.site)
	if err != nil {
		t.Fatal(err)
	}
	o.Log = slog.New(slog.NewJSONHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, e := range edit {
		e(&o)
	}
	f.server, f.operator, f.viewer = api.New(o), operator, viewer
	return f
}

// bodyType is the Content-Type of bodies of a method.
func bodyType(method string) string {
	if method == http.MethodPatch {
		return "application/merge-patch+json"
	}
	return "application/json"
}

func (f *fixture) do(method, path, token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", bodyType(method))
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return f.send(r)
}

func (f *fixture) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.server.ServeHTTP(w, r)
	return w
}

// wantProblem checks that w is a complete problem document and returns it.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code string) v1.Problem {
	t.Helper()
	var p v1.Problem
	if w.Code != status {
		t.Fatalf("status %d, want %d; body: %s", w.Code, status, w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q, want application/problem+json", got)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	if p.Code != code || p.Status != status || p.Type != "about:blank" || p.Title == "" || p.Hint == "" {
		t.Errorf("problem %+v, want code %s, status %d, and type, title and hint filled", p, code, status)
	}
	if p.ID == "" || p.ID != w.Header().Get("X-Request-Id") {
		t.Errorf("request_id %q, want that of the header X-Request-Id, %q", p.ID, w.Header().Get("X-Request-Id"))
	}
	return p
}

// TestAnswersStaySmall sends what costs a stranger one request and would cost
// the service an explanation of each of a hundred thousand values.
func TestAnswersStaySmall(t *testing.T) {
	f := newFixture(t)
	session := open(t, f.site, "h1")
	var keys strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&keys, `"k%d":0,`, i)
	}
	for _, tt := range []struct {
		name, method, path, body string
	}{
		{"certificates", "POST", "/v1/attest/sessions", `{"host":"h","ak_public":"","ek":{"kind":"x","certificates":[` + strings.Repeat("0,", 60_000) + `0]}}`},
		{"digests", "PUT", "/v1/attest/sessions/" + session + "/evidence", `{"statement_digests":[` + strings.Repeat("0,", 400_000) + `0]}`},
		{"empty arrays", "POST", "/v1/attest/sessions", `{"ek":[` + strings.Repeat("[],", 40_000) + `[]]}`},
		{"unknown keys", "POST", "/v1/attest/sessions", `{` + keys.String() + `"host":"h"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := f.do(tt.method, tt.path, "", tt.body)
			if w.Code != http.StatusBadRequest && w.Code != http.StatusUnprocessableEntity {
				t.Errorf("got status %d, want 400 or 422", w.Code)
			}
			if w.Body.Len() > 8<<10 {
				t.Errorf("got an answer of %d bytes, want at most 8192", w.Body.Len())
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	f := newFixture(t)
	awaitsEvidence := "/v1/attest/sessions/" + open(t, f.site, "h1")
	f.site.Register("h2")
	f.site.Join("h2")
	awaitsSeal := "/v1/attest/sessions/" + f.site.Attest("h2").Session.ID
	before := len(f.site.Actors())
	big := `{"name":"` + strings.Repeat("a", 64<<10) + `"}`
	for _, tt := range []struct {
		name, method, path, body string
		contentType              string
		status                   int
		code                     string
	}{
		{"unknown path", "GET", "/v2/hosts", "", "", 404, v1.CodeNotFound},
		{"root", "GET", "/", "", "", 404, v1.CodeNotFound},
		{"unknown method", "PATCH", "/v1/hosts", "", "", 405, v1.CodeMethodNotAllowed},
		{"not JSON", "POST", "/v1/tenants", "name: acme", "", 400, v1.CodeBadRequest},
		{"truncated JSON", "POST", "/v1/tenants", `{"name":`, "", 400, v1.CodeBadRequest},
		{"doubled key", "POST", "/v1/tenants", `{"name":"acme","name":"evil"}`, "", 400, v1.CodeBadRequest},
		{"two values", "POST", "/v1/tenants", `{"name":"acme"}{"name":"evil"}`, "", 400, v1.CodeBadRequest},
		{"nested deeply", "POST", "/v1/tenants", strings.Repeat("[", 100) + strings.Repeat("]", 100), "", 400, v1.CodeBadRequest},
		{"no body", "POST", "/v1/tenants", "", "", 400, v1.CodeBadRequest},
		{"null body", "POST", "/v1/tenants", "null", "", 422, v1.CodeInvalid},
		{"array body", "POST", "/v1/tenants", "[]", "", 422, v1.CodeInvalid},
		{"unknown key", "POST", "/v1/tenants", `{"name":"acme","owner":"x"}`, "", 422, v1.CodeInvalid},
		{"key in another case", "POST", "/v1/tenants", `{"Name":"acme"}`, "", 400, v1.CodeBadRequest},
		{"missing key", "POST", "/v1/tenants", `{}`, "", 422, v1.CodeInvalid},
		{"value of another type", "POST", "/v1/tenants", `{"name":7}`, "", 422, v1.CodeInvalid},
		{"value against its pattern", "POST", "/v1/tenants", `{"name":"ACME"}`, "", 422, v1.CodeInvalid},
		{"unknown query", "GET", "/v1/hosts?all=1", "", "", 422, v1.CodeInvalid},
		{"form", "POST", "/v1/tenants", "name=acme", "application/x-www-form-urlencoded", 415, v1.CodeMediaType},
		{"no type", "POST", "/v1/tenants", `{"name":"acme"}`, "none", 415, v1.CodeMediaType},
		{"type of a patch", "POST", "/v1/tenants", `{"name":"acme"}`, "application/merge-patch+json", 415, v1.CodeMediaType},
		{"UTF-16", "POST", "/v1/tenants", `{"name":"acme"}`, "application/json; charset=utf-16", 415, v1.CodeMediaType},
		{"another parameter", "POST", "/v1/tenants", `{"name":"acme"}`, "application/json; profile=x", 415, v1.CodeMediaType},
		{"two types", "POST", "/v1/tenants", `{"name":"acme"}`, "application/json, text/plain", 415, v1.CodeMediaType},
		{"session of a patch", "POST", "/v1/attest/sessions", `{}`, "application/merge-patch+json", 415, v1.CodeMediaType},
		{"leftover bits", "PUT", awaitsSeal + "/seal", `{"quote":"AR==","signature":""}`, "", 422, v1.CodeInvalid},
		{"window too long", "POST", "/v1/hosts/a/assign", `{"cluster":"c","window_seconds":100000}`, "", 422, v1.CodeInvalid},
		{"too large", "POST", "/v1/tenants", big, "", 413, v1.CodeTooLarge},
		{"no files", "POST", "/v1/inventory/import", `{"files":[]}`, "", 422, v1.CodeInvalid},
		{"null files", "POST", "/v1/inventory/import", `{"files":null}`, "", 422, v1.CodeInvalid},
		{"evidence too large", "PUT", awaitsEvidence + "/evidence", `{"quote":"` + strings.Repeat("A", 1<<20) + `"}`, "", 413, v1.CodeTooLarge},
		{
			"evidence not base64", "PUT", awaitsEvidence + "/evidence",
			`{"statement":"?","quote":"","signature":"","certify":"","certify_signature":"","pcr_values":[],"proof":""}`, "", 422, v1.CodeInvalid,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
			r.Header.Set("Authorization", "Bearer "+f.operator)
			r.Header.Set("Content-Type", "application/json")
			if tt.contentType != "" {
				r.Header.Set("Content-Type", tt.contentType)
			}
			if tt.contentType == "none" {
				r.Header.Del("Content-Type")
			}
			wantProblem(t, f.send(r), tt.status, tt.code)
		})
	}
	if got := f.site.Actors()[before:]; len(got) > 0 {
		t.Errorf("a bad request changed something: %v", got)
	}
}

func TestEveryMistakeIsReported(t *testing.T) {
	f := newFixture(t)
	p := wantProblem(t, f.do("POST", "/v1/clusters", f.operator, `{"name":"A B","owner":1,"p_key":2}`), 422, v1.CodeInvalid)
	want := map[string]bool{"body.name": true, "body.owner": true, "body.p_key": true}
	for _, e := range p.Errors {
		delete(want, e.Location)
	}
	if len(want) > 0 {
		t.Errorf("errors %+v: places %v are missing", p.Errors, want)
	}
	if strings.Contains(p.Errors[0].Message, "A B") {
		t.Errorf("message %q echoes the value", p.Errors[0].Message)
	}
}

// faultyHosts fails to show a host.
type faultyHosts struct {
	api.Lifecycle
	err error
}

func (h faultyHosts) Host(context.Context, string) (*v1.Host, error) { return nil, h.err }

func TestErrorsOfTheBackend(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		status int
		want   v1.Problem
	}{
		{
			"not found", &refusal.Error{Code: "host_unknown", Status: refusal.NotFound, Detail: "d", Hint: "h"},
			404,
			v1.Problem{Title: "Not Found", Code: "host_unknown", Detail: "d", Hint: "h"},
		},
		{
			"conflict", &refusal.Error{Code: "c", Status: refusal.Conflict, Detail: "d", Hint: "h"},
			409,
			v1.Problem{Title: "Conflict", Code: "c", Detail: "d", Hint: "h"},
		},
		{
			"invalid with places", &refusal.Error{Code: "c", Status: refusal.Invalid, Detail: "d", Hint: "h", Problems: []string{"a:1: x", "a:2: y"}},
			422,
			v1.Problem{Title: "Unprocessable Entity", Code: "c", Detail: "d", Hint: "h", Errors: []v1.ProblemError{{Message: "a:1: x"}, {Message: "a:2: y"}}},
		},
		{
			"refused", &refusal.Error{Code: "c", Status: refusal.Refused, Detail: "d", Hint: "h"},
			403,
			v1.Problem{Title: "Forbidden", Code: "c", Detail: "d", Hint: "h"},
		},
		{
			"limited", &refusal.Error{Code: "c", Status: refusal.Limited, Detail: "d", Hint: "h"},
			429,
			v1.Problem{Title: "Too Many Requests", Code: "c", Detail: "d", Hint: "h"},
		},
		{
			"unavailable", &refusal.Error{Code: "c", Status: refusal.Unavailable, Detail: "d", Hint: "h"},
			503,
			v1.Problem{Title: "Service Unavailable", Code: "c", Detail: "d", Hint: "h"},
		},
		{
			"internal kind", &refusal.Error{Code: "secret", Status: refusal.Internal, Detail: "secret"},
			500,
			v1.Problem{Title: "Internal Server Error", Code: v1.CodeInternal, Detail: "the service met a fault of its own", Hint: "the service's log says more under this request_id"},
		},
		{
			"anything else", errors.New("secret"),
			500,
			v1.Problem{Title: "Internal Server Error", Code: v1.CodeInternal, Detail: "the service met a fault of its own", Hint: "the service's log says more under this request_id"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, func(o *api.Options) { o.Backend.Lifecycle = faultyHosts{o.Backend.Lifecycle, tt.err} })
			w := f.do("GET", "/v1/hosts/h", f.viewer, "")
			var got v1.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			tt.want.Type, tt.want.Status, tt.want.ID = "about:blank", tt.status, got.ID
			if w.Code != tt.status {
				t.Errorf("status %d, want %d", w.Code, tt.status)
			}
			if d := cmp.Diff(got, tt.want); d != "" {
				t.Errorf("problem (-got +want):\n%s", d)
			}
			if tt.status == 500 && !strings.Contains(f.log.String(), "secret") {
				t.Errorf("the fault is not in the log: %s", f.log)
			}
		})
	}
}

// panicking panics at each request for a session.
type panicking struct{ api.Attestation }

func (panicking) OpenSession(context.Context, *attest.SessionRequest, string) (*attest.Session, error) {
	panic("secret state")
}

func TestPanicBecomesProblem(t *testing.T) {
	f := newFixture(t, func(o *api.Options) { o.Backend.Attestation = panicking{o.Backend.Attestation} })
	w := f.do("POST", "/v1/attest/sessions", "", `{"host":"h","ek":{"kind":"k"},"start":{"agent":"a","image":""},"statement_digests":["AA=="],"ak1_public":"AA==","ak2_public":"AA=="}`)
	wantProblem(t, w, 500, v1.CodeInternal)
	if strings.Contains(w.Body.String(), "secret") {
		t.Errorf("answer tells of the panic: %s", w.Body)
	}
	if log := f.log.String(); !strings.Contains(log, "secret state") || !strings.Contains(log, "stack") {
		t.Errorf("log does not tell of the panic: %s", log)
	}
	if w := f.do("GET", "/livez", "", ""); w.Code != 200 {
		t.Errorf("after a panic livez answers %d, want 200", w.Code)
	}
}

// The access log must hold no credential, no session id, no body and no query.
func TestAccessLogHoldsNoSecrets(t *testing.T) {
	f := newFixture(t)
	f.site.Register("h1")
	f.site.Join("h1")
	token := f.site.Attest("h1").Result.StatusToken
	f.do("GET", "/v1/hosts", f.operator, "")
	f.do("GET", "/v1/hosts?token=query-secret", f.operator, "")
	f.do("GET", "/v1/attest/status", "status-secret", "")
	if w := f.do("GET", "/v1/attest/status", token, ""); w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	f.do("PUT", "/v1/attest/sessions/session-secret/evidence", "", `{"proof":"Ym9keS1zZWNyZXQ="}`)
	f.do("GET", "/path-secret", "wrong-secret", "")
	if f.log.Len() == 0 {
		t.Fatal("nothing was logged")
	}
	for _, secret := range []string{"secret", "Ym9keS", f.operator, token} {
		if strings.Contains(f.log.String(), secret) {
			t.Errorf("log holds %q:\n%s", secret, f.log)
		}
	}
	if !strings.Contains(f.log.String(), `"actor":"olga"`) {
		t.Errorf("log does not name who asked:\n%s", f.log)
	}
}

func TestRateLimits(t *testing.T) {
	f := newFixture(t, func(o *api.Options) {
		o.Limits.Requests = limit.Rate{PerSecond: 0.001, Burst: 3}
		o.Limits.Attestations = limit.Rate{PerSecond: 0.001, Burst: 1}
	})
	from := func(source, method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader("{}"))
		r.RemoteAddr = source
		r.Header.Set("Content-Type", "application/json")
		return f.send(r)
	}
	for range 3 {
		if w := from("192.0.2.1:1000", "GET", "/livez"); w.Code != 200 {
			t.Fatalf("within the burst: status %d, want 200", w.Code)
		}
	}
	w := from("192.0.2.1:2000", "GET", "/livez")
	wantProblem(t, w, 429, v1.CodeRateLimited)
	if got := w.Header().Get("Retry-After"); got == "" {
		t.Error("no Retry-After header")
	}
	if w := from("192.0.2.2:1000", "GET", "/livez"); w.Code != 200 {
		t.Errorf("another source: status %d, want 200", w.Code)
	}
	if w := from("192.0.2.1:1000", "POST", "/v1/attest/sessions"); w.Code != 422 {
		t.Errorf("first attestation: status %d, want 422 for its empty body", w.Code)
	}
	wantProblem(t, from("192.0.2.1:1000", "POST", "/v1/attest/sessions"), 429, v1.CodeRateLimited)
}

// TestTokensHaveLimitsOfTheirOwn: a controller is held up neither by strangers at its address nor by a controller with
// another token, a wrong token is a stranger's, and strangers have a limit over all their addresses.
func TestTokensHaveLimitsOfTheirOwn(t *testing.T) {
	f := newFixture(t, func(o *api.Options) {
		o.Limits.Requests = limit.Rate{PerSecond: 1e-6, Burst: 2}
		o.Limits.Attestations = limit.Rate{PerSecond: 1e-6, Burst: 2}
		o.Limits.Strangers = limit.Rate{PerSecond: 1e-6, Burst: 5}
		o.Limits.Tokens = limit.Rate{PerSecond: 1e-6, Burst: 50}
	})
	get := func(host int, path, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1000", host)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return f.send(r)
	}
	wantProblem(t, get(1, "/v1/hosts", "pcop_wrong"), 401, v1.CodeUnauthenticated)
	wantProblem(t, get(1, "/v1/hosts", "pcop_wrong"), 401, v1.CodeUnauthenticated)
	address := wantProblem(t, get(1, "/v1/hosts", "pcop_wrong"), 429, v1.CodeRateLimited)
	if !strings.Contains(address.Detail, "from this address") {
		t.Errorf("a stranger is told %q", address.Detail)
	}
	for n := range 50 {
		if w := get(1, "/v1/hosts", f.operator); w.Code != 200 {
			t.Fatalf("request %d with a token, from the address of the stranger: %d", n, w.Code)
		}
	}
	own := wantProblem(t, get(9, "/v1/hosts", f.operator), 429, v1.CodeRateLimited)
	if !strings.Contains(own.Detail, "with the token olga") {
		t.Errorf("who asks too often is told %q", own.Detail)
	}
	if w := get(1, "/v1/hosts", f.viewer); w.Code != 200 {
		t.Errorf("another token: %d", w.Code)
	}
	for host := 2; host < 5; host++ {
		if w := get(host, "/livez", ""); w.Code != 200 {
			t.Errorf("stranger %d: %d", host, w.Code)
		}
	}
	all := wantProblem(t, get(5, "/livez", ""), 429, v1.CodeRateLimited)
	if !strings.Contains(all.Detail, "all addresses") {
		t.Errorf("a stranger over the limit of all is told %q", all.Detail)
	}
	if w := get(5, "/v1/hosts", f.viewer); w.Code != 200 {
		t.Errorf("a token while strangers are over their limit: %d", w.Code)
	}
	wantProblem(t, get(6, "/v1/attest/sessions/x", f.viewer), 429, v1.CodeRateLimited) // no token opens sessions
}

// TestRefusalsOfAnAddress: an address whose requests were refused too often is refused before anything is read, a large
// body counts as several requests, and neither known tokens at that address nor other addresses notice.
func TestRefusalsOfAnAddress(t *testing.T) {
	f := newFixture(t, func(o *api.Options) { o.Limits.Refusals = limit.Rate{PerSecond: 1e-6, Burst: 10} })
	send := func(host int, method, path, token, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1000", host)
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return f.send(r)
	}
	for n := range 10 {
		if w := send(1, "GET", "/v1/hosts", "pcop_wrong", ""); w.Code != 401 {
			t.Fatalf("refusal %d: %d", n+1, w.Code)
		}
	}
	w := send(1, "GET", "/livez", "", "")
	if wantProblem(t, w, 429, v1.CodeRateLimited); w.Header().Get("Connection") != "close" {
		t.Error("the connection is kept")
	}
	if w := send(1, "GET", "/v1/hosts", f.viewer, ""); w.Code != 200 {
		t.Errorf("a known token at this address: %d", w.Code)
	}
	const large = 40 << 10
	for n := range 2 {
		if w := send(2, "POST", "/v1/attest/sessions", "", `{"x":"`+strings.Repeat("x", large)+`"}`); w.Code != 422 {
			t.Fatalf("large body %d: %d", n+1, w.Code)
		}
	}
	wantProblem(t, send(2, "POST", "/v1/attest/sessions", "", "{}"), 429, v1.CodeRateLimited)
	if w := send(3, "GET", "/livez", "", ""); w.Code != 200 {
		t.Errorf("another address: %d", w.Code)
	}
}

// TestRefusalsBehindAProxy: where all come from the address of a proxy, none is refused for what others sent.
func TestRefusalsBehindAProxy(t *testing.T) {
	f := newFixture(t, func(o *api.Options) {
		o.Limits.Refusals, o.ChannelBinding = limit.Rate{PerSecond: 1e-6, Burst: 1}, api.ChannelOff
	})
	for n := range 5 {
		if w := f.do("GET", "/v1/hosts", "pcop_wrong", ""); w.Code != 401 {
			t.Fatalf("refusal %d: %d", n+1, w.Code)
		}
	}
}

// TestStrangerFloodsTheLog: refusals of a stranger stand in the log some times, then only at debug level. Requests of
// others are still logged, and the counts are whole.
func TestStrangerFloodsTheLog(t *testing.T) {
	f := newFixture(t, func(o *api.Options) { o.Limits.Requests = limit.Rate{PerSecond: 0.001, Burst: 100} })
	const tries = 1000
	for range tries {
		f.do("GET", "/v1/hosts", "pcop_guessed", "")
	}
	lines := func(level string) (n int) {
		for line := range strings.Lines(f.log.String()) {
			if strings.Contains(line, `"level":"`+level+`"`) && strings.Contains(line, `"msg":"request"`) {
				n++
			}
		}
		return n
	}
	if n := lines("INFO"); n < 100 || n > 200 {
		t.Errorf("%d lines in the log of %d refusals, want some 120", n, tries)
	}
	if n := lines("INFO") + lines("DEBUG"); n != tries {
		t.Errorf("%d lines for who debugs, want %d", n, tries)
	}
	r := httptest.NewRequest("GET", "/v1/hosts", nil)
	r.RemoteAddr = "198.51.100.7:1000"
	f.log.Reset()
	if f.send(r); lines("INFO") != 1 {
		t.Errorf("another source is refused, and the log says %s", f.log)
	}
}

func TestHealth(t *testing.T) {
	checks := []v1.Condition{{Name: "store", OK: true}}
	f := newFixture(t, func(o *api.Options) {
		o.Ready = func(context.Context) []v1.Condition { return append([]v1.Condition(nil), checks...) }
	})
	get := func(token string) (int, v1.Readiness) {
		w := f.do("GET", "/readyz", token, "")
		var r v1.Readiness
		if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return w.Code, r
	}
	if code, r := get(""); code != 200 || !r.Ready {
		t.Errorf("readyz = %d %+v, want ready", code, r)
	}
	checks = append(checks, v1.Condition{Name: "fabric", Detail: "no ibsim at /run/x"})
	code, r := get("")
	if d := cmp.Diff(r, v1.Readiness{Checks: []v1.Condition{{Name: "store", OK: true}, {Name: "fabric"}}}); d != "" || code != 503 {
		t.Errorf("readyz to a stranger: %d (-got +want):\n%s", code, d)
	}
	if _, r := get(f.viewer); r.Checks[1].Detail != "no ibsim at /run/x" {
		t.Errorf("readyz to a viewer: %+v, want why", r)
	}
	for path, want := range map[string]int{
		"/readyz/store": 200, "/readyz?part=store": 200, "/readyz/fabric": 503, "/readyz?part=fabric": 503, "/readyz/sm": 404, "/readyz?part=sm": 404,
	} {
		if w := f.do("GET", path, "", ""); w.Code != want || want != 404 && strings.Contains(w.Body.String(), "ibsim") {
			t.Errorf("GET %s: %d %s, want %d, and why only for callers with a token", path, w.Code, w.Body, want)
		}
	}
	if w := f.do("GET", "/readyz/sm", "", ""); !strings.Contains(w.Body.String(), "store, fabric") {
		t.Errorf("a part that there is not: %s, want those there are", w.Body)
	}
	if w := f.do("GET", "/version", "", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "v0.0.0-test") {
		t.Errorf("version: %d %s", w.Code, w.Body)
	}
}

func TestMetrics(t *testing.T) {
	f := newFixture(t)
	wantProblem(t, f.do("GET", "/metrics", "", ""), 401, v1.CodeUnauthenticated)
	f.do("GET", "/v1/hosts/one", f.viewer, "")
	f.do("GET", "/v1/hosts/two", f.viewer, "")
	f.do("BREW", "/coffee", f.viewer, "")
	w := f.do("GET", "/metrics", f.viewer, "")
	for _, line := range []string{
		`portcullis_http_requests_total{method="GET",route="/v1/hosts/{id}",status="404"} 2`,
		`portcullis_http_requests_total{method="other",route="unmatched",status="405"} 1`,
	} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("metrics lack %s:\n%s", line, w.Body)
		}
	}
}

func TestAnswersAreNotCached(t *testing.T) {
	f := newFixture(t)
	for _, path := range []string{"/livez", "/v1/hosts", "/nowhere", "/openapi.json"} {
		if got := f.do("GET", path, f.viewer, "").Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q, want no-store", path, got)
		}
	}
}

func TestEmptyListsAreNotNull(t *testing.T) {
	f := newFixture(t)
	for _, path := range []string{"/v1/hosts", "/v1/tenants", "/v1/clusters", "/v1/pkeys/quarantined"} {
		if got := strings.TrimSpace(f.do("GET", path, f.viewer, "").Body.String()); got != `{"items":[]}` {
			t.Errorf("%s = %s, want an empty list", path, got)
		}
	}
}
