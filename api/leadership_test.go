package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"portcullis/api"
	v1 "portcullis/api/v1"
)

// led is the leadership of an instance that stands by.
type led struct {
	peer   *api.Peer
	actor  string
	reason string
}

func (l *led) Leadership(context.Context) (v1.Leadership, error) {
	return v1.Leadership{Leader: "b", Epoch: 7}, nil
}

func (l *led) StepDown(_ context.Context, actor, reason string) error {
	l.actor, l.reason = actor, reason
	return nil
}

func (l *led) Leader(context.Context) (*api.Peer, error) { return l.peer, nil }

// TestPassedOn: an instance passes to the leader what only that one can answer, with the
// caller's credential, and checks the credential before. It trusts the one public key that
// the leader recorded, passes nothing on twice, and answers all else itself.
func TestPassedOn(t *testing.T) {
	var mu sync.Mutex
	var got []*http.Request // that came whole
	var body string
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(got) }
	leader := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return // it was cut off
		}
		mu.Lock()
		defer mu.Unlock()
		got, body = append(got, r), string(b)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "theirs")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, `{"from":"the leader"}`)
	}))
	t.Cleanup(leader.Close)
	u, err := url.Parse(leader.URL)
	if err != nil {
		t.Fatal(err)
	}
	pin := sha256.Sum256(leader.Certificate().RawSubjectPublicKeyInfo)
	l := &led{peer: &api.Peer{Name: "b", URL: u, Pin: pin[:]}}
	f := newFixture(t, func(o *api.Options) { o.Leadership = l })

	w := f.do("GET", "/v1/fabric/ports?limit=3", f.viewer, "")
	if w.Code != http.StatusTeapot || w.Body.String() != `{"from":"the leader"}` || count() != 1 {
		t.Fatalf("%d %s, %d requests", w.Code, w.Body, count())
	}
	if ids := w.Header().Values("X-Request-Id"); len(ids) != 1 || ids[0] == "theirs" {
		t.Errorf("request ids %q", ids)
	}
	if r := got[0]; r.URL.RequestURI() != "/v1/fabric/ports?limit=3" || r.Header.Get("Authorization") != "Bearer "+f.viewer || r.Header.Get("Portcullis-Forwarded") == "" {
		t.Errorf("the leader got %s with %v", r.URL, r.Header)
	}
	if w := f.do("POST", "/v1/sm/step-down", f.operator, `{"reason":"repair"}`); w.Code != http.StatusTeapot || body != `{"reason":"repair"}` {
		t.Errorf("%d, the leader got %q", w.Code, body)
	}
	before := count()
	wantProblem(t, f.do("GET", "/v1/fabric/ports", "", ""), 401, v1.CodeUnauthenticated)
	wantProblem(t, f.do("POST", "/v1/sm/step-down", f.viewer, `{"reason":"repair"}`), 403, v1.CodeForbidden)
	wantProblem(t, f.do("POST", "/v1/sm/step-down", f.operator, `{"reason":"`+strings.Repeat("x", 70<<10)+`"}`), 413, v1.CodeTooLarge)
	if w := f.do("GET", "/v1/hosts", f.viewer, ""); w.Code != 200 {
		t.Errorf("hosts: %d", w.Code)
	}
	var sm v1.SM
	if w := f.do("GET", "/v1/sm", f.viewer, ""); json.Unmarshal(w.Body.Bytes(), &sm) != nil || sm.Leader != "b" || sm.Epoch != 7 {
		t.Errorf("sm: %d %s", w.Code, w.Body)
	}
	again := httptest.NewRequest("GET", "/v1/fabric/ports", nil)
	again.Header.Set("Authorization", "Bearer "+f.viewer)
	again.Header.Set("Portcullis-Forwarded", "c")
	wantProblem(t, f.send(again), 503, v1.CodeNoLeader)
	if n := count(); n != before {
		t.Errorf("%d requests came through that should not", n-before)
	}

	l.peer = &api.Peer{Name: "b", URL: u, Pin: make([]byte, sha256.Size)}
	wantProblem(t, f.do("GET", "/v1/fabric/ports", f.viewer, ""), 503, v1.CodeNoLeader)
	if count() != before {
		t.Error("a server with another public key was sent a credential")
	}

	// The leader answers itself; the only instance has no successor.
	l.peer = nil
	wantProblem(t, f.do("GET", "/v1/fabric/ports", f.viewer, ""), 503, v1.CodeSMElsewhere)
	if w := f.do("POST", "/v1/sm/step-down", f.operator, `{"reason":"repair"}`); w.Code != 204 || l.actor != "olga" || l.reason != "repair" {
		t.Errorf("%d, %q by %q", w.Code, l.reason, l.actor)
	}
	only := newFixture(t)
	wantProblem(t, only.do("POST", "/v1/sm/step-down", only.operator, `{"reason":"repair"}`), 409, v1.CodeOnlyInstance)
}
