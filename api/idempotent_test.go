package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/idempotency"
	v1 "portcullis/api/v1"
)

// answering is a fixture that keeps first answers in the store of its site.
func answering(t *testing.T, edit ...func(*api.Options)) *fixture {
	t.Helper()
	site := apitest.NewSite(t)
	keep := func(o *api.Options) {
		o.Answers = idempotency.New(site.Store, time.Now, idempotency.DefaultRate())
	}
	return fixtureOn(t, site, append([]func(*api.Options){unlimited, keep}, edit...)...)
}

// named sends a request of the operator that names itself.
func (f *fixture) named(key, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+f.operator)
	r.Header.Set("Idempotency-Key", key)
	if body != "" {
		r.Header.Set("Content-Type", bodyType(method))
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return f.send(r)
}

func wantStatus(t *testing.T, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("status %d, want %d; body: %s", w.Code, status, w.Body)
	}
}

func TestRepeatedRequestIsAnsweredAsBefore(t *testing.T) {
	t.Parallel()
	f := answering(t)
	first := f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`)
	wantStatus(t, first, http.StatusCreated)
	if first.Header().Get("Idempotency-Replayed") != "" {
		t.Error("the first answer says that it is a repetition")
	}
	actors := len(f.site.Actors())
	again := f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`)
	wantStatus(t, again, http.StatusCreated)
	if again.Body.String() != first.Body.String() {
		t.Errorf("the repetition is answered %s, want %s", again.Body, first.Body)
	}
	for _, name := range []string{"Content-Type", "Etag"} {
		if got, want := again.Header().Get(name), first.Header().Get(name); got != want || want == "" {
			t.Errorf("%s of the repetition is %q, want %q", name, got, want)
		}
	}
	if again.Header().Get("Idempotency-Replayed") != "true" {
		t.Error("the repetition does not say that it is one")
	}
	if again.Header().Get("X-Request-Id") == first.Header().Get("X-Request-Id") {
		t.Error("both requests have the same id")
	}
	if got := len(f.site.Actors()); got != actors {
		t.Errorf("the repetition made %d changes", got-actors)
	}
	wantProblem(t, f.named("k2", "POST", "/v1/tenants", `{"name":"acme"}`), http.StatusConflict, "tenant_exists")
}

// TestRefusalIsRepeated sends a request again that was refused, after what it was refused for has changed.
func TestRefusalIsRepeated(t *testing.T) {
	t.Parallel()
	f := answering(t)
	body := `{"name":"train","tenant":"acme"}`
	first := f.named("k1", "POST", "/v1/clusters", body)
	wantStatus(t, f.named("k2", "POST", "/v1/tenants", `{"name":"acme"}`), http.StatusCreated)
	again := f.named("k1", "POST", "/v1/clusters", body)
	if first.Code < 400 || again.Code != first.Code || again.Body.String() != first.Body.String() {
		t.Errorf("first %d %s, then %d %s; want the same refusal", first.Code, first.Body, again.Code, again.Body)
	}
	wantStatus(t, f.named("k3", "POST", "/v1/clusters", body), http.StatusCreated)
}

func TestKeyNamesOneRequest(t *testing.T) {
	t.Parallel()
	f := answering(t)
	wantStatus(t, f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`, "If-None-Match", "*"), http.StatusBadRequest)
	wantProblem(t, f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`), http.StatusConflict, idempotency.CodeReused)
	wantStatus(t, f.named("k2", "POST", "/v1/tenants", `{"name":"acme"}`), http.StatusCreated)
	others := map[string]*httptest.ResponseRecorder{
		"another body":    f.named("k2", "POST", "/v1/tenants", `{"name":"acm"}`),
		"another path":    f.named("k2", "POST", "/v1/clusters", `{"name":"acme"}`),
		"another method":  f.named("k2", "DELETE", "/v1/tenants/acme", ""),
		"another version": f.named("k2", "POST", "/v1/tenants?a=b", `{"name":"acme"}`),
	}
	for name, w := range others {
		p := wantProblem(t, w, http.StatusConflict, idempotency.CodeReused)
		if !strings.Contains(p.Detail, "k2") {
			t.Errorf("%s: the problem does not name the key: %s", name, p.Detail)
		}
	}
	if got := f.do("GET", "/v1/tenants/acme", f.operator, ""); got.Code != http.StatusOK {
		t.Errorf("the tenant is gone: %s", got.Body)
	}
}

// TestVersionBelongsToTheRequest repeats a deletion under a condition: it is answered as before, although no object of that version
// is there any more.
func TestVersionBelongsToTheRequest(t *testing.T) {
	t.Parallel()
	f := answering(t)
	made := f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`)
	wantStatus(t, made, http.StatusCreated)
	tag := made.Header().Get("Etag")
	wantStatus(t, f.named("k2", "DELETE", "/v1/tenants/acme", "", "If-Match", tag), http.StatusNoContent)
	wantStatus(t, f.named("k2", "DELETE", "/v1/tenants/acme", "", "If-Match", tag), http.StatusNoContent)
	wantProblem(t, f.named("k2", "DELETE", "/v1/tenants/acme", "", "If-Match", `"1"`), http.StatusConflict, idempotency.CodeReused)
}

func TestConcurrentRepetitions(t *testing.T) {
	t.Parallel()
	f := answering(t)
	const callers = 8
	answers := make([]*httptest.ResponseRecorder, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { answers[i] = f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`) })
	}
	all.Wait()
	made := 0
	for _, w := range answers {
		switch {
		case w.Code == http.StatusCreated && w.Header().Get("Idempotency-Replayed") == "":
			made++
		case w.Code == http.StatusCreated:
		default:
			wantProblem(t, w, http.StatusConflict, idempotency.CodePending)
		}
	}
	if made != 1 {
		t.Errorf("%d of %d repetitions were carried out, want 1", made, callers)
	}
}

// TestUnknownOutcomeIsNotRepeated fails a request in the store: whether the change was made is open.
func TestUnknownOutcomeIsNotRepeated(t *testing.T) {
	t.Parallel()
	fail := &failsLater{}
	f := answering(t, func(o *api.Options) { fail.FirstAnswers, o.Answers = o.Answers, fail })
	fail.fail = func() { f.site.Fail(errors.New("disk on fire")) }
	w := f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`)
	if w.Code < 500 {
		t.Fatalf("status %d, want a fault of the service; body: %s", w.Code, w.Body)
	}
	f.site.Fail(nil)
	fail.fail = func() {}
	wantProblem(t, f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`), http.StatusConflict, idempotency.CodePending)
	wantStatus(t, f.named("k2", "POST", "/v1/tenants", `{"name":"acme"}`), http.StatusCreated)
}

// failsLater has the services fail once a request has begun.
type failsLater struct {
	api.FirstAnswers
	fail func()
}

// Begin implements api.FirstAnswers.
func (l *failsLater) Begin(ctx context.Context, r *idempotency.Request) (*idempotency.Answer, error) {
	first, err := l.FirstAnswers.Begin(ctx, r)
	l.fail()
	return first, err
}

// TestLongAnswerIsNotKept repeats an import whose answer was long.
func TestLongAnswerIsNotKept(t *testing.T) {
	t.Parallel()
	f := answering(t, func(o *api.Options) { o.Answers = longAnswers{o.Answers} })
	wantStatus(t, f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`), http.StatusCreated)
	wantProblem(t, f.named("k1", "POST", "/v1/tenants", `{"name":"acme"}`), http.StatusConflict, idempotency.CodeNotKept)
}

// longAnswers makes every answer one byte longer than those that are kept.
type longAnswers struct{ api.FirstAnswers }

// Finish implements api.FirstAnswers.
func (l longAnswers) Finish(ctx context.Context, r *idempotency.Request, a idempotency.Answer) error {
	a.Body = make([]byte, idempotency.MaxBody+1)
	return l.FirstAnswers.Finish(ctx, r, a)
}

// TestKeysAreNeverIgnored sends a key to every operation: those that do not document it refuse it, unless they only read.
func TestKeysAreNeverIgnored(t *testing.T) {
	t.Parallel()
	f := answering(t, func(o *api.Options) { o.Limits.Attestations = o.Limits.Requests })
	kept := 0
	for _, d := range operations(t, f) {
		switch {
		case d.method == "GET":
			if d.has("Idempotency-Key", "header") {
				t.Errorf("%s reads, and documents Idempotency-Key", d.ID)
			}
		case d.has("Idempotency-Key", "header"):
			kept++
			for _, bad := range []string{"", "a b", "é", strings.Repeat("x", 129)} {
				wantProblem(t, f.named(bad, d.method, d.path, ""), http.StatusBadRequest, v1.CodeBadRequest)
			}
			wantProblem(t, f.named("a", d.method, d.path, "", "Idempotency-Key", "b"), http.StatusBadRequest, v1.CodeBadRequest)
		default:
			p := wantProblem(t, f.named("a", d.method, d.path, ""), http.StatusBadRequest, v1.CodeCondition)
			if !strings.Contains(p.Detail, "Idempotency-Key") {
				t.Errorf("%s: the problem does not name the header: %s", d.ID, p.Detail)
			}
		}
	}
	if kept < 30 {
		t.Errorf("%d operations keep their first answer, want all that change something", kept)
	}
	if got := f.site.Actors(); len(got) > 0 {
		t.Errorf("changes were made: %v", got)
	}
}
