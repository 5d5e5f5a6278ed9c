package api_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api"
	"portcullis/api/ifmatch"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

// orders is a HostRemover that records its orders. It has host h1, in assignment 4.
type orders struct{ got []string }

func (o *orders) host(ctx context.Context, id string) (*v1.Host, error) {
	if id != "h1" {
		return nil, &refusal.Error{Code: "host_unknown", Status: refusal.NotFound, Detail: "no host " + id}
	}
	if !ifmatch.Matches(ctx, "4") {
		return nil, &refusal.Error{Code: v1.CodeChanged, Status: refusal.Changed, Detail: "assignment 4 holds"}
	}
	return &v1.Host{ID: id, Epoch: 4}, nil
}

func (o *orders) Host(ctx context.Context, id string) (*v1.Host, error) { return o.host(ctx, id) }

func (o *orders) Release(ctx context.Context, actor, id string) (*v1.Host, error) {
	h, err := o.host(ctx, id)
	if err == nil {
		o.got = append(o.got, "release "+id+" by "+actor)
	}
	return h, err
}

func (o *orders) Fence(ctx context.Context, actor, id string, f v1.Fence) (*v1.Host, error) {
	h, err := o.host(ctx, id)
	if err == nil {
		o.got = append(o.got, "fence "+id+" by "+actor+": "+f.Reason)
	}
	return h, err
}

// overSocket serves o on a unix socket, and returns what asks it.
func overSocket(t *testing.T, o api.LocalOptions) (ask func(method, path, ifMatch, body string) (status int, answer, tag string)) {
	t.Helper()
	o.Version, o.Log, o.Registry = "v0", slog.New(slog.DiscardHandler), prometheus.NewPedanticRegistry()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- api.NewLocal(o).ServeLocal(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	t.Cleanup(c.CloseIdleConnections)
	return func(method, path, ifMatch, body string) (int, string, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://socket"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if ifMatch != "" {
			r.Header.Set("If-Match", ifMatch)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text), resp.Header.Get("ETag")
	}
}

// TestSocketRemovesHosts: a socket takes hosts off their clusters, by the user whose process
// asks, under the conditions that a request names, and does nothing else to hosts.
func TestSocketRemovesHosts(t *testing.T) {
	o := &orders{}
	ask := overSocket(t, api.LocalOptions{Fabric: observer(t), Hosts: o})
	for _, tt := range []struct {
		method, path, match, body string
		status                    int
		has                       string
	}{
		{"GET", "/v1/hosts/h1", "", "", 200, `"h1"`},
		{"GET", "/v1/hosts/h2", "", "", 404, "host_unknown"},
		{"GET", "/v1/hosts", "", "", 404, "takes single hosts off it"},
		{"POST", "/v1/hosts/h1/release", "", "", 428, "GET /v1/hosts/h1 and send its ETag"},
		{"POST", "/v1/hosts/h1/release", "*", "", 202, `"h1"`},
		{"POST", "/v1/hosts/h1/release", `"4"`, "", 202, `"h1"`},
		{"POST", "/v1/hosts/h1/release", `"3"`, "", 412, "assignment 4 holds"},
		{"POST", "/v1/hosts/h1/fence", `"3"`, `{"reason": "late"}`, 412, "assignment 4 holds"},
		{"POST", "/v1/hosts/h1/fence", "", `{"reason": "noisy"}`, 202, `"h1"`},
		{"POST", "/v1/hosts/h1/fence", "", `{"reason": ""}`, 422, "reason"},
		{"POST", "/v1/hosts/h1/fence", "", `{}`, 422, "reason"},
		{"POST", "/v1/hosts/h1/fence", "", `{"reason": "` + strings.Repeat("x", 121) + `"}`, 422, "reason"},
		{"POST", "/v1/hosts/h1/fence", "", `{"reason": "x", "until": "never"}`, 422, "until"},
		{"POST", "/v1/hosts/h2/fence", "", `{"reason": "x"}`, 404, "host_unknown"},
		{"POST", "/v1/hosts/h1/assign", "", `{"cluster": "acme-1"}`, 404, "takes single hosts off it"},
		{"PUT", "/v1/hosts/h1/assignment", "", `{"cluster": "acme-1"}`, 404, "takes single hosts off it"},
	} {
		status, answer, tag := ask(tt.method, tt.path, tt.match, tt.body)
		if status != tt.status || !strings.Contains(answer, tt.has) {
			t.Errorf("%s %s %s: %d %s, want %d with %q", tt.method, tt.path, tt.body, status, answer, tt.status, tt.has)
		}
		if status < 300 && tag != `"4"` {
			t.Errorf("%s %s: ETag %s", tt.method, tt.path, tag)
		}
	}
	actor := fmt.Sprintf("local socket, uid %d", os.Geteuid())
	want := []string{"release h1 by " + actor, "release h1 by " + actor, "fence h1 by " + actor + ": noisy"}
	if !slices.Equal(o.got, want) {
		t.Errorf("ordered %q, want %q", o.got, want)
	}
}

// TestSocketThatOnlyShows: without a HostRemover nothing is done to hosts.
func TestSocketThatOnlyShows(t *testing.T) {
	ask := overSocket(t, api.LocalOptions{Fabric: observer(t)})
	for _, path := range []string{"/v1/hosts/h1/release", "/v1/hosts/h1/fence"} {
		if status, answer, _ := ask("POST", path, "", `{"reason": "x"}`); status != 404 || !strings.Contains(answer, "shows the fabric and nothing else") {
			t.Errorf("POST %s: %d %s", path, status, answer)
		}
	}
}

// TestServiceFences: the service takes a fence of an operator, by its name, and of no other role; an outdated version is refused.
func TestServiceFences(t *testing.T) {
	t.Parallel()
	o := &orders{}
	f := newFixture(t, unlimited, func(opts *api.Options) { opts.Remover = o })
	const path, body = "/v1/hosts/h1/fence", `{"reason": "noisy"}`
	wantProblem(t, f.do("POST", path, f.viewer, body), 403, v1.CodeForbidden)
	wantProblem(t, f.do("POST", path, "", body), 401, v1.CodeUnauthenticated)
	wantProblem(t, f.do("POST", path, f.operator, "{}"), 422, v1.CodeInvalid)
	if w := f.do("POST", path, f.operator, body); w.Code != 202 || w.Header().Get("ETag") != `"4"` {
		t.Errorf("a fence is answered with %d, %s", w.Code, w.Body)
	}
	if want := []string{"fence h1 by olga: noisy"}; !slices.Equal(o.got, want) {
		t.Errorf("ordered: %q, want %q", o.got, want)
	}
	wantProblem(t, newFixture(t, unlimited).do("POST", path, f.operator, body), 401, v1.CodeUnauthenticated)
	bare := newFixture(t, unlimited)
	wantProblem(t, bare.do("POST", path, bare.operator, body), 503, v1.CodeSMElsewhere)
}
