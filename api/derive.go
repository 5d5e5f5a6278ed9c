package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// Deriver makes the declared topology from the inventory, and compares the two. Package inventory/derive implements it.
type Deriver interface {
	// Draft keeps a draft of the inventory as it is now.
	Draft(ctx context.Context, actor string, in v1.TopospecFromInventory) (*v1.TopospecRevision, error)
	// Check compares the inventory with the revision in force, and with the fabric as it is seen.
	Check(ctx context.Context) (*v1.InventoryCheck, error)
}

type fromInventoryInput struct{ Body v1.TopospecFromInventory }

// derives registers an operation that needs a Deriver.
func derives[I, O any](s *Server, a huma.API, op operation, do func(Deriver, context.Context, *I) (*O, error)) {
	op.tag, op.leader = "inventory", true
	register(s, a, op, func(ctx context.Context, in *I) (*O, error) {
		if s.derived == nil {
			return nil, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable, "this process keeps no revisions of the topology", "ask the service")
		}
		return do(s.derived, ctx, in)
	})
}

func (s *Server) deriveRoutes(a huma.API) {
	derives(s, a, operation{
		id: "draft-topospec-from-inventory", method: http.MethodPost, path: "/v1/inventory/topospec", access: accessOperate,
		summary: "Keep a draft of the declared topology that is made of the inventory", status: http.StatusCreated,
	}, func(d Deriver, ctx context.Context, in *fromInventoryInput) (*taggedOutput[v1.TopospecRevision], error) {
		return taggedRevision(d.Draft(ctx, actor(ctx), in.Body))
	})
	derives(s, a, operation{
		id: "check-inventory", method: http.MethodGet, path: "/v1/inventory/check", access: accessView,
		summary: "Compare the inventory with the topology in force and with the fabric, in physical terms",
	}, func(d Deriver, ctx context.Context, _ *struct{}) (*bodyOutput[v1.InventoryCheck], error) {
		out, err := d.Check(ctx)
		return &bodyOutput[v1.InventoryCheck]{out}, err
	})
}
