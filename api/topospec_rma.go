package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// Replacer replaces devices of the declared topology. Package api/rma implements it.
// Errors and actors are as those of TopospecKeeper.
type Replacer interface {
	List(ctx context.Context) (*v1.RMAs, error)
	Show(ctx context.Context, ticket string) (*v1.RMA, error)
	Start(ctx context.Context, actor string, in v1.NewRMA) (*v1.RMA, error)
	// Confirm takes the step that waits for a second person.
	Confirm(ctx context.Context, actor, ticket string, in v1.RMAConfirm) (*v1.RMA, error)
	Cancel(ctx context.Context, actor, ticket string, in v1.RMACancel) (*v1.RMA, error)
}

type (
	newRMAInput struct{ Body v1.NewRMA }
	rmaInput    struct {
		Ticket string `path:"ticket" maxLength:"64" doc:"ticket of the replacement"`
	}
	rmaConfirmInput struct {
		Ticket string `path:"ticket" maxLength:"64" doc:"ticket of the replacement"`
		Body   *v1.RMAConfirm
	}
	rmaCancelInput struct {
		Ticket string `path:"ticket" maxLength:"64" doc:"ticket of the replacement"`
		Body   v1.RMACancel
	}
)

// replaces registers an operation on replacements.
func replaces[I, T any](s *Server, a huma.API, op operation, do func(Replacer, context.Context, *I) (*T, error)) {
	op.tag = "topospec"
	register(s, a, op, func(ctx context.Context, in *I) (*bodyOutput[T], error) {
		if s.rma == nil {
			return nil, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable,
				"this process keeps no revisions of the topology", "ask the service")
		}
		body, err := do(s.rma, ctx, in)
		return &bodyOutput[T]{body}, err
	})
}

func (s *Server) rmaRoutes(a huma.API) {
	replaces(s, a, operation{
		id: "list-rma", method: http.MethodGet, path: "/v1/topospec/rma", access: accessView,
		summary: "List replacements of devices, the newest first",
	}, func(r Replacer, ctx context.Context, _ *struct{}) (*v1.RMAs, error) { return r.List(ctx) })
	replaces(s, a, operation{
		id: "get-rma", method: http.MethodGet, path: "/v1/topospec/rma/{ticket}", access: accessView,
		summary: "Show where the replacement of a device stands, and what is to be done next",
	}, func(r Replacer, ctx context.Context, in *rmaInput) (*v1.RMA, error) { return r.Show(ctx, in.Ticket) })
	replaces(s, a, operation{
		id: "start-rma", method: http.MethodPost, path: "/v1/topospec/rma", access: accessOperate, status: http.StatusCreated,
		summary: "Open the replacement of an adapter or a switch: draft the revision that puts its place under maintenance",
	}, func(r Replacer, ctx context.Context, in *newRMAInput) (*v1.RMA, error) {
		return r.Start(ctx, actor(ctx), in.Body)
	})
	replaces(s, a, operation{
		id: "confirm-rma", method: http.MethodPost, path: "/v1/topospec/rma/{ticket}/confirm", access: accessOperate,
		summary: "Take the step of a replacement that waits for a second person",
	}, func(r Replacer, ctx context.Context, in *rmaConfirmInput) (*v1.RMA, error) {
		how := v1.RMAConfirm{}
		if in.Body != nil {
			how = *in.Body
		}
		return r.Confirm(ctx, actor(ctx), in.Ticket, how)
	})
	replaces(s, a, operation{
		id: "cancel-rma", method: http.MethodPost, path: "/v1/topospec/rma/{ticket}/cancel", access: accessOperate,
		summary: "End a replacement before the new device has the place",
	}, func(r Replacer, ctx context.Context, in *rmaCancelInput) (*v1.RMA, error) {
		return r.Cancel(ctx, actor(ctx), in.Ticket, in.Body)
	})
}
