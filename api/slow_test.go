package api_test

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/limit"
	v1 "portcullis/api/v1"
)

// slowBackend answers SM only when it may leave.
type slowBackend struct {
	site *apitest.Site
	api.FabricState
	entered, leave chan struct{}
}

func newSlowBackend(t *testing.T) *slowBackend {
	t.Helper()
	return &slowBackend{site: apitest.NewSite(t), entered: make(chan struct{}), leave: make(chan struct{})}
}

func (b *slowBackend) Parts() (api.Backend, api.Tenancy) {
	parts, clusters := b.site.Parts()
	b.FabricState = parts.State
	parts.State = b
	return parts, clusters
}

func (b *slowBackend) SM(ctx context.Context) (*v1.SM, error) {
	close(b.entered)
	select {
	case <-b.leave:
		return &v1.SM{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestBodiesThatDoNotEnd: a stranger whose requests stop in the middle of their bodies
// gets no more than its places, however many streams it has; others have theirs, and its
// own are free again once these end.
func TestBodiesThatDoNotEnd(t *testing.T) {
	f := newFixture(t, func(o *api.Options) {
		o.Limits.Requests, o.Limits.Attestations = limit.Rate{PerSecond: 1000, Burst: 1000}, limit.Rate{PerSecond: 1000, Burst: 1000}
	})
	const places = 128
	next := opener(t, f.site, "h1")
	post := func(session, source string, body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequest("PUT", "/v1/attest/sessions/"+session+"/evidence", body)
		r.RemoteAddr, r.ContentLength = source, 12<<10 // 128 of them are within the share of a source
		r.Header.Set("Content-Type", "application/json")
		return f.send(r)
	}
	var stuck sync.WaitGroup
	var ends []*io.PipeWriter
	for range places {
		id := next()
		body, end := io.Pipe()
		ends = append(ends, end)
		stuck.Go(func() { post(id, "192.0.2.1:1000", body) })
		if _, err := end.Write([]byte("{")); err != nil { // read: the request is under way
			t.Fatal(err)
		}
	}
	wantProblem(t, post(next(), "192.0.2.1:2000", strings.NewReader("{}")), 429, v1.CodeRateLimited)
	if w := post(next(), "192.0.2.2:1000", strings.NewReader("{}")); w.Code == 429 {
		t.Error("another source is refused, too")
	}
	if w := f.do("GET", "/livez", "", ""); w.Code != 200 {
		t.Errorf("a request without body: status %d, want 200", w.Code)
	}
	for _, end := range ends {
		end.Close()
	}
	stuck.Wait()
	if w := post(next(), "192.0.2.1:2000", strings.NewReader("{}")); w.Code == 429 {
		t.Error("after all ended the source is still refused")
	}
}
