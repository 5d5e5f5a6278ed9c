package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api"
	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	v1 "portcullis/api/v1"
)

// observer was shown seentest.Tree.
func observer(t *testing.T) *query.Observer {
	t.Helper()
	o := query.New(query.Options{})
	o.OnView(seentest.Run(t, seentest.Tree, seentest.Grants(), nil).Settled())
	return o
}

// TestLocalServerShowsTheFabricOnly: no credential opens it, and nothing but
// the fabric is there.
func TestLocalServerShowsTheFabricOnly(t *testing.T) {
	o := observer(t)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(o)
	s := api.NewLocal(api.LocalOptions{Fabric: o, Version: "v0", Log: slog.New(slog.DiscardHandler), Registry: registry})
	srv := httptest.NewServer(s)
	defer srv.Close()
	for path, status := range map[string]int{
		"/v1/fabric/overview": 200, "/v1/fabric/nodes": 200, "/v1/fabric/ports?limit=1": 200, "/v1/fabric/links": 200,
		"/v1/fabric/load": 409, "/v1/fabric/routes?from=sm&to=leaf1": 200, "/v1/fabric/lfts": 200, "/v1/fabric/lfts/leaf1": 200,
		"/v1/fabric/dumps/ibnetdiscover": 200, "/v1/sm": 200, "/v1/sm/progress": 200, "/metrics": 200, "/metrics/fabric": 200,
		"/livez": 200, "/version": 200,
		"/v1/hosts": 404, "/v1/tenants": 404, "/v1/fabric": 404, "/v1/attest/status": 404,
		"/v1/fabric/ports?limit=0": 422, "/v1/fabric/ports?colour=red": 422, "/v1/fabric/routes": 422,
		"/v1/fabric/dumps/none": 422, "/v1/fabric/lfts/none": 404,
	} {
		resp, err := http.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != status || err != nil {
			t.Errorf("GET %s: %d, %v, want %d: %s", path, resp.StatusCode, err, status, body)
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/fabric/ports", strings.NewReader("{}")))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestDeviceMetricsNeedACredential: the names of all devices on the fabric are not for strangers.
func TestDeviceMetricsNeedACredential(t *testing.T) {
	f := newFixture(t)
	wantProblem(t, f.do("GET", "/metrics/fabric", "", ""), 401, v1.CodeUnauthenticated)
	wantProblem(t, f.do("GET", "/metrics/fabric", f.viewer, ""), 503, v1.CodeSMElsewhere)
	wantProblem(t, f.do("GET", "/v1/fabric/overview", f.viewer, ""), 503, v1.CodeSMElsewhere)
}

// halfway dumps a part and fails.
type halfway struct{ api.FabricReader }

func (halfway) Dump(string, string) (func(io.Writer) error, error) {
	return func(w io.Writer) error {
		_, _ = io.WriteString(w, "the first half")
		return errors.New("the disk of the other half")
	}, nil
}

func (halfway) SM(context.Context) (*v1.SM, error) { return &v1.SM{}, nil }

// TestHalfADumpIsNoDump: a dump that ends early ends the connection, so that no reader takes it for the whole.
func TestHalfADumpIsNoDump(t *testing.T) {
	s := api.NewLocal(api.LocalOptions{Fabric: halfway{}, Version: "v0", Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewPedanticRegistry()})
	srv := httptest.NewServer(s)
	defer srv.Close()
	resp, err := http.Get(srv.URL + "/v1/fabric/dumps/guid2lid")
	if err != nil {
		return // the connection ended before the answer began: as good
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("read %q without an error", body)
	}
}

// TestPagesOverHTTP: next leads on, and the last page has none.
func TestPagesOverHTTP(t *testing.T) {
	s := api.NewLocal(api.LocalOptions{Fabric: observer(t), Version: "v0", Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewPedanticRegistry()})
	after, total := "", 0
	for range 10 {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/fabric/nodes?limit=3&after="+after, nil))
		var page v1.Page[v1.FabricNode]
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		total += len(page.Items)
		if after = page.Next; after == "" {
			break
		}
	}
	if total != 8 || after != "" {
		t.Errorf("%d nodes, next %q; want 8 and none", total, after)
	}
}
