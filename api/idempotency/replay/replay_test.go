package replay_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/idempotency"
	"portcullis/api/idempotency/replay"
)

// TestFingerprint: each part that decides what a request does makes another request of it, and no other part does.
func TestFingerprint(t *testing.T) {
	request := func(edit func(*http.Request)) [32]byte {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/tenants?a=1", http.NoBody)
		r.Header.Set("Content-Type", "application/json")
		edit(r)
		return replay.Fingerprint(r, []byte(`{"name":"acme"}`))
	}
	first := request(func(*http.Request) {})
	for name, edit := range map[string]func(*http.Request){
		"method":   func(r *http.Request) { r.Method = http.MethodPut },
		"path":     func(r *http.Request) { r.URL.Path = "/v1/clusters" },
		"query":    func(r *http.Request) { r.URL.RawQuery = "a=2" },
		"type":     func(r *http.Request) { r.Header.Set("Content-Type", "application/merge-patch+json") },
		"reason":   func(r *http.Request) { r.Header.Set("Portcullis-Reason", "job 7") },
		"If-Match": func(r *http.Request) { r.Header.Set("If-Match", `"7"`) },
	} {
		if request(edit) == first {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
	if request(func(r *http.Request) { r.Header.Set("User-Agent", "x") }) != first {
		t.Error("another client has another fingerprint")
	}
	if replay.Fingerprint(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody), nil) == replay.Fingerprint(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody), []byte("x")) {
		t.Error("another body has the same fingerprint")
	}
}

// TestHeld: what is kept of an answer is what is sent again, and headers of one request stay with it.
func TestHeld(t *testing.T) {
	first := httptest.NewRecorder()
	h := replay.Hold(first)
	h.Header().Set("Etag", `"7"`)
	h.Header().Set("X-Request-Id", "1")
	h.WriteHeader(http.StatusCreated)
	h.WriteHeader(http.StatusOK) // the first one counts
	if _, err := io.WriteString(h, "made"); err != nil {
		t.Fatal(err)
	}
	a := h.Whole()
	want := idempotency.Answer{Status: http.StatusCreated, Header: map[string]string{"Etag": `"7"`}, Body: []byte("made")}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	again := httptest.NewRecorder()
	replay.Send(again, &a)
	if again.Code != http.StatusCreated || again.Body.String() != "made" || again.Header().Get("Etag") != `"7"` {
		t.Errorf("sent again: %d %v %q", again.Code, again.Header(), again.Body)
	}
}

func TestOutcome(t *testing.T) {
	for _, tt := range []struct {
		status          int
		body            string
		undone, unknown bool
	}{
		{200, "", false, false},
		{409, "", false, false},
		{422, `{"code":"reason_missing"}`, true, false},
		{422, `{"code":"invalid"}`, false, false},
		{422, "no JSON", false, false},
		{409, `{"code":"no_leader"}`, false, false},
		{428, "", true, false},
		{429, "", true, false},
		{500, `{"code":"internal"}`, false, true},
		{503, `{"code":"no_leader"}`, true, true},
		{503, "no JSON", false, true},
	} {
		a := &idempotency.Answer{Status: tt.status, Body: []byte(tt.body)}
		if replay.Undone(a) != tt.undone || replay.Unknown(a) != tt.unknown {
			t.Errorf("%d %s: undone %v, unknown %v", tt.status, tt.body, replay.Undone(a), replay.Unknown(a))
		}
	}
}
