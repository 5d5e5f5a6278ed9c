package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

type (
	reviewDecisionInput struct{ Body v1.ReviewDecision }
	reviewEndInput      struct{ Body v1.ReviewEnd }
)

func (s *Server) reviewRoutes(a huma.API) {
	register(s, a, operation{
		id: "get-review", method: http.MethodGet, path: "/v1/review", tag: "backup", access: accessAudit,
		summary: "Show what a restored state and the fabric differ in",
	}, func(ctx context.Context, _ *struct{}) (*bodyOutput[v1.Review], error) {
		body, err := s.backend.Reviews.Review(ctx)
		return &bodyOutput[v1.Review]{body}, err
	})
	decides := func(verb, summary string, do func(context.Context, string, v1.ReviewDecision) (*v1.Review, error)) {
		register(s, a, operation{
			id: verb + "-review", method: http.MethodPost, path: "/v1/review/" + verb, tag: "backup", access: accessOperate, summary: summary,
		}, func(ctx context.Context, in *reviewDecisionInput) (*bodyOutput[v1.Review], error) {
			body, err := do(ctx, actor(ctx), in.Body)
			return &bodyOutput[v1.Review]{body}, err
		})
	}
	decides("approve", "Have the restored state count for hosts", func(ctx context.Context, actor string, in v1.ReviewDecision) (*v1.Review, error) {
		return s.backend.Reviews.Approve(ctx, actor, in)
	})
	decides("reject", "Release hosts of a restored state, and take all P_Keys of tenants off their ports", func(ctx context.Context, actor string, in v1.ReviewDecision) (*v1.Review, error) {
		return s.backend.Reviews.Reject(ctx, actor, in)
	})
	register(s, a, operation{
		id: "end-review", method: http.MethodPost, path: "/v1/review/end", tag: "backup", access: accessOperate,
		summary: "End the review of a restored state",
	}, func(ctx context.Context, in *reviewEndInput) (*bodyOutput[v1.Review], error) {
		body, err := s.backend.Reviews.EndReview(ctx, actor(ctx), in.Body)
		return &bodyOutput[v1.Review]{body}, err
	})
}
