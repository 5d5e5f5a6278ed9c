package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

// FabricOperator changes what the subnet manager does. Errors are as those of Backend; an actor is "" where any caller that
// can connect may do all.
type FabricOperator interface {
	// MarkHealth sets an operator's judgement of the health of a place. The returned state is in force, and survives a
	// restart.
	MarkHealth(ctx context.Context, actor string, m v1.HealthMark) (*v1.FabricHealth, error)
	KeyOperator
}

type markInput struct{ Body v1.HealthMark }

func (s *Server) healthRoutes(a huma.API) {
	read(s, a, "list-health", "/v1/fabric/health", "List switch ports and switches that are unhealthy or marked, a page at a time",
		func(r FabricReader, ctx context.Context, in *pageInput) (*v1.Page[v1.FabricHealth], error) {
			return r.Health(ctx, in.PageQuery)
		})
	operate(s, a, "mark-health", "/v1/fabric/health", "Mark a switch port or a switch as unhealthy or healthy, or release it",
		func(o FabricOperator, ctx context.Context, in *markInput) (*v1.FabricHealth, error) {
			return o.MarkHealth(ctx, actor(ctx), in.Body)
		})
}
