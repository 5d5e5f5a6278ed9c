package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/limit"
	"portcullis/api/refusal"
	"portcullis/api/store"
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
		f.site.Fail(reason)
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
		f.site.Fail(&refusal.Error{Code: "secret", Status: tt.kind, Detail: "secret", Hint: "secret"})
		w := f.do("POST", "/v1/attest/sessions", "", session)
		wantProblem(t, w, tt.status, tt.code)
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%v: answer tells the host too much: %s", tt.kind, w.Body)
		}
	}
}

// open registers a host and opens a session of it, which awaits evidence, and returns its id.
func open(t *testing.T, s *apitest.Site, host string) string { t.Helper(); return opener(t, s, host)() }

// opener registers a host, and returns what opens a session of it.
func opener(t *testing.T, s *apitest.Site, host string) func() string {
	t.Helper()
	s.Register(host)
	s.Join(host)
	request := s.Boot(host).Request()
	return func() string {
		opened, err := s.Service().Attestation().OpenSession(t.Context(), request, "192.0.2.1")
		fatal(t, err)
		return opened.ID
	}
}

func TestEvidenceWantsTLS(t *testing.T) {
	f := newFixture(t)
	w := f.do("PUT", "/v1/attest/sessions/"+open(t, f.site, "h1")+"/evidence", "",
		`{"statement":"AA==","quote":"AA==","signature":"AA==","certify":"AA==","certify_signature":"AA==","pcr_values":[],"proof":"AA=="}`)
	wantProblem(t, w, 426, v1.CodeChannelBinding)
	w = f.do("PUT", "/v1/attest/sessions/"+f.site.Attest("h1").Session.ID+"/seal", "", `{"quote":"AA==","signature":"AA=="}`)
	wantProblem(t, w, 426, v1.CodeChannelBinding)
}

// attested registers the host h1, whose evidence is accepted and not sealed.
func attested(s *apitest.Site) *apitest.Attested {
	s.Register("h1")
	s.Join("h1")
	return s.Attest("h1")
}

func TestStatusToken(t *testing.T) {
	f := newFixture(t)
	token := attested(f.site).Result.StatusToken
	f.site.Edit("h1", func(r *hostrecord.Record) {
		r.Deny(v1.Denial{Time: time.Now(), Code: "pcr-digest", Detail: "secret"})
		r.Evidence.Waived = []string{"secret"}
	})
	if st := f.site.Host("h1").Status; st.LastDenial == nil || st.Reference == "" || st.Waived == nil {
		t.Fatalf("operators see %+v, want the denial, reference values and waivers", st)
	}

	w := f.do("GET", "/v1/attest/status", token, "")
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
	wantProblem(t, f.do("GET", "/v1/hosts", token, ""), 401, v1.CodeUnauthenticated)
}

// TestSealNonce: the status token alone asks for another challenge, and why there
// is none is for operators.
func TestSealNonce(t *testing.T) {
	f := newFixture(t)
	a := attested(f.site)
	token := a.Result.StatusToken
	const path = "/v1/attest/sessions/0123456789abcdef0123456789abcdef/seal-nonce"
	for name, token := range map[string]string{"none": "", "unknown": "status-2", "operator's": f.operator, "huge": strings.Repeat("x", 4096)} {
		t.Run(name, func(t *testing.T) { wantProblem(t, f.do("POST", path, token, ""), 401, v1.CodeUnauthenticated) })
	}
	w := f.do("POST", path, token, "")
	if p := wantProblem(t, w, 409, v1.CodeSealClosed); strings.Contains(w.Body.String(), "session") || !strings.Contains(p.Hint, "reboot") {
		t.Errorf("got %s", w.Body)
	}
	own := "/v1/attest/sessions/" + a.Session.ID + "/seal-nonce"
	w = f.do("POST", own, token, "")
	var seal attest.Seal
	if err := json.Unmarshal(w.Body.Bytes(), &seal); err != nil || w.Code != 200 || !bytes.Equal(seal.Nonce, a.Result.Seal.Nonce) {
		t.Errorf("status %d, %v: %s", w.Code, err, w.Body)
	}
	f.site.Fail(&refusal.Error{Code: "secret", Status: refusal.Unavailable, Detail: "secret"})
	if w = f.do("POST", own, token, ""); strings.Contains(w.Body.String(), "secret") {
		t.Errorf("got %s", w.Body)
	}
	wantProblem(t, w, 503, v1.CodeUnavailable)
}

// A host that is held learns that, and not which other host is.
func TestStatusNamesNoOtherHost(t *testing.T) {
	f := newFixture(t)
	token := attested(f.site).Result.StatusToken
	f.site.Edit("h1", func(r *hostrecord.Record) { r.Conflicts = []hostrecord.Dispute{{GUID: 1, With: "secret"}} })
	w := f.do("GET", "/v1/attest/status", token, "")
	if w.Code != 200 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), "held until an operator") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	if g := f.site.Host("h1").Status.Guards[1]; !strings.Contains(g.Detail, "host secret") {
		t.Errorf("operators see %+v, want the other host", g)
	}
}

// keepPKey has the ledger say that the P_Key of a host is still that of another host at its ports.
func keepPKey(t *testing.T, s *apitest.Site, host, other string) {
	t.Helper()
	_, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
		rec, err := hostrecord.Records().Get(t.Context(), tx, host)
		if err != nil {
			return err
		}
		h, err := inventory.Hosts().Get(t.Context(), tx, host)
		if err != nil {
			return err
		}
		for _, p := range h.Value.Ports() {
			k := records.Key{PKey: rec.Value.PKey, GUID: p.GUID, Place: p.Cable}
			if err := records.Grants().Put(tx, k.String(), records.Grant{Host: other}); err != nil {
				return err
			}
		}
		return nil
	})
	fatal(t, err)
}

// Root of a host learns neither which rule its evidence fails since, nor whose P_Key its
// port has still.
func TestStatusTellsNeitherPolicyNorNeighbours(t *testing.T) {
	f := newFixture(t)
	token := attested(f.site).Result.StatusToken
	f.site.Edit("h1", func(r *hostrecord.Record) {
		r.Evidence.Lapses = []hostrecord.Lapse{{Cause: attest.LapseFirmware, Detail: "secret", Since: time.Now()}}
	})
	keepPKey(t, f.site, "h1", "secret")
	w := f.do("GET", "/v1/attest/status", token, "")
	text := w.Body.String()
	if w.Code != 200 || strings.Contains(text, "secret") || strings.Contains(text, "outdated") {
		t.Errorf("status %d: %s", w.Code, text)
	}
	for _, want := range []string{"does not count any more", "no room", "is not seen"} {
		if !strings.Contains(text, want) {
			t.Errorf("the host is not told %q: %s", want, text)
		}
	}
	seen := 0
	for _, g := range f.site.Host("h1").Status.Guards {
		if strings.Contains(g.Detail, "secret") {
			seen++
		}
	}
	if seen != 2 {
		t.Errorf("operators see %+v, want the lapse and the neighbour", f.site.Host("h1").Status.Guards)
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
