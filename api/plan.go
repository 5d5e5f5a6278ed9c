package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// Planner compares what a caller wants there to be with what is there. Package plan/found implements it. Errors are as those of
// [Backend].
type Planner interface {
	Plan(ctx context.Context, w *v1.Wanted) (*v1.Plan, error)
}

type wantedInput struct{ Body v1.Wanted }

func planRoute(s *Server, a huma.API) {
	register(s, a, operation{
		id: "make-plan", method: http.MethodPost, path: "/v1/plan", tag: "tenancy", access: accessView, maxBody: maxPlan, maxValues: maxPlanValues,
		summary: "Compare what is wanted with what is there, and say which requests make up the difference; it changes nothing",
	}, func(ctx context.Context, in *wantedInput) (*bodyOutput[v1.Plan], error) {
		if s.planner == nil {
			return nil, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable, "this process makes no plans", "ask the service")
		}
		p, err := s.planner.Plan(ctx, &in.Body)
		return &bodyOutput[v1.Plan]{p}, err
	})
}
