package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/problem"
	"portcullis/api/sse"
	v1 "portcullis/api/v1"
)

// watchRoute registers the event stream of one host: server-sent events named
// "host", each with the whole host as JSON, the first at once.
func (s *Server) watchRoute(a huma.API) {
	op := s.describe(a, operation{
		id: "watch-host", method: http.MethodGet, path: "/v1/hosts/{id}/watch", tag: "hosts",
		summary: "Follow a host: an event named host, with the host as JSON, now and after each change",
		access:  accessView,
	})
	op.Responses["200"] = &huma.Response{
		Description: "Server-sent events",
		Content: map[string]*huma.MediaType{sse.MediaType: {
			Schema: a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[v1.Host](), true, "Host"),
		}},
	}
	huma.Register(a, op, func(ctx context.Context, in *hostInput) (*huma.StreamResponse, error) {
		// Ends the watch even when the response is never streamed.
		ctx, cancel := whileGood(ctx)
		hosts, err := s.backend.Lifecycle.Watch(ctx, in.ID)
		return streamed(ctx, cancel, err, func(w http.ResponseWriter) error { return streamHosts(ctx, w, hosts) })
	})
}

// streamed answers with what write writes, or with why the stream was not opened. cancel is called when the stream ends.
func streamed(ctx context.Context, cancel context.CancelFunc, err error, write func(http.ResponseWriter) error) (*huma.StreamResponse, error) {
	if err != nil {
		cancel()
		p, fault := problem.Of(err)
		noteFault(ctx, fault)
		return nil, p
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer cancel()
		_, w := humachi.Unwrap(c)
		noteFault(ctx, write(w))
	}}, nil
}

// streamHosts writes events until the client or the service goes away.
func streamHosts(ctx context.Context, w http.ResponseWriter, hosts <-chan *v1.Host) error {
	out, err := sse.Open(w)
	if err != nil {
		return err
	}
	_, err = sse.Copy(ctx, draining(ctx), out, hosts, func(h *v1.Host) (sse.Message, error) {
		data, err := json.Marshal(h)
		if err != nil {
			return sse.Message{}, fmt.Errorf("encode host %s: %w", h.ID, err)
		}
		return sse.Message{Event: "host", Data: data}, nil
	})
	return err
}
