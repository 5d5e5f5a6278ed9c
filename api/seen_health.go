package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

// FabricOperator changes what the subnet manager does. Errors are as those of
// Backend; an actor is "" where whoever may connect may do all.
type FabricOperator interface {
	// MarkHealth says what an operator thinks of the health of a place. What it
	// gives is in force, and survives a restart.
	MarkHealth(ctx context.Context, actor string, m v1.HealthMark) (*v1.FabricHealth, error)
}

type markInput struct{ Body v1.HealthMark }

func (s *Server) healthRoutes(a huma.API) {
	read(s, a, "list-health", "/v1/fabric/health", "List switch ports and switches that are unhealthy or marked, a page at a time",
		func(r FabricReader, ctx context.Context, in *pageInput) (*v1.Page[v1.FabricHealth], error) {
			return r.Health(ctx, in.PageQuery)
		})
	register(s, a, operation{
		id: "mark-health", method: http.MethodPost, path: "/v1/fabric/health", tag: "fabric",
		summary: "Mark a switch port or a switch as unhealthy or healthy, or release it", access: accessOperate,
	}, func(ctx context.Context, in *markInput) (*bodyOutput[v1.FabricHealth], error) {
		if _, err := s.reader(); err != nil {
			return nil, err
		}
		if s.operator == nil {
			return nil, newProblem(http.StatusConflict, v1.CodeReadOnly,
				"this socket only shows the fabric", "ask the service, which knows who you are: --service https://HOST:PORT")
		}
		body, err := s.operator.MarkHealth(ctx, actor(ctx), in.Body)
		return &bodyOutput[v1.FabricHealth]{body}, err
	})
}
