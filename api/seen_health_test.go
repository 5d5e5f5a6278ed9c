package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

// marker records the marks that it receives.
type marker struct {
	api.KeyOperator
	actor string
	told  v1.HealthMark
}

func (k *marker) MarkHealth(_ context.Context, actor string, m v1.HealthMark) (*v1.FabricHealth, error) {
	if m.Place == "nowhere" {
		return nil, &refusal.Error{Code: "node_unknown", Status: refusal.NotFound, Detail: "no such node", Hint: "portcullis fabric nodes lists them"}
	}
	k.actor, k.told = actor, m
	return &v1.FabricHealth{At: m.Place, Mark: m.Mark, Unhealthy: true}, nil
}

// TestMarkHealth: operators may mark, and their marks carry their name.
func TestMarkHealth(t *testing.T) {
	const body = `{"place":"leaf1/7","mark":"unhealthy","reason":"dirty"}`
	o, k := observer(t), &marker{}
	f := newFixture(t, func(opt *api.Options) { opt.Fabric, opt.Operator = o, k })
	wantProblem(t, f.do("POST", "/v1/fabric/health", "", body), 401, v1.CodeUnauthenticated)
	wantProblem(t, f.do("POST", "/v1/fabric/health", f.viewer, body), 403, v1.CodeForbidden)
	wantProblem(t, f.do("POST", "/v1/fabric/health", f.operator, strings.Replace(body, "unhealthy", "odd", 1)), 422, v1.CodeInvalid)
	wantProblem(t, f.do("POST", "/v1/fabric/health", f.operator, strings.Replace(body, "leaf1/7", "nowhere", 1)), 404, "node_unknown")
	wantProblem(t, f.do("POST", "/v1/fabric/health", f.operator, strings.Replace(body, "dirty", strings.Repeat("x", 201), 1)), 422, v1.CodeInvalid)
	if k.actor != "" {
		t.Fatalf("%+v came through", k)
	}
	w := f.do("POST", "/v1/fabric/health", f.operator, body)
	var got v1.FabricHealth
	if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != 200 || err != nil || got.At != "leaf1/7" {
		t.Errorf("%d %v: %s", w.Code, err, w.Body)
	}
	if want := (v1.HealthMark{Place: "leaf1/7", Mark: "unhealthy", Reason: "dirty"}); k.actor != "olga" || k.told != want {
		t.Errorf("%s said %+v", k.actor, k.told)
	}
	if w := f.do("GET", "/v1/fabric/health", f.viewer, ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"items":[]`) {
		t.Errorf("list: %d %s", w.Code, w.Body)
	}
	elsewhere := newFixture(t)
	wantProblem(t, elsewhere.do("POST", "/v1/fabric/health", elsewhere.operator, body), 503, v1.CodeSMElsewhere)
}

// TestMarkHealthOverSocket: the socket of a subnet manager alone takes marks, that
// of a service only shows.
func TestMarkHealthOverSocket(t *testing.T) {
	o, k := observer(t), &marker{}
	for _, tt := range []struct {
		name     string
		operator api.FabricOperator
		want     int
	}{{"alone", k, 200}, {"service", nil, 409}} {
		s := api.NewLocal(api.LocalOptions{
			Fabric: o, Operator: tt.operator, Version: "v0", Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewPedanticRegistry(),
		})
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/v1/fabric/health", strings.NewReader(`{"place":"leaf1","mark":"none"}`))
		r.Header.Set("Content-Type", "application/json")
		if s.ServeHTTP(w, r); w.Code != tt.want {
			t.Errorf("%s: %d, want %d: %s", tt.name, w.Code, tt.want, w.Body)
		}
	}
	if k.told.Place != "leaf1" || k.actor != "" {
		t.Errorf("%s said %+v", k.actor, k.told)
	}
}
