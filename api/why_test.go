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
	"portcullis/api/apitest"
	"portcullis/api/audit"
	"portcullis/api/credential"
	"portcullis/api/hostrecord"
	"portcullis/api/idempotency"
	"portcullis/api/rules"
	"portcullis/api/store"
	"portcullis/api/ufm"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// entries returns the audit log of a site.
func entries(t *testing.T, site *apitest.Site) []v1.AuditEntry {
	t.Helper()
	page, err := audit.Book{Store: site.Store}.List(t.Context(), v1.AuditQuery{Limit: v1.MaxPage})
	fatal(t, err)
	if _, err := audit.Verify(t.Context(), site.Store); err != nil {
		t.Errorf("the log is not whole: %v", err)
	}
	return page.Items
}

// reasonsOf returns the reasons of the entries of an action, with their actors.
func reasonsOf(t *testing.T, site *apitest.Site, action string) (all []string) {
	t.Helper()
	for _, e := range entries(t, site) {
		if e.Action == action {
			all = append(all, e.Actor+": "+e.Reason)
		}
	}
	return all
}

// asked sends a request of the operator with headers.
func (f *fixture) asked(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+f.operator)
	if body != "" {
		r.Header.Set("Content-Type", bodyType(method))
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return f.send(r)
}

// TestReasonsAreNeverIgnored sends a reason to every operation: those that do not record it refuse it, unless they only read, and the
// others refuse what is none.
func TestReasonsAreNeverIgnored(t *testing.T) {
	t.Parallel()
	f := answering(t, func(o *api.Options) { o.Limits.Attestations = o.Limits.Requests })
	kept := 0
	for _, d := range operations(t, f) {
		switch {
		case d.method == "GET":
			if d.has(v1.ReasonHeader, "header") {
				t.Errorf("%s reads, and documents %s", d.ID, v1.ReasonHeader)
			}
		case d.has(v1.ReasonHeader, "header"):
			kept++
			for _, bad := range []string{"", " ", "a%0Ab", "%E2%80%AEx", "é", "100%", strings.Repeat("x", v1.MaxReason+1)} {
				p := wantProblem(t, f.asked(d.method, d.path, "", v1.ReasonHeader, bad), http.StatusBadRequest, v1.CodeBadRequest)
				if !strings.Contains(p.Detail, v1.ReasonHeader) || strings.Contains(p.Detail+p.Hint, "\n") {
					t.Errorf("%s: the problem does not name the header: %s", d.ID, p.Detail)
				}
			}
			wantProblem(t, f.asked(d.method, d.path, "", v1.ReasonHeader, "a", v1.ReasonHeader, "a"), http.StatusBadRequest, v1.CodeBadRequest)
		default:
			wantProblem(t, f.asked(d.method, d.path, "", v1.ReasonHeader, "a"), http.StatusBadRequest, v1.CodeCondition)
		}
	}
	if kept < 60 {
		t.Errorf("%d operations take a reason, want all that change something by an operator's order", kept)
	}
	if got := f.site.Actors(); len(got) > 0 {
		t.Errorf("changes were made: %v", got)
	}
}

func TestReasonIsRecorded(t *testing.T) {
	t.Parallel()
	f := answering(t)
	const why = "Tür 7, „Lüfter“ 🔒 100%"
	w := f.asked("POST", "/v1/tenants", `{"name":"acme"}`, v1.ReasonHeader, v1.EncodeReason(why))
	wantStatus(t, w, http.StatusCreated)
	if strings.Contains(w.Body.String(), "Tür") {
		t.Errorf("the object has the reason: %s", w.Body)
	}
	wantStatus(t, f.asked("POST", "/v1/tenants", `{"name":"other"}`), http.StatusCreated)
	wantProblem(t, f.asked("POST", "/v1/tenants", `{"name":"acme"}`, v1.ReasonHeader, "again"), http.StatusConflict, "tenant_exists")
	f.site.Register("h1")
	wantStatus(t, f.asked("POST", "/v1/clusters", `{"name":"train","tenant":"acme"}`), http.StatusCreated)
	wantStatus(t, f.asked("POST", "/v1/hosts/h1/assign", `{"cluster":"train"}`, v1.ReasonHeader, "job 88"), http.StatusAccepted)
	for action, want := range map[string][]string{
		"tenant.create": {"olga: " + why, "olga: "}, "host.assign": {"olga: job 88"}, "cluster.create": {"olga: "},
	} {
		if got := reasonsOf(t, f.site, action); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", action, got, want)
		}
	}
	if log := f.log.String(); strings.Contains(log, "job 88") {
		t.Error("the access log has a header of the request")
	}
}

// TestRequestIsRecorded: entries name the request that they were written for, and the address that it came from.
func TestRequestIsRecorded(t *testing.T) {
	t.Parallel()
	f := answering(t)
	w := f.asked("POST", "/v1/tenants", `{"name":"acme"}`)
	wantStatus(t, w, http.StatusCreated)
	again := f.asked("POST", "/v1/clusters", `{"name":"train","tenant":"acme"}`)
	wantStatus(t, again, http.StatusCreated)
	found := 0
	for _, e := range entries(t, f.site) {
		if of := map[string]*httptest.ResponseRecorder{"tenant.create": w, "cluster.create": again}[e.Action]; of != nil {
			found++
			if e.Request == "" || e.Request != of.Header().Get("X-Request-Id") || e.Source != "192.0.2.1" {
				t.Errorf("the entry %+v is not of request %s", e, of.Header().Get("X-Request-Id"))
			}
		}
	}
	if found != 2 {
		t.Errorf("%d entries, want 2", found)
	}
}

// TestReasonInBodyAndHeader: what one of them leaves out, it takes from the other, and they never differ.
func TestReasonInBodyAndHeader(t *testing.T) {
	t.Parallel()
	f := answering(t)
	remove := func(reason string, headers ...string) *httptest.ResponseRecorder {
		f.site.Import("racks: [{id: r1}]\nhosts: []\n")
		body, err := json.Marshal(map[string]string{"reason": reason})
		fatal(t, err)
		return f.asked("DELETE", "/v1/inventory/equipment/rack/r1", string(body), headers...)
	}
	if w := remove("left", v1.ReasonHeader, "sold"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "two different reasons") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	for _, forged := range []string{"left\nolga\thost.release", "left\u202e", "left\x1b[2J", "left\u2028right"} {
		if p := wantProblem(t, remove(forged), http.StatusUnprocessableEntity, v1.CodeInvalid); !strings.Contains(p.Detail, "body.reason") {
			t.Errorf("%q: %s", forged, p.Detail)
		}
	}
	wantStatus(t, remove("left", v1.ReasonHeader, "left"), http.StatusNoContent)
	wantStatus(t, remove(" gone "), http.StatusNoContent)
	if got, want := reasonsOf(t, f.site, "inventory.remove"), []string{"olga: left", "olga: gone"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestReasonIsPartOfTheRequest: a key names one request with its reason.
func TestReasonIsPartOfTheRequest(t *testing.T) {
	t.Parallel()
	f := answering(t, func(o *api.Options) { o.RequireReason = []string{rules.Change} })
	wantProblem(t, f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`), http.StatusUnprocessableEntity, v1.CodeNoReason)
	wantStatus(t, f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`, v1.ReasonHeader, "new"), http.StatusCreated)
	again := f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`, v1.ReasonHeader, "new")
	wantStatus(t, again, http.StatusCreated)
	if again.Header().Get("Idempotency-Replayed") != "true" {
		t.Error("the repetition was carried out")
	}
	wantProblem(t, f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`, v1.ReasonHeader, "other"), http.StatusConflict, idempotency.CodeReused)
	if got, want := reasonsOf(t, f.site, "tenant.create"), []string{"olga: new"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// A body may have the reason, so it is read before the request is refused.
	f.site.Import("hosts: []\n")
	body := `{"files":[{"name":"hosts.yaml","content":"hosts: []"}]}`
	wantProblem(t, f.named("k2", "POST", "/v1/inventory/import", body), http.StatusUnprocessableEntity, v1.CodeNoReason)
	wantStatus(t, f.named("k2", "POST", "/v1/inventory/import", body, v1.ReasonHeader, "delivery 7"), http.StatusOK)
}

// TestReasonIsDemanded sends every operation that a class covers without a reason.
func TestReasonIsDemanded(t *testing.T) {
	t.Parallel()
	for _, class := range rules.Classes() {
		f := answering(t, func(o *api.Options) { o.RequireReason = []string{class} })
		refused := 0
		for _, d := range operations(t, f) {
			w := f.asked(d.method, d.path, "", "If-Match", "*")
			missing := strings.Contains(w.Body.String(), `"code":"`+v1.CodeNoReason+`"`)
			if missing && !rules.DemandsReason([]string{class}, d.ID) {
				t.Errorf("%s: %s is refused without a reason", class, d.ID)
			}
			if !missing {
				continue
			}
			refused++
			p := wantProblem(t, w, http.StatusUnprocessableEntity, v1.CodeNoReason)
			for _, name := range []string{v1.ReasonHeader, "--reason", "api.require_reason"} {
				if !strings.Contains(p.Detail+p.Hint, name) {
					t.Errorf("%s: the problem does not name %s: %s; %s", d.ID, name, p.Detail, p.Hint)
				}
			}
			if again := f.asked(d.method, d.path, "", "If-Match", "*", v1.ReasonHeader, "a"); strings.Contains(again.Body.String(), v1.CodeNoReason) {
				t.Errorf("%s is refused with a reason: %s", d.ID, again.Body)
			}
		}
		if least := map[string]int{rules.TakeAway: 4, rules.Approve: 0, rules.Change: 12}[class]; refused < least {
			t.Errorf("%s: %d operations are refused without a reason, want %d", class, refused, least)
		}
	}
}

// TestDemandedReasonGuardsBodies: a body that may leave the reason out is no way around the demand.
func TestDemandedReasonGuardsBodies(t *testing.T) {
	t.Parallel()
	f := answering(t, func(o *api.Options) { o.RequireReason = []string{rules.TakeAway, rules.Approve} })
	f.site.Register("h1")
	_, err := f.site.Store.Update(t.Context(), func(tx *store.Tx) error {
		return hostrecord.Verdicts().Put(tx, "h1", attest.Verdict{OK: true, Facts: attest.Facts{Host: "h1"}})
	})
	fatal(t, err)
	peter := f.persons(t, "peter")["peter"]
	inventory := f.site.Inventory("h1") // with another TPM
	body, err := json.Marshal(map[string]any{"files": []v1.InventoryFile{{Name: "hosts.yaml", Content: inventory}}, "ticket": "RMA-7"})
	fatal(t, err)
	w := f.asked("POST", "/v1/inventory/import", string(body), v1.ReasonHeader, "board replaced")
	var report v1.ImportReport
	if err := json.Unmarshal(w.Body.Bytes(), &report); w.Code != 200 || err != nil || len(report.Staged) != 1 || report.Staged[0].Reason != "board replaced" {
		t.Fatalf("staged: %d: %s", w.Code, w.Body)
	}
	const confirm = "/v1/inventory/repairs/h1/confirm"
	right := fmt.Sprintf(`{"digest":%q}`, report.Staged[0].Digest)
	wantProblem(t, f.do("POST", confirm, peter, right), http.StatusUnprocessableEntity, v1.CodeNoReason)
	wantProblem(t, f.do("POST", confirm, peter, strings.Replace(right, "{", `{"reason":" ",`, 1)), http.StatusUnprocessableEntity, v1.CodeNoReason)
	f.operator = peter
	wantStatus(t, f.asked("POST", confirm, right, v1.ReasonHeader, "seen in the rack"), http.StatusOK)
	var both []string
	for _, e := range entries(t, f.site) {
		if e.Reason != "" {
			both = append(both, e.Actor+": "+e.Reason)
		}
	}
	both = slices.Compact(both)
	if want := []string{"olga: board replaced", "peter: seen in the rack"}; !slices.Equal(both, want) {
		t.Errorf("reasons of both persons: %q, want %q", both, want)
	}
}

// TestReasonInBodySuffices: where a reason is demanded, the one of the body counts.
func TestReasonInBodySuffices(t *testing.T) {
	t.Parallel()
	f := answering(t, func(o *api.Options) { o.RequireReason = []string{rules.TakeAway} })
	f.site.Import("racks: [{id: r1}]\nhosts: []\n")
	wantStatus(t, f.asked("DELETE", "/v1/inventory/equipment/rack/r1", `{"reason":"sold"}`), http.StatusNoContent)
	if got, want := reasonsOf(t, f.site, "inventory.remove"), []string{"olga: sold"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// persons has the server know the operator and others, and returns the tokens of these.
func (f *fixture) persons(t *testing.T, names ...string) map[string]string {
	t.Helper()
	tokens, file := map[string]string{}, "tokens:\n"
	for _, name := range append([]string{"olga"}, names...) {
		token, digest := credential.New()
		tokens[name] = token
		file += fmt.Sprintf("- {name: %s, role: operator, sha256: %s}\n", name, digest)
	}
	known, err := credential.Parse("tokens.yaml", []byte(file))
	fatal(t, err)
	f.server.SetTokens(known)
	f.operator = tokens["olga"]
	return tokens
}

// TestSurfaceOfUFMDemandsReasons: it is no way around the demand, and its changes have their reason in the log.
func TestSurfaceOfUFMDemandsReasons(t *testing.T) {
	t.Parallel()
	f := answering(t, func(o *api.Options) {
		o.UFM, o.RequireReason = &ufm.Settings{Prefix: 0xfe80000000000000, MTU: 4096}, []string{rules.TakeAway}
	})
	wantStatus(t, f.asked("POST", "/v1/tenants", `{"name":"acme"}`), http.StatusCreated)
	wantStatus(t, f.asked("POST", "/v1/clusters", `{"name":"train","tenant":"acme"}`), http.StatusCreated)
	c, err := f.site.Service().Tenancy().Cluster(t.Context(), "train")
	fatal(t, err)
	path := fmt.Sprintf("/ufmRest/resources/pkeys/0x%x", uint16(c.PKey))
	for name, headers := range map[string][]string{"none": nil, "a broken one": {v1.ReasonHeader, "a%0Ab"}} {
		if w := f.asked("DELETE", path, "", headers...); w.Code != 422 && w.Code != 400 || !strings.Contains(w.Body.String(), v1.ReasonHeader) {
			t.Errorf("%s: %d: %s", name, w.Code, w.Body)
		}
	}
	for _, taking := range [][2]string{
		{"PUT", "/resources/pkeys"}, {"POST", "/actions/remove_guids_from_pkey"}, {"DELETE", "/resources/pkeys/0x7/guids/1"}, {"DELETE", "/resources/pkeys/0x7/hosts/h1"},
	} {
		if w := f.asked(taking[0], "/ufmRest"+taking[1], ""); w.Code != 422 || !strings.Contains(w.Body.String(), v1.ReasonHeader) {
			t.Errorf("%v: %d: %s", taking, w.Code, w.Body)
		}
	}
	if w := f.asked("POST", "/ufmRest/resources/pkeys", ""); strings.Contains(w.Body.String(), v1.ReasonHeader) {
		t.Errorf("what only adds is refused: %s", w.Body)
	}
	if got := reasonsOf(t, f.site, "cluster.delete"); len(got) > 0 {
		t.Fatalf("deleted: %q", got)
	}
	wantStatus(t, f.asked("DELETE", path, "", v1.ReasonHeader, "job 7 ended"), http.StatusOK)
	if got, want := reasonsOf(t, f.site, "cluster.delete"), []string{"olga: job 7 ended"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSurfaceOfUFMDemandsReasonsOfAllChanges sends each change of it without a reason, and with one.
func TestSurfaceOfUFMDemandsReasonsOfAllChanges(t *testing.T) {
	t.Parallel()
	f := answering(t, func(o *api.Options) {
		o.UFM, o.RequireReason = &ufm.Settings{Prefix: 0xfe80000000000000, MTU: 4096}, []string{rules.Change}
	})
	for _, change := range [][2]string{
		{"POST", "/resources/pkeys"},
		{"POST", "/resources/pkeys/add"},
		{"POST", "/actions/add_guids_to_pkey"},
		{"POST", "/resources/pkeys/hosts"},
		{"PUT", "/resources/pkeys"},
		{"PUT", "/resources/pkeys/qos_conf"},
		{"DELETE", "/resources/pkeys/0x7"},
		{"POST", "/resources/pkeys/"},
	} {
		if w := f.asked(change[0], "/ufmRest"+change[1], ""); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), v1.ReasonHeader) {
			t.Errorf("%v: %d: %s", change, w.Code, w.Body)
		}
		if w := f.asked(change[0], "/ufmRest"+change[1], "", v1.ReasonHeader, "job 7"); strings.Contains(w.Body.String(), v1.ReasonHeader) {
			t.Errorf("%v with a reason: %d: %s", change, w.Code, w.Body)
		}
	}
}
