package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/apitest"
	v1 "portcullis/api/v1"
	"portcullis/attest/result"
	"portcullis/attest/result/token"
)

// newResultFixture serves a host whose results are signed in earnest.
func newResultFixture(t *testing.T) *fixture {
	t.Helper()
	svc := apitest.NewResults(t, nil)
	site := apitest.NewSite(t, func(o *admission.Options) { o.Results = svc })
	site.Register("host-1")
	site.Join("host-1")
	site.Hand("host-1")
	return fixtureOn(t, site, unlimited, func(o *api.Options) { o.Results = svc })
}

func (f *fixture) result(t *testing.T, body string) *v1.AttestationResult {
	t.Helper()
	w := f.do("POST", "/v1/hosts/host-1/attestation-result", f.viewer, body)
	if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("status %d, headers %v: %s", w.Code, w.Header(), w.Body)
	}
	var r v1.AttestationResult
	fatal(t, json.Unmarshal(w.Body.Bytes(), &r))
	return &r
}

// TestResultIsVerifiedByPublishedKeys: a caller that may read asks for a result, and a caller without a credential gets the
// keys.
func TestResultIsVerifiedByPublishedKeys(t *testing.T) {
	f := newResultFixture(t)
	r := f.result(t, `{"nonce":"MTIzNDU2Nzg="}`)
	w := f.do("GET", "/.well-known/jwks.json", "", "")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/jwk-set+json" || w.Header().Get("Cache-Control") != "public, max-age=300" {
		t.Fatalf("status %d, headers %v", w.Code, w.Header())
	}
	keys, err := token.ParseKeys(w.Body.Bytes())
	fatal(t, err)
	b, _, err := token.Verify(r.Result, keys)
	fatal(t, err)
	c, err := result.Decode(b)
	fatal(t, err)
	if err := c.Check(result.Expect{Now: time.Now(), Skew: time.Minute, Host: "host-1", Nonce: []byte("12345678"), Issuer: apitest.Issuer}); err != nil {
		t.Error(err)
	}
	f.result(t, "")
	f.result(t, "{}")
	for _, body := range []string{`{"nonce":"?"}`, `{"nonce":7}`, `{"nounce":"MTIzNDU2Nzg="}`} {
		if w := f.do("POST", "/v1/hosts/host-1/attestation-result", f.viewer, body); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d, want 422", body, w.Code)
		}
	}
	wantProblem(t, f.do("POST", "/v1/hosts/host-2/attestation-result", f.viewer, "{}"), 404, "host_unknown")

	w = f.do("POST", "/v1/results/keys/rotate", f.operator, `{"reason":"every spring"}`)
	var rotated v1.ResultKeys
	if fatal(t, json.Unmarshal(w.Body.Bytes(), &rotated)); w.Code != http.StatusOK || len(rotated.Keys) != 2 {
		t.Errorf("rotated: status %d, %s", w.Code, w.Body)
	}
	if w := f.do("POST", "/v1/results/keys/rotate", f.operator, `{}`); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("rotated without a reason: status %d", w.Code)
	}
	if w := f.do("GET", "/v1/results/keys", f.viewer, ""); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "sealed") {
		t.Errorf("keys: status %d, %s", w.Code, w.Body)
	}
}

// TestResultGrantsNothing: a result is no credential here, wherever it is sent.
func TestResultGrantsNothing(t *testing.T) {
	f := newResultFixture(t)
	signed, before := f.result(t, "{}").Result, len(f.site.Actors())
	for name, who := range access {
		method, path, _ := strings.Cut(name, " ")
		if who == "public" || method == "POST" && path == "/v1/attest/sessions" {
			continue // they ask for no credential
		}
		path = strings.NewReplacer("{id}", "host-1", "{name}", "x", "{guid}", "0x1", "{class}", "c", "{version}", "1", "{number}", "1", "{shared}", "x", "{ticket}", "x", "{mgid}", "x", "{kind}", "rack", "{digest}", "x", "{level}", "0", "{tile}", "0").Replace(path)
		w := f.do(method, path, signed, "")
		if who == "host" {
			if w.Code < 400 {
				t.Errorf("%s with a result as bearer: status %d", name, w.Code)
			}
			continue
		}
		wantProblem(t, w, 401, v1.CodeUnauthenticated)
	}
	for _, path := range []string{"/metrics", "/metrics/fabric"} {
		if w := f.do("GET", path, signed, ""); w.Code != 401 {
			t.Errorf("%s with a result as bearer: status %d", path, w.Code)
		}
	}
	if got := f.site.Actors()[before:]; len(got) > 0 {
		t.Errorf("something was changed: %v", got)
	}
}

func TestNoResults(t *testing.T) {
	f := newFixture(t)
	f.site.Register("host-1")
	for _, tt := range []struct{ method, path, token, body string }{
		{"GET", "/.well-known/jwks.json", "", ""},
		{"GET", "/v1/results/keys", f.viewer, ""},
		{"POST", "/v1/results/keys/rotate", f.operator, `{"reason":"r"}`},
		{"POST", "/v1/hosts/host-1/attestation-result", f.viewer, ""},
	} {
		t.Run(fmt.Sprint(tt.method, " ", tt.path), func(t *testing.T) {
			wantProblem(t, f.do(tt.method, tt.path, tt.token, tt.body), 503, v1.CodeUnavailable)
		})
	}
}

// The document describes the key set as the object that it is: the served set has the fields that it demands, and no other.
func TestKeySetIsAsDocumented(t *testing.T) {
	f := newResultFixture(t)
	f.result(t, `{"nonce":"MTIzNDU2Nzg="}`)
	type schema struct {
		Type       string            `json:"type"`
		Required   []string          `json:"required"`
		Properties map[string]schema `json:"properties"`
		Items      *schema           `json:"items"`
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]struct{ Schema schema } `json:"content"`
			} `json:"responses"`
		} `json:"paths"`
	}
	fatal(t, json.Unmarshal(f.do("GET", "/openapi.json", "", "").Body.Bytes(), &doc))
	content := doc.Paths["/.well-known/jwks.json"]["get"].Responses["200"].Content
	set, ok := content["application/jwk-set+json"]
	if !ok || len(content) != 1 || set.Schema.Type != "object" || set.Schema.Properties["keys"].Items == nil {
		t.Fatalf("documented as %+v", content)
	}
	key := set.Schema.Properties["keys"].Items
	var served struct {
		Keys []map[string]string `json:"keys"`
	}
	fatal(t, json.Unmarshal(f.do("GET", "/.well-known/jwks.json", "", "").Body.Bytes(), &served))
	if len(served.Keys) == 0 {
		t.Fatal("no key is served")
	}
	for _, k := range served.Keys {
		for _, name := range key.Required {
			if k[name] == "" {
				t.Errorf("key %v has no %s", k, name)
			}
		}
		for name := range k {
			if _, known := key.Properties[name]; !known {
				t.Errorf("key %v has %s, which is not documented", k, name)
			}
		}
	}
}
