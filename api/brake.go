package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

type brakeInput struct{ Body v1.BrakeRelease }

func (s *Server) brakeRoutes(a huma.API) {
	register(s, a, operation{
		id: "get-brakes", method: http.MethodGet, path: "/v1/admission/brake", tag: "hosts",
		summary: "Show which memberships are kept although automatic causes would take them, because they are of many hosts", access: accessView,
	}, func(ctx context.Context, _ *struct{}) (*bodyOutput[v1.Brakes], error) {
		b, err := s.backend.Brakes.BrakeState(ctx)
		return &bodyOutput[v1.Brakes]{b}, err
	})
	register(s, a, operation{
		id: "release-brake", method: http.MethodPost, path: "/v1/admission/brake/release", tag: "hosts",
		summary: "Have automatic causes take the memberships that are kept now", access: accessOperate,
	}, func(ctx context.Context, in *brakeInput) (*bodyOutput[v1.Brakes], error) {
		b, err := s.backend.Brakes.ReleaseBrake(ctx, actor(ctx), in.Body)
		return &bodyOutput[v1.Brakes]{b}, err
	})
}
