package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

// EventLister shows what operators should have heard of. Package api/events
// implements it.
type EventLister interface {
	List(ctx context.Context, q v1.EventQuery) (*v1.Events, error)
}

func (s *Server) eventRoutes(a huma.API) {
	register(s, a, operation{
		id: "list-events", method: http.MethodGet, path: "/v1/events", tag: "event", access: accessView,
		summary: "List what happened to locks and evidence without a request, the last first, a page at a time",
	}, func(ctx context.Context, in *v1.EventQuery) (*bodyOutput[v1.Events], error) {
		if s.events == nil {
			return nil, newProblem(http.StatusServiceUnavailable, v1.CodeUnavailable, "this process keeps no events", "ask the service")
		}
		body, err := s.events.List(ctx, *in)
		return &bodyOutput[v1.Events]{body}, err
	})
}
