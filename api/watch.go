package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	v1 "portcullis/api/v1"
)

const (
	eventStream = "text/event-stream"

	// keepAlive is how often a quiet stream says something, so that both
	// sides notice when the other is gone.
	keepAlive = 15 * time.Second

	// patience is how long a client may take to accept what is written. It
	// is longer than keepAlive because HTTP/2 resets a stream at its write
	// deadline even when nothing waits to be written.
	patience = keepAlive + 10*time.Second
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
		Content: map[string]*huma.MediaType{eventStream: {
			Schema: a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[v1.Host](), true, "Host"),
		}},
	}
	huma.Register(a, op, func(ctx context.Context, in *hostInput) (*huma.StreamResponse, error) {
		// Ends the watch even when the response is never streamed.
		ctx, cancel := whileGood(ctx)
		hosts, err := s.backend.Lifecycle.Watch(ctx, in.ID)
		if err != nil {
			cancel()
			p, fault := problemOf(err)
			noteFault(ctx, fault)
			return nil, p
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			defer cancel()
			_, w := humachi.Unwrap(c)
			s.stream(ctx, w, hosts)
		}}, nil
	})
}

// stream writes events until the client or the service goes away.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, hosts <-chan *v1.Host) {
	w.Header().Set("Content-Type", eventStream)
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	rc := http.NewResponseController(w)
	// The server's read deadline is for requests; past it, HTTP/1 would take
	// the client for gone.
	if err := rc.SetReadDeadline(time.Time{}); err != nil {
		noteFault(ctx, fmt.Errorf("clear read deadline: %w", err))
		return
	}
	for {
		message := []byte(": still here\n\n")
		select {
		case <-ctx.Done():
			return
		case <-draining(ctx):
			return
		case <-tick.C:
		case host, ok := <-hosts:
			if !ok {
				return
			}
			data, err := json.Marshal(host)
			if err != nil {
				noteFault(ctx, fmt.Errorf("encode host %s: %w", host.ID, err))
				return
			}
			message = fmt.Appendf(nil, "event: host\ndata: %s\n\n", data)
		}
		if err := rc.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			noteFault(ctx, fmt.Errorf("set write deadline: %w", err))
			return
		}
		if _, err := w.Write(message); err != nil {
			return
		}
		if err := rc.Flush(); err != nil {
			return
		}
	}
}
