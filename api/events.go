package api

import (
	"cmp"
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/events/cloudevent"
	"portcullis/api/events/feed"
	"portcullis/api/problem"
	"portcullis/api/sse"
	v1 "portcullis/api/v1"
)

// EventLister shows what operators should have heard of. Package
// api/events/feed implements it.
type EventLister interface {
	List(ctx context.Context, q v1.EventQuery) (*v1.Events, error)
	// Watch opens a stream of a credential.
	Watch(ctx context.Context, credential string, q *feed.Query) (*feed.Stream, error)
}

func (s *Server) eventRoutes(a huma.API) {
	register(s, a, operation{
		id: "list-events", method: http.MethodGet, path: "/v1/events", tag: "event", access: accessView,
		summary: "List what happened to locks and evidence without a request, the last first, a page at a time",
	}, func(ctx context.Context, in *v1.EventQuery) (*bodyOutput[v1.Events], error) {
		if s.events == nil {
			return nil, noEvents()
		}
		body, err := s.events.List(ctx, *in)
		return &bodyOutput[v1.Events]{body}, err
	})
	op := s.describe(a, operation{
		id: "watch-events", method: http.MethodGet, path: "/v1/events/watch", tag: "event", access: accessAudit,
		summary: "Follow events as they happen: server-sent events named begin, event, gap, end and, if asked for, violations, which a client resumes by the last id",
	})
	op.Responses["200"] = &huma.Response{
		Description: "Server-sent events",
		Content: map[string]*huma.MediaType{sse.MediaType: {
			Schema: &huma.Schema{OneOf: []*huma.Schema{
				a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[v1.Event](), true, "Event"),
				a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[v1.CloudEvent](), true, "CloudEvent"),
			}},
		}},
	}
	huma.Register(a, op, func(ctx context.Context, in *v1.EventWatch) (*huma.StreamResponse, error) {
		if s.events == nil {
			return nil, noEvents()
		}
		ctx, cancel := whileGood(ctx)
		q := feed.Query{EventQuery: v1.EventQuery{Type: in.Type, Host: in.Host, Severity: in.Severity}, After: cmp.Or(in.LastID, in.After), Violations: in.Violations}
		if in.Form == v1.FormCloudEvents {
			q.Form = func(e *v1.Event) any { return cloudevent.Of(e) }
		}
		stream, err := s.events.Watch(ctx, actor(ctx), &q)
		return streamed(ctx, cancel, err, func(w http.ResponseWriter) error { return streamEvents(ctx, w, stream) })
	})
}

// streamEvents writes events until the client or the service goes away, and says at last why it ends.
func streamEvents(ctx context.Context, w http.ResponseWriter, stream *feed.Stream) error {
	out, err := sse.Open(w)
	if err != nil {
		return err
	}
	how, err := sse.Copy(ctx, draining(ctx), out, stream.C, func(m sse.Message) (sse.Message, error) { return m, nil })
	if how == sse.Gone || err != nil {
		return err
	}
	_ = out.Send(stream.Last(ctx, how)) // the client may be gone
	return nil
}

func noEvents() *problem.Problem {
	return problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable, "this process keeps no events", "ask the service")
}
