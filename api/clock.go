package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

// Clock keeps the time that decisions rest on. Package api/clock/keeper implements it.
type Clock interface {
	// Halted returns why nothing new may be granted now; nil: the clock is believed.
	Halted() error
	Clock(ctx context.Context) (*v1.Clock, error)
	// SetClock has the recorded time be what the machine shows.
	SetClock(ctx context.Context, actor string, in v1.ClockSet) (*v1.Clock, error)
}

// believes refuses what would be granted by a clock that is not believed.
func (s *Server) believes() error {
	if s.clock == nil {
		return nil
	}
	if err := s.clock.Halted(); err != nil {
		return &refusal.Error{
			Code: "clock_jump", Status: refusal.Unavailable, Detail: err.Error(),
			Hint: "correct the clock of the service's machine; portcullis clock show says more", Err: err,
		}
	}
	return nil
}

type clockSetInput struct{ Body v1.ClockSet }

func (s *Server) clockRoutes(a huma.API) {
	none := func() error {
		if s.clock != nil {
			return nil
		}
		return problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable, "this process keeps no time of its own", "ask the service")
	}
	register(s, a, operation{
		id: "get-clock", method: http.MethodGet, path: "/v1/clock", tag: "clock", access: accessView,
		summary: "Show how the clock of the machine stands to the highest time that was seen",
	}, func(ctx context.Context, _ *struct{}) (*bodyOutput[v1.Clock], error) {
		if err := none(); err != nil {
			return nil, err
		}
		c, err := s.clock.Clock(ctx)
		return &bodyOutput[v1.Clock]{c}, err
	})
	register(s, a, operation{
		id: "set-clock", method: http.MethodPost, path: "/v1/clock/set", tag: "clock", access: accessOperate,
		summary: "Have the recorded time be what the machine shows: what was over by it alone is not over any more",
	}, func(ctx context.Context, in *clockSetInput) (*bodyOutput[v1.Clock], error) {
		if err := none(); err != nil {
			return nil, err
		}
		c, err := s.clock.SetClock(ctx, actor(ctx), in.Body)
		return &bodyOutput[v1.Clock]{c}, err
	})
}
