package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/credential"
	"portcullis/api/refusal"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// receiptIssuer records the requests that it receives.
type receiptIssuer struct{ said []string }

func (r *receiptIssuer) Issue(ctx context.Context, actor string, q v1.ReceiptRequest) ([]byte, error) {
	r.said = append(r.said, fmt.Sprintf("%s %s %d %t", actor, q.Tenant, q.MaxAgeSeconds, tenancy.Confined(ctx)))
	if q.Tenant == "busy" {
		return nil, refusal.New(refusal.Conflict, "verify_running", "ask again", "the fabric is being read")
	}
	return []byte("{\"payload\":\"e30=\"}\n"), nil
}

func (r *receiptIssuer) Keys(context.Context) (*v1.ReceiptKeys, error) {
	return &v1.ReceiptKeys{Keys: []v1.ReceiptKey{{ID: "ab", PEM: "PUBLIC"}}}, nil
}

func (r *receiptIssuer) Rotate(_ context.Context, actor string, in v1.ReceiptRotation) (*v1.ReceiptKeys, error) {
	r.said = append(r.said, fmt.Sprintf("%s rotates: %s %t", actor, in.Reason, in.Drop))
	return r.Keys(context.Background())
}

func (r *receiptIssuer) Checkpoint(context.Context) ([]byte, error) {
	return []byte("log\n3\nabc\n"), nil
}

func (r *receiptIssuer) LogProof(_ context.Context, digest string) ([]byte, error) {
	return []byte("proof of " + digest), nil
}

func (r *receiptIssuer) LogConsistency(_ context.Context, from, to int64) (*v1.ReceiptLogConsistency, error) {
	return &v1.ReceiptLogConsistency{From: from, To: to, Hashes: []string{"abc="}}, nil
}

func (r *receiptIssuer) LogTile(_ context.Context, level int, number int64) ([]byte, error) {
	return []byte{byte(level), byte(number), 0xff}, nil
}

// TestReceiptLog: the log of receipts is shown without a credential.
func TestReceiptLog(t *testing.T) {
	t.Parallel()
	f, without := newFixture(t, func(o *api.Options) { o.Receipts = &receiptIssuer{} }), newFixture(t)
	digest := strings.Repeat("0f", 32)
	for path, want := range map[string][2]string{
		"/v1/receipts/log/checkpoint":              {"text/plain; charset=utf-8", "log\n3\nabc\n"},
		"/v1/receipts/log/proofs/" + digest:        {"text/plain; charset=utf-8", "proof of " + digest},
		"/v1/receipts/log/consistency?from=2&to=3": {"application/json", `"hashes":["abc="]`},
		"/v1/receipts/log/tiles/1/7":               {"application/octet-stream", "\x01\x07\xff"},
	} {
		w := f.do("GET", path, "", "")
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != want[0] || !strings.Contains(w.Body.String(), want[1]) {
			t.Errorf("%s: %d %v %q", path, w.Code, w.Header(), w.Body)
		}
		wantProblem(t, without.do("GET", path, "", ""), 503, v1.CodeUnavailable)
	}
	for _, path := range []string{"proofs/0f", "consistency", "consistency?from=0&to=3", "tiles/5/0", "tiles/0/-1", "tiles/0/a"} {
		if w := f.do("GET", "/v1/receipts/log/"+path, "", ""); w.Code < 400 || w.Code >= 500 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestReceipts(t *testing.T) {
	t.Parallel()
	r := &receiptIssuer{}
	f := newFixture(t, func(o *api.Options) { o.Receipts = r })
	wantProblem(t, f.do("POST", "/v1/receipts", f.viewer, "{}"), 403, v1.CodeForbidden)
	wantProblem(t, f.do("POST", "/v1/receipts/keys/rotate", f.viewer, `{"reason":"x"}`), 403, v1.CodeForbidden)
	var text strings.Builder
	text.WriteString("tokens:\n")
	tokens := map[string]string{}
	for name, what := range map[string]string{
		"anna": "role: auditor", "acme": "role: tenant, tenants: [acme]", "slurm": "role: operator, p_keys: [0x0100-0x01ff]", "olga": "role: operator",
	} {
		token, digest := credential.New()
		tokens[name] = token
		fmt.Fprintf(&text, "- {name: %s, %s, sha256: %s}\n", name, what, digest)
	}
	parsed, err := credential.Parse("tokens.yaml", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	f.server.SetTokens(parsed)
	wantProblem(t, f.do("POST", "/v1/receipts", tokens["slurm"], "{}"), 403, v1.CodeForbidden)
	wantProblem(t, f.do("POST", "/v1/receipts", "", "{}"), 401, v1.CodeUnauthenticated)
	wantProblem(t, f.do("POST", "/v1/receipts/keys/rotate", tokens["acme"], `{"reason":"x"}`), 403, v1.CodeForbidden)
	for _, name := range []string{"anna", "acme", "olga"} {
		w := f.do("POST", "/v1/receipts", tokens[name], `{"tenant":"acme","max_age_seconds":600}`)
		if h := w.Header(); w.Code != http.StatusOK || w.Body.String() != "{\"payload\":\"e30=\"}\n" || h.Get("Cache-Control") != "no-store" ||
			h.Get("Content-Type") != "application/vnd.dsse.envelope.v1+json" {
			t.Errorf("%s: %d %v %q", name, w.Code, h, w.Body)
		}
	}
	wantProblem(t, f.do("POST", "/v1/receipts", tokens["olga"], `{"tenant":"busy"}`), 409, "verify_running")
	if w := f.do("POST", "/v1/receipts/keys/rotate", tokens["olga"], `{"reason":"stolen","drop":true}`); w.Code != http.StatusOK {
		t.Errorf("rotate: %d %s", w.Code, w.Body)
	}
	if w := f.do("GET", "/v1/receipts/keys", "", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"pem":"PUBLIC"`) {
		t.Errorf("keys: %d %s", w.Code, w.Body)
	}
	want := "anna acme 600 false, acme acme 600 true, olga acme 600 false, olga busy 0 false, olga rotates: stolen true"
	if got := strings.Join(r.said, ", "); got != want {
		t.Errorf("asked: %q, want %q", got, want)
	}
	without := newFixture(t)
	wantProblem(t, without.do("POST", "/v1/receipts", without.operator, "{}"), 503, v1.CodeUnavailable)
	wantProblem(t, without.do("GET", "/v1/receipts/keys", "", ""), 503, v1.CodeUnavailable)
}
