package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/limit"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// A host must not learn from an answer how near its evidence came, nor which
// hosts exist.
func TestRefusalsOfEvidenceAreUniform(t *testing.T) {
	const evidence = `{"statement":"AA==","quote":"AA==","signature":"AA==","certify":"AA==","certify_signature":"AA==","pcr_values":[],"proof":"AA=="}`
	const session = `{"host":"h","ek":{"kind":"ecc-p256"},"start":{"agent":"a","image":""},"statement_digests":["AA=="],"ak1_public":"AA==","ak2_public":"AA=="}`
	const seal = `{"quote":"AA==","signature":"AA=="}`
	reasons := []error{
		&attest.Refusal{Code: attest.ReasonSignature, Detail: "d1"},
		&attest.Refusal{Code: attest.ReasonPCRDigest, Detail: "d2"},
		&refusal.Error{Code: "host_unknown", Status: refusal.NotFound, Detail: "d3"},
		&refusal.Error{Code: "window_closed", Status: refusal.Conflict, Detail: "d4"},
		&refusal.Error{Code: "session", Status: refusal.Refused, Detail: "d5"},
		&refusal.Error{Code: "request", Status: refusal.Invalid, Detail: "d6", Problems: []string{"d7"}},
	}
	seen := map[string]bool{}
	for _, reason := range reasons {
		f := newFixture(t, func(o *api.Options) { o.ChannelBinding = api.ChannelOff })
		f.backend.Fail(reason)
		for _, w := range []*httptest.ResponseRecorder{
			f.do("POST", "/v1/attest/sessions", "", session),
			f.do("PUT", "/v1/attest/sessions/s/evidence", "", evidence),
			f.do("PUT", "/v1/attest/sessions/s/seal", "", seal),
		} {
			p := wantProblem(t, w, 403, v1.CodeEvidenceRefused)
			seen[strings.ReplaceAll(w.Body.String(), p.ID, "ID")] = true
		}
	}
	if len(seen) != 1 {
		t.Errorf("%d different answers, want 1:\n%v", len(seen), seen)
	}
}

func TestHostLearnsWhenToTryAgain(t *testing.T) {
	const session = `{"host":"h","ek":{"kind":"ecc-p256"},"start":{"agent":"a","image":""},"statement_digests":["AA=="],"ak1_public":"AA==","ak2_public":"AA=="}`
	for _, tt := range []struct {
		kind   refusal.Kind
		status int
		code   string
	}{
		{refusal.Unavailable, 503, v1.CodeUnavailable},
		{refusal.Limited, 429, v1.CodeRateLimited},
	} {
		f := newFixture(t)
		f.backend.Fail(&refusal.Error{Code: "secret", Status: tt.kind, Detail: "secret", Hint: "secret"})
		w := f.do("POST", "/v1/attest/sessions", "", session)
		wantProblem(t, w, tt.status, tt.code)
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%v: answer tells the host too much: %s", tt.kind, w.Body)
		}
	}
}

func TestEvidenceWantsTLS(t *testing.T) {
	f := newFixture(t)
	w := f.do("PUT", "/v1/attest/sessions/s/evidence", "",
		`{"statement":"AA==","quote":"AA==","signature":"AA==","certify":"AA==","certify_signature":"AA==","pcr_values":[],"proof":"AA=="}`)
	wantProblem(t, w, 426, v1.CodeChannelBinding)
	w = f.do("PUT", "/v1/attest/sessions/s/seal", "", `{"quote":"AA==","signature":"AA=="}`)
	wantProblem(t, w, 426, v1.CodeChannelBinding)
}

func TestStatusToken(t *testing.T) {
	f := newFixture(t)
	f.backend.SetHost(v1.Host{ID: "h1", HCAs: []v1.HCA{}, Status: v1.HostStatus{
		Phase: v1.PhaseVerified, LastDenial: &v1.Denial{Code: "pcr-digest", Detail: "secret"}, Reference: "default/1", Waived: []string{"secret"},
	}})
	f.backend.SetStatusToken("status-1", "h1")

	w := f.do("GET", "/v1/attest/status", "status-1", "")
	var h v1.Host
	if err := json.Unmarshal(w.Body.Bytes(), &h); err != nil || w.Code != 200 {
		t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
	}
	if h.ID != "h1" || h.Status.Phase != v1.PhaseVerified || h.Status.LastDenial != nil || h.Status.Reference != "" || h.Status.Waived != nil {
		t.Errorf("host %+v, want h1, verified, and no word of the denial, of reference values and of waivers", h)
	}
	for name, token := range map[string]string{"none": "", "unknown": "status-2", "operator's": f.operator, "huge": strings.Repeat("x", 4096)} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, f.do("GET", "/v1/attest/status", token, ""), 401, v1.CodeUnauthenticated)
		})
	}
	wantProblem(t, f.do("GET", "/v1/hosts", "status-1", ""), 401, v1.CodeUnauthenticated)
}

// TestSealNonce: the status token alone asks for another challenge, and why there
// is none is for operators.
func TestSealNonce(t *testing.T) {
	f := newFixture(t)
	f.backend.SetHost(v1.Host{ID: "h1", HCAs: []v1.HCA{}})
	f.backend.SetStatusToken("status-1", "h1")
	const path = "/v1/attest/sessions/0123456789abcdef0123456789abcdef/seal-nonce"
	for name, token := range map[string]string{"none": "", "unknown": "status-2", "operator's": f.operator, "huge": strings.Repeat("x", 4096)} {
		t.Run(name, func(t *testing.T) { wantProblem(t, f.do("POST", path, token, ""), 401, v1.CodeUnauthenticated) })
	}
	w := f.do("POST", path, "status-1", "")
	if p := wantProblem(t, w, 409, v1.CodeSealClosed); strings.Contains(w.Body.String(), "secret") || !strings.Contains(p.Hint, "reboot") {
		t.Errorf("got %s", w.Body)
	}
	f.backend.OnRenewSeal = func(token, session string) (*attest.Seal, error) {
		return &attest.Seal{Nonce: []byte(token + " " + session)}, nil
	}
	w = f.do("POST", path, "status-1", "")
	var seal attest.Seal
	if err := json.Unmarshal(w.Body.Bytes(), &seal); err != nil || w.Code != 200 || string(seal.Nonce) != "status-1 0123456789abcdef0123456789abcdef" {
		t.Errorf("status %d, %v: %s", w.Code, err, w.Body)
	}
	f.backend.Fail(&refusal.Error{Code: "secret", Status: refusal.Unavailable, Detail: "secret"})
	if w = f.do("POST", path, "status-1", ""); strings.Contains(w.Body.String(), "secret") {
		t.Errorf("got %s", w.Body)
	}
	wantProblem(t, w, 503, v1.CodeUnavailable)
}

// A host that is held learns that, and not which other host is.
func TestStatusNamesNoOtherHost(t *testing.T) {
	f := newFixture(t)
	guards := []v1.Guard{{Name: "assigned", Met: true}, {Name: "attested", Detail: "GUID 0x1 is claimed by host secret too"}}
	f.backend.SetHost(v1.Host{ID: "h1", HCAs: []v1.HCA{}, Status: v1.HostStatus{
		Phase: v1.PhaseAwaiting, Guards: guards, Conflicts: []v1.Conflict{{GUID: 1, With: "secret"}},
	}})
	f.backend.SetStatusToken("status-1", "h1")
	w := f.do("GET", "/v1/attest/status", "status-1", "")
	if w.Code != 200 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), "held until an operator") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	if guards[1].Detail != "GUID 0x1 is claimed by host secret too" {
		t.Error("what operators see was changed, too")
	}
}

// Root of a host learns neither which rule its evidence fails since, nor whose P_Key its
// port has still.
func TestStatusTellsNeitherPolicyNorNeighbours(t *testing.T) {
	f := newFixture(t)
	guards := []v1.Guard{
		{Name: "assigned", Met: true},
		{Name: "attested", Detail: "the accepted evidence no longer meets policy since 2026-01-01T00:00:00Z: secret"},
		{Name: "capacity", Detail: "P_Key 0x8001 of port 0x1 is still that of host secret"},
		{Name: "seen", Detail: "port 0x1 is not seen"},
	}
	f.backend.SetHost(v1.Host{ID: "h1", HCAs: []v1.HCA{}, Status: v1.HostStatus{
		Phase: v1.PhaseAwaiting, Guards: guards, Outdated: []v1.Outdated{{Cause: "firmware", Detail: "secret"}},
	}})
	f.backend.SetStatusToken("status-1", "h1")
	w := f.do("GET", "/v1/attest/status", "status-1", "")
	text := w.Body.String()
	if w.Code != 200 || strings.Contains(text, "secret") || strings.Contains(text, "outdated") {
		t.Errorf("status %d: %s", w.Code, text)
	}
	for _, want := range []string{"does not count any more", "no room", "port 0x1 is not seen"} {
		if !strings.Contains(text, want) {
			t.Errorf("the host is not told %q: %s", want, text)
		}
	}
	if !strings.Contains(guards[1].Detail, "secret") {
		t.Error("what operators see was changed, too")
	}
}

// FuzzEvidence sends arbitrary bodies to the routes that hosts may use.
func FuzzEvidence(f *testing.F) {
	fix := newFixture(f, func(o *api.Options) {
		o.ChannelBinding = api.ChannelOff
		o.Log = slog.New(slog.DiscardHandler)
		o.Limits.Requests = limit.Rate{PerSecond: 1e9, Burst: 1e9}
		o.Limits.Attestations = o.Limits.Requests
	})
	f.Add([]byte(`{"host":"h","ek":{"kind":"ecc-p256","certificates":["AA=="]},"start":{"agent":"a","image":"b"},"statement_digests":["AA=="],"ak1_public":"AA==","ak2_public":"AA=="}`))
	f.Add([]byte(`{"statement":"e30=","quote":"AA==","signature":"AA==","certify":"AA==","certify_signature":"AA==","pcr_values":["AA=="],"event_log":"AA==","proof":"AA=="}`))
	f.Add([]byte(`[[[[[[[[[[[[[[[[[[[[[[`))
	f.Add([]byte(`{"host":1e400}`))
	f.Add([]byte("{\"host\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for method, path := range map[string]string{"POST": "/v1/attest/sessions", "PUT": "/v1/attest/sessions/s/evidence", "PUT ": "/v1/attest/sessions/s/seal"} {
			r := httptest.NewRequest(strings.TrimSpace(method), path, bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := fix.send(r)
			if w.Code < 400 || w.Code >= 500 {
				t.Errorf("%s %q: status %d, want a refusal", path, body, w.Code)
			}
			var p v1.Problem
			if err := json.NewDecoder(io.LimitReader(w.Body, 1<<20)).Decode(&p); err != nil || p.Code == "" {
				t.Errorf("%s %q: not a problem document: %v", path, body, err)
			}
		}
	})
}
