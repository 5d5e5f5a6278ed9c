package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

type fabricOutput struct{ Body *v1.Fabric }

type smOutput struct{ Body *v1.SM }

type forgetInput struct{ Body v1.SightAccept }

func (s *Server) fabricRoutes(a huma.API) {
	register(s, a, operation{
		id: "get-fabric", method: http.MethodGet, path: "/v1/fabric", tag: "fabric",
		summary: "Show the fabric as the subnet manager last saw it", access: accessView,
	}, func(ctx context.Context, _ *struct{}) (*fabricOutput, error) {
		f, err := s.backend.State.Fabric(ctx)
		return &fabricOutput{f}, err
	})
	register(s, a, operation{
		id: "get-sm", method: http.MethodGet, path: "/v1/sm", tag: "fabric",
		summary: "Show the state of the subnet manager", access: accessView,
	}, func(ctx context.Context, _ *struct{}) (*smOutput, error) {
		state, err := s.backend.State.SM(ctx)
		if err == nil && s.leadership != nil {
			state.Leadership, err = s.leadership.Leadership(ctx)
		}
		return &smOutput{state}, err
	})
	register(s, a, operation{
		id: "forget-unseen", method: http.MethodPost, path: "/v1/sm/forget", tag: "fabric",
		summary: "Hold the nodes that are out of sight for gone, so that the subnet manager is partly blind no longer", access: accessOperate,
	}, func(ctx context.Context, in *forgetInput) (*bodyOutput[v1.Sight], error) {
		was, err := s.backend.State.ForgetUnseen(ctx, actor(ctx), in.Body)
		return &bodyOutput[v1.Sight]{was}, err
	})
}

// localSMRoute answers for the state of the subnet manager without a Backend.
func (s *Server) localSMRoute(a huma.API) {
	register(s, a, operation{
		id: "get-sm", method: http.MethodGet, path: "/v1/sm", tag: "fabric",
		summary: "Show the state of the subnet manager", access: accessView,
	}, func(ctx context.Context, _ *struct{}) (*smOutput, error) {
		state, err := s.fabric.SM(ctx)
		return &smOutput{state}, err
	})
}
