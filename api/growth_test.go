package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/apitest"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// tight is a store that is short of room while short is true.
type tight struct {
	store.Backend
	short atomic.Bool
}

// Room implements store.Roomy.
func (b *tight) Room() error {
	if b.short.Load() {
		return store.ErrFull
	}
	return nil
}

// Commit refuses what grows while room is short, as the store of the service does.
func (b *tight) Commit(ctx context.Context, batch store.Batch) (int64, error) {
	if err := b.Room(); err != nil && store.IsGrowing(ctx) {
		return 0, err
	}
	return b.Backend.Commit(ctx, batch)
}

// TestShortStoreTakesRemovals: a store that is short of room takes no new tenant, no
// assignment and no inventory, and still a release and the end of a tenant.
func TestShortStoreTakesRemovals(t *testing.T) {
	t.Parallel()
	var room *tight
	site := admissiontest.New(t, func(o *admission.Options) {
		room = &tight{Backend: o.Store.Backend()}
		o.Store = store.New(room, "")
	})
	site.Expect("h1", fmt.Appendf(nil, `hosts:
- id: h1
  ek_sha256: %064x
  hcas:
  - {node_guid: 0x10, ports: [{port: 1, guid: 0x11, cable: 0x20/1}]}
`, 1))
	server := apitest.Start(t, apitest.Real{Service: site.Service()}, func(o *api.Options) { unlimited(o) })
	f := &fixture{server: server.API, operator: server.Operator}
	do := func(method, path, body string, want int) {
		t.Helper()
		match := ""
		if method == http.MethodDelete || strings.HasSuffix(path, "/release") {
			match = "*"
		}
		w := f.change(method, path, match, body)
		if w.Code != want {
			t.Errorf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, want)
		}
		if want == http.StatusServiceUnavailable && !strings.Contains(w.Body.String(), "store is full") {
			t.Errorf("%s %s does not name the cause: %s", method, path, w.Body)
		}
	}
	do(http.MethodPost, "/v1/tenants", `{"name":"spare"}`, http.StatusCreated)
	room.short.Store(true)
	do(http.MethodPost, "/v1/tenants", `{"name":"more"}`, http.StatusServiceUnavailable)
	do(http.MethodPost, "/v1/clusters", `{"name":"more","tenant":"spare"}`, http.StatusServiceUnavailable)
	do(http.MethodDelete, "/v1/tenants/spare", "", http.StatusNoContent)
	if h := site.Host("h1"); h.Cluster == "" {
		t.Fatalf("host %+v is in no cluster", h)
	}
	do(http.MethodPost, "/v1/hosts/h1/release", "", http.StatusAccepted)
	if h := site.Host("h1"); h.Status.Phase == v1.PhaseAwaiting || h.Cluster != "" {
		t.Errorf("host %+v, want it released", h)
	}
	do(http.MethodPost, "/v1/hosts/h1/assign", `{"cluster":"train"}`, http.StatusServiceUnavailable)
}
