package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/credential"
	"portcullis/api/limit"
	v1 "portcullis/api/v1"
)

// access names, for each operation of the document, which credential opens it.
var access = map[string]string{
	"POST /v1/attest/sessions":                      "host",
	"PUT /v1/attest/sessions/{id}/evidence":         "host",
	"PUT /v1/attest/sessions/{id}/seal":             "host",
	"POST /v1/attest/sessions/{id}/seal-nonce":      "host",
	"GET /v1/attest/status":                         "host",
	"GET /v1/host-authority":                        "viewer",
	"POST /v1/host-authority/rotate":                "operator",
	"POST /v1/attest/locks":                         "host",
	"POST /v1/attest/locks/report":                  "host",
	"GET /v1/events":                                "viewer",
	"GET /v1/events/watch":                          "viewer",
	"POST /v1/batches/assign":                       "operator",
	"POST /v1/batches/release":                      "operator",
	"POST /v1/hosts/{id}/attestation-result":        "viewer",
	"GET /.well-known/jwks.json":                    "public",
	"POST /v1/receipts":                             "operator",
	"GET /v1/receipts/keys":                         "public",
	"POST /v1/receipts/keys/rotate":                 "operator",
	"GET /v1/receipts/log/checkpoint":               "public",
	"GET /v1/receipts/log/proofs/{digest}":          "public",
	"GET /v1/receipts/log/consistency":              "public",
	"GET /v1/receipts/log/tiles/{level}/{tile}":     "public",
	"GET /v1/results/keys":                          "viewer",
	"POST /v1/results/keys/rotate":                  "operator",
	"GET /v1/locks":                                 "viewer",
	"GET /v1/locks/{guid}":                          "viewer",
	"POST /v1/locks/{guid}/release":                 "operator",
	"DELETE /v1/locks/{guid}/release":               "operator",
	"POST /v1/inventory/import":                     "operator",
	"GET /v1/inventory/repairs":                     "viewer",
	"GET /v1/inventory/racks":                       "viewer",
	"GET /v1/inventory/check":                       "viewer",
	"POST /v1/inventory/topospec":                   "operator",
	"DELETE /v1/inventory/equipment/{kind}/{id}":    "operator",
	"GET /v1/inventory/racks/{id}":                  "viewer",
	"GET /v1/inventory/switches":                    "viewer",
	"GET /v1/inventory/switches/{id}":               "viewer",
	"GET /v1/inventory/cables":                      "viewer",
	"GET /v1/inventory/spares":                      "viewer",
	"GET /v1/inventory/repairs/{id}":                "viewer",
	"POST /v1/inventory/repairs/{id}/confirm":       "operator",
	"POST /v1/inventory/repairs/{id}/cancel":        "operator",
	"GET /v1/inventory/denied":                      "viewer",
	"GET /v1/hosts":                                 "viewer",
	"GET /v1/hosts/{id}":                            "viewer",
	"GET /v1/hosts/{id}/watch":                      "viewer",
	"POST /v1/hosts/{id}/fence":                     "operator",
	"POST /v1/hosts/{id}/assign":                    "operator",
	"POST /v1/hosts/{id}/release":                   "operator",
	"POST /v1/hosts/{id}/tpm-cleared":               "operator",
	"POST /v1/hosts/{id}/guid-resolved":             "operator",
	"GET /v1/hosts/{id}/labels":                     "viewer",
	"PATCH /v1/hosts/{id}/labels":                   "operator",
	"GET /v1/clusters/{name}/labels":                "viewer",
	"PATCH /v1/clusters/{name}/labels":              "operator",
	"GET /v1/tenants/{name}/labels":                 "viewer",
	"PATCH /v1/tenants/{name}/labels":               "operator",
	"GET /v1/references":                            "viewer",
	"POST /v1/references":                           "operator",
	"POST /v1/references/waivers":                   "operator",
	"GET /v1/references/{class}/{version}":          "viewer",
	"GET /v1/references/{class}/{version}/diff":     "viewer",
	"POST /v1/references/{class}/{version}/approve": "operator",
	"POST /v1/references/{class}/{version}/expire":  "operator",
	"GET /v1/tenants":                               "viewer",
	"GET /v1/tenants/{name}":                        "viewer",
	"POST /v1/tenants":                              "operator",
	"DELETE /v1/tenants/{name}":                     "operator",
	"PUT /v1/tenants/{name}/quota":                  "operator",
	"GET /v1/clusters":                              "viewer",
	"POST /v1/clusters":                             "operator",
	"GET /v1/clusters/{name}":                       "viewer",
	"DELETE /v1/clusters/{name}":                    "operator",
	"GET /v1/pkeys/quarantined":                     "viewer",
	"GET /v1/fabric":                                "viewer",
	"GET /v1/sm":                                    "viewer",
	"GET /v1/clock":                                 "viewer",
	"POST /v1/clock/set":                            "operator",
	"GET /v1/admission/brake":                       "viewer",
	"GET /v1/adoption":                              "viewer",
	"GET /v1/adoption/{id}":                         "viewer",
	"POST /v1/adoption":                             "operator",
	"POST /v1/adoption/{id}/confirm":                "operator",
	"POST /v1/adoption/{id}/end":                    "operator",
	"POST /v1/admission/brake/release":              "operator",
	"POST /v1/sm/forget":                            "operator",
	"POST /v1/sm/step-down":                         "operator",
	"GET /v1/sm/progress":                           "viewer",
	"GET /v1/fabric/overview":                       "viewer",
	"GET /v1/fabric/health":                         "viewer",
	"GET /v1/fabric/topology":                       "viewer",
	"GET /v1/fabric/violations":                     "viewer",
	"GET /v1/fabric/sa":                             "viewer",
	"GET /v1/fabric/groups":                         "viewer",
	"GET /v1/fabric/groups/{mgid}/members":          "viewer",
	"GET /v1/fabric/services":                       "viewer",
	"GET /v1/fabric/subscriptions":                  "viewer",
	"GET /v1/fabric/aliases":                        "viewer",
	"POST /v1/fabric/health":                        "operator",
	"GET /v1/fabric/keys":                           "viewer",
	"GET /v1/fabric/keys/devices":                   "viewer",
	"POST /v1/fabric/keys/release":                  "operator",
	"POST /v1/fabric/keys/move":                     "operator",
	"POST /v1/fabric/keys/sealed":                   "operator",
	"GET /v1/fabric/nodes":                          "viewer",
	"GET /v1/fabric/ports":                          "viewer",
	"GET /v1/fabric/links":                          "viewer",
	"GET /v1/fabric/load":                           "viewer",
	"GET /v1/fabric/history":                        "viewer",
	"GET /v1/fabric/history/at":                     "viewer",
	"GET /v1/fabric/history/changes":                "viewer",
	"GET /v1/fabric/routes":                         "viewer",
	"GET /v1/fabric/lfts":                           "viewer",
	"DELETE /v1/hosts/{id}":                         "operator",
	"GET /v1/inventory/export":                      "viewer",
	"GET /v1/fabric/lfts/{id}":                      "viewer",
	"GET /v1/fabric/dumps/{name}":                   "viewer",
	"GET /v1/topospec":                              "viewer",
	"GET /v1/topospec/revisions":                    "viewer",
	"GET /v1/topospec/revisions/{number}":           "viewer",
	"GET /v1/topospec/revisions/{number}/content":   "viewer",
	"POST /v1/topospec/revisions":                   "operator",
	"POST /v1/topospec/rollback":                    "operator",
	"GET /v1/topospec/rma":                          "viewer",
	"GET /v1/topospec/rma/{ticket}":                 "viewer",
	"POST /v1/topospec/rma":                         "operator",
	"POST /v1/topospec/rma/{ticket}/confirm":        "operator",
	"POST /v1/topospec/rma/{ticket}/cancel":         "operator",
	"POST /v1/topospec/revisions/{number}/validate": "operator",
	"POST /v1/topospec/revisions/{number}/simulate": "operator",
	"POST /v1/topospec/revisions/{number}/approve":  "operator",
	"POST /v1/topospec/revisions/{number}/reject":   "operator",
	"POST /v1/topospec/revisions/{number}/activate": "operator",
	"PUT /v1/clusters/{name}/uses/{shared}":         "operator",
	"DELETE /v1/clusters/{name}/uses/{shared}":      "operator",
	"POST /v1/fabric/keys/lend":                     "operator",
	"POST /v1/fabric/keys/sa-key":                   "operator",
	"POST /v1/fabric/keys/retire":                   "operator",
	"POST /v1/fabric/keys/rehearsal":                "operator",
	"POST /v1/inquiries":                            "operator",
	"POST /v1/inquiries/{id}/mads":                  "operator",
	"DELETE /v1/inquiries/{id}":                     "operator",
	"POST /v1/verify":                               "operator",
	"GET /v1/verify":                                "operator",
	"GET /v1/verify/ports":                          "operator",
	"GET /v1/fabric/drift":                          "operator",
	"GET /v1/audit":                                 "viewer",
	"GET /v1/audit/head":                            "viewer",
	"GET /v1/audit/breaks":                          "viewer",
	"POST /v1/audit/breaks/accept":                  "operator",
	"GET /v1/webhooks":                              "viewer",
	"GET /v1/webhooks/{name}/dead-letters":          "viewer",
	"POST /v1/webhooks/{name}/replay":               "operator",
	"POST /v1/webhooks/{name}/test":                 "operator",
	"GET /v1/review":                                "viewer",
	"POST /v1/plan":                                 "viewer",
	"GET /v1/whoami":                                "viewer",
	"GET /v1/login":                                 "public",
	"GET /v1/profile":                               "viewer",
	"POST /v1/review/approve":                       "operator",
	"POST /v1/review/reject":                        "operator",
	"POST /v1/review/end":                           "operator",
	"GET /v1/backups":                               "viewer",
	"POST /v1/backups":                              "operator",
	"POST /v1/backups/stream":                       "operator",
	"GET /v1/backups/{name}":                        "operator",
	"POST /v1/backups/{name}/verify":                "operator",
}

func TestEveryRouteHasItsCredential(t *testing.T) {
	f := newFixture(t, unlimited)
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Load(f.server.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for path, methods := range doc.Paths {
		for method := range methods {
			name := strings.ToUpper(method) + " " + path
			served[name] = true
			if access[name] == "" {
				t.Errorf("%s: this test does not know who may use it", name)
			}
		}
	}
	for name, who := range access {
		if !served[name] {
			t.Errorf("%s is not in the document", name)
			continue
		}
		if who == "host" || who == "public" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			method, path, _ := strings.Cut(name, " ")
			path = strings.NewReplacer("{id}", "x", "{name}", "x").Replace(path)
			for what, token := range map[string]string{
				"none": "", "wrong": f.operator + "x", "prefix": f.operator[:len(f.operator)-1], "huge": strings.Repeat("x", 1<<12),
			} {
				w := f.do(method, path, token, "")
				wantProblem(t, w, 401, v1.CodeUnauthenticated)
				if got := w.Header().Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
					t.Errorf("%s token: WWW-Authenticate %q, want Bearer", what, got)
				}
			}
			viewer := f.do(method, path, f.viewer, "")
			if who == "operator" {
				wantProblem(t, viewer, 403, v1.CodeForbidden)
			} else if viewer.Code == 401 || viewer.Code == 403 {
				t.Errorf("viewer is refused: %d", viewer.Code)
			}
			if w := f.do(method, path, f.operator, ""); w.Code == 401 || w.Code == 403 {
				t.Errorf("operator is refused: %d", w.Code)
			}
		})
	}
	if got := f.site.Actors(); got != nil {
		t.Errorf("something was changed: %v", got)
	}
}

// unlimited lets a test ask every route several times.
func unlimited(o *api.Options) {
	without := limit.Rate{PerSecond: 1e9, Burst: 1e9}
	o.Limits.Requests, o.Limits.Strangers, o.Limits.Tokens = without, without, without
}

// TestRangesOfPKeysConfine: a credential with ranges of P_Keys changes clusters and which hosts are in them. The credential
// of a scheduler is no second person of a revision, gets no key and brings no inventory. It does not confirm that a TPM was
// cleared, nor which host has a GUID that two hosts claim, and sets no quota. It reads neither the audit log nor backups, adoptions nor how secure the site is, and
// follows no events: they hold the data
// of every tenant.
func TestRangesOfPKeysConfine(t *testing.T) {
	f := newFixture(t, unlimited)
	token, digest := credential.New()
	confined, err := credential.Parse("tokens.yaml", fmt.Appendf(nil, "tokens:\n- {name: slurm, role: operator, sha256: %s, p_keys: [0x0100-0x01ff]}\n", digest))
	if err != nil {
		t.Fatal(err)
	}
	f.server.SetTokens(confined)
	within := []string{"/v1/hosts/", "/v1/tenants", "/v1/clusters", "/v1/batches/"}
	whole := []string{"/v1/audit", "/v1/backups", "/v1/review", "/v1/events/watch", "/v1/webhooks", "/v1/profile", "/v1/adoption"}
	hasPrefix := func(path string) func(string) bool {
		return func(p string) bool { return strings.HasPrefix(path, p) }
	}
	for name, who := range access {
		if who == "host" || who == "public" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			method, path, _ := strings.Cut(name, " ")
			may := who == "viewer" && !slices.ContainsFunc(whole, hasPrefix(path)) || name != "DELETE /v1/hosts/{id}" && !strings.HasSuffix(path, "/quota") && !strings.HasSuffix(path, "/tpm-cleared") && !strings.HasSuffix(path, "/guid-resolved") && !strings.HasSuffix(path, "/fence") &&
				slices.ContainsFunc(within, hasPrefix(path))
			w := f.do(method, strings.NewReplacer("{id}", "x", "{name}", "x").Replace(path), token, "")
			if !may {
				wantProblem(t, w, 403, v1.CodeForbidden)
			} else if w.Code == 401 || w.Code == 403 {
				t.Errorf("refused: %d", w.Code)
			}
		})
	}
}

func TestAuthorizationHeader(t *testing.T) {
	f := newFixture(t)
	for _, tt := range []struct {
		name, header string
		status       int
		detail       string
	}{
		{"bearer", "Bearer " + f.viewer, 200, ""},
		{"lower case scheme", "bearer " + f.viewer, 200, ""},
		{"no scheme", f.viewer, 401, "no operator token was sent"},
		{"basic", "Basic " + f.viewer, 401, "no operator token was sent"},
		{"two spaces", "Bearer  " + f.viewer, 401, "the token that was sent is not known here"},
		{"unknown token", "Bearer " + f.viewer + "x", 401, "the token that was sent is not known here"},
		{"empty token", "Bearer ", 401, "no operator token was sent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRequest("GET", "/v1/hosts")
			r.Header.Set("Authorization", tt.header)
			if w := f.send(r); w.Code != tt.status || !strings.Contains(w.Body.String(), tt.detail) {
				t.Errorf("status %d, %s; want %d, %q", w.Code, w.Body, tt.status, tt.detail)
			}
		})
	}
}

func newRequest(method, path string) *http.Request { return httptest.NewRequest(method, path, nil) }

// shown collects the tokens that have ended and were reported.
type shown struct {
	mu   sync.Mutex
	told []string
}

func (s *shown) RefusedToken(_ context.Context, token, source string, ended time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, token+" "+source+" "+ended.UTC().Format(time.RFC3339))
}

// A token that has ended is refused everywhere, with a sentence that says so; that is reported once a minute.
func TestEndedToken(t *testing.T) {
	token, digest := credential.New()
	past := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	told := &shown{}
	f := newFixture(t, func(o *api.Options) {
		var err error
		o.Ended = told
		o.Tokens, err = credential.Parse("t.yaml", fmt.Appendf(nil, "tokens:\n- {name: old, role: operator, sha256: %s, expires: %s}\n", digest, past.Format(time.RFC3339)))
		fatal(t, err)
	})
	for _, path := range []string{"/v1/hosts", "/v1/audit", "/metrics/fabric", "/metrics"} {
		p := wantProblem(t, f.do("GET", path, token, ""), 401, v1.CodeUnauthenticated)
		if want := "token old ended at " + past.Format(time.RFC3339); p.Detail != want {
			t.Errorf("%s: %q, want %q", path, p.Detail, want)
		}
	}
	wantProblem(t, f.do("POST", "/v1/tenants", token, `{"name":"acme"}`), 401, v1.CodeUnauthenticated)
	if len(told.told) != 1 || !strings.HasPrefix(told.told[0], "old 192.0.2.1 ") {
		t.Errorf("told %q, want once", told.told)
	}
}

// A stream ends when the token does that opened it. A slow machine may open the stream after the end of a token: then
// the next one has twice the time.
func TestStreamEndsWithItsToken(t *testing.T) {
	site := apitest.NewSite(t)
	site.Register("host-1")
	s := apitest.Start(t, site)
	for life := 2 * time.Second; ; life *= 2 {
		token, digest := credential.New()
		ends := time.Now().Add(life).UTC().Truncate(time.Second)
		tokens, err := credential.Parse("t.yaml", fmt.Appendf(nil, "tokens:\n- {name: short, role: viewer, sha256: %s, expires: %s}\n", digest, ends.Format(time.RFC3339)))
		fatal(t, err)
		s.API.SetTokens(tokens)
		r := dialRaw(t, s, "127.0.0.1")
		r.send("GET /v1/hosts/host-1/watch HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + token + "\r\nConnection: close\r\n\r\n")
		fatal(t, r.conn.SetReadDeadline(ends.Add(10*time.Second)))
		all, err := io.ReadAll(r.in)
		if life < 30*time.Second && strings.HasPrefix(string(all), "HTTP/1.1 401 ") {
			continue
		}
		if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") || !strings.Contains(string(all), "event: host") || time.Now().Before(ends) {
			t.Errorf("%v at %v, want a stream until %v:\n%s", err, time.Now(), ends, all)
		}
		return
	}
}
