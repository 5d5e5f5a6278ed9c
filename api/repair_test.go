package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/apitest"
	"portcullis/api/credential"
	"portcullis/api/hostrecord"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// TestRepairsOverTheAPI: the tokens of two operators are two persons. No request that either sends alone, in whatever form,
// assigns a known host another EK.
func TestRepairsOverTheAPI(t *testing.T) {
	now := func() time.Time { return attesttest.Epoch }
	site := admissiontest.New(t, func(o *admission.Options) { o.Store, o.Now = store.New(memory.New(now), ""), now })
	svc := site.Service()
	f := newFixture(t, unlimited, func(o *api.Options) { o.Backend, o.Tenancy = apitest.Real{Service: svc}.Parts() })
	tokens, file := map[string]string{}, "tokens:\n"
	for _, name := range []string{"olga", "peter"} {
		token, digest := credential.New()
		tokens[name] = token
		file += fmt.Sprintf("- {name: %s, role: operator, sha256: %s}\n", name, digest)
	}
	known, err := credential.Parse("tokens.yaml", []byte(file))
	fatal(t, err)
	f.server.SetTokens(known)
	upload := func(who, ek, query, more string) (int, string) {
		text := fmt.Sprintf("hosts: [{id: h1, ek_sha256: %q, hcas: [{node_guid: 0x10, ports: [{port: 1, guid: 0x11}]}]}]", strings.Repeat(ek, 64))
		body, err := json.Marshal(v1.InventoryUpload{Files: []v1.InventoryFile{{Name: "hosts.yaml", Content: text}}})
		fatal(t, err)
		w := f.do("POST", "/v1/inventory/import"+query, tokens[who], strings.TrimSuffix(string(body), "}")+more+"}")
		return w.Code, w.Body.String()
	}
	wantEK := func(ek string) {
		t.Helper()
		h, err := svc.Host(t.Context(), "h1")
		fatal(t, err)
		if h.EK != strings.Repeat(ek, 64) {
			t.Errorf("h1 has EK %.4s, want %s...", h.EK, ek)
		}
	}
	for _, ek := range []string{"a", "b"} { // registered, and corrected before it was known
		if code, body := upload("olga", ek, "", ""); code != 200 {
			t.Fatalf("%d: %s", code, body)
		}
	}
	_, err = site.Store.Update(t.Context(), func(tx *store.Tx) error {
		return hostrecord.Verdicts().Put(tx, "h1", attest.Verdict{OK: true, Facts: attest.Facts{Host: "h1"}})
	})
	fatal(t, err)

	if code, body := upload("olga", "c", "", ""); code != 409 || !strings.Contains(body, "repair_needed") || !strings.Contains(body, "host h1: ek_sha256: was bbbb") {
		t.Errorf("%d: %s", code, body)
	}
	if code, body := upload("olga", "c", "", `,"ticket":"RMA-7"`); code != 409 || !strings.Contains(body, "repair_needed") {
		t.Errorf("without a reason: %d: %s", code, body)
	}
	if code, body := upload("olga", "c", "?dry_run=true", ""); code != 200 || !strings.Contains(body, `"staged":[{"host":"h1"`) {
		t.Errorf("dry run: %d: %s", code, body)
	}
	wantProblem(t, f.do("GET", "/v1/inventory/repairs/h1", tokens["olga"], ""), 404, "repair_unknown")
	code, body := upload("olga", "c", "", `,"ticket":"RMA-7","reason":"board replaced"`)
	var report v1.ImportReport
	if err := json.Unmarshal([]byte(body), &report); code != 200 || err != nil || len(report.Staged) != 1 || report.Staged[0].By != "olga" || len(report.Changed) != 0 {
		t.Fatalf("staged: %d: %s", code, body)
	}
	wantEK("b")
	const confirm = "/v1/inventory/repairs/h1/confirm"
	right := fmt.Sprintf(`{"digest":%q}`, report.Staged[0].Digest)
	wantProblem(t, f.do("POST", confirm, tokens["olga"], right), 409, "two_persons")
	wantProblem(t, f.do("POST", confirm, tokens["peter"], `{"digest":"000000000000"}`), 412, "repair_changed")
	wantProblem(t, f.do("POST", confirm, tokens["peter"], `{}`), 422, v1.CodeInvalid)
	wantEK("b")
	if w := f.do("GET", "/v1/inventory/repairs", tokens["peter"], ""); w.Code != 200 || !strings.Contains(w.Body.String(), report.Staged[0].Digest) {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if w := f.do("POST", confirm, tokens["peter"], right); w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	wantEK("c")
	wantProblem(t, f.do("POST", "/v1/inventory/repairs/h1/cancel", tokens["olga"], `{"reason":"late"}`), 404, "repair_unknown")
	if w := f.do("GET", "/v1/inventory/denied", tokens["olga"], ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"ek":"`+strings.Repeat("b", 64)+`"`) || !strings.Contains(w.Body.String(), `"by":"peter"`) {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}
