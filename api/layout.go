package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

type rackInput struct {
	ID string `path:"id" maxLength:"64" doc:"name of the rack"`
}

type switchInput struct {
	ID string `path:"id" maxLength:"64" doc:"name or GUID of the switch"`
}

type racksInput struct{ v1.RackQuery }

type switchesInput struct{ v1.SwitchQuery }

type cablesInput struct{ v1.CableQuery }

func (s *Server) layoutRoutes(a huma.API) {
	register(s, a, operation{
		id: "list-racks", method: http.MethodGet, path: "/v1/inventory/racks", tag: "inventory",
		summary: "List racks by name, a page at a time", access: accessView,
	}, func(ctx context.Context, in *racksInput) (*listOutput[v1.Rack], error) {
		return list(s.backend.Layout.Racks(ctx, in.RackQuery))
	})
	register(s, a, operation{
		id: "get-rack", method: http.MethodGet, path: "/v1/inventory/racks/{id}", tag: "inventory",
		summary: "Show a rack and what stands in it, from the top to the bottom", access: accessView,
	}, func(ctx context.Context, in *rackInput) (*bodyOutput[v1.RackView], error) {
		r, err := s.backend.Layout.Rack(ctx, in.ID)
		return &bodyOutput[v1.RackView]{r}, err
	})
	register(s, a, operation{
		id: "list-switches", method: http.MethodGet, path: "/v1/inventory/switches", tag: "inventory",
		summary: "List switches by name, a page at a time", access: accessView,
	}, func(ctx context.Context, in *switchesInput) (*listOutput[v1.Switch], error) {
		return list(s.backend.Layout.Switches(ctx, in.SwitchQuery))
	})
	register(s, a, operation{
		id: "get-switch", method: http.MethodGet, path: "/v1/inventory/switches/{id}", tag: "inventory",
		summary: "Show a switch and its cables, by port", access: accessView,
	}, func(ctx context.Context, in *switchInput) (*bodyOutput[v1.SwitchView], error) {
		w, err := s.backend.Layout.Switch(ctx, in.ID)
		return &bodyOutput[v1.SwitchView]{w}, err
	})
	register(s, a, operation{
		id: "list-cables", method: http.MethodGet, path: "/v1/inventory/cables", tag: "inventory",
		summary: "List cables with both ends in physical terms, a page at a time, all or those of a rack, switch or host", access: accessView,
	}, func(ctx context.Context, in *cablesInput) (*listOutput[v1.InventoryCable], error) {
		return list(s.backend.Layout.Cables(ctx, in.CableQuery))
	})
	register(s, a, operation{
		id: "list-spares", method: http.MethodGet, path: "/v1/inventory/spares", tag: "inventory",
		summary: "List switches, hosts and adapters in stock, a page at a time", access: accessView,
	}, func(ctx context.Context, in *pageInput) (*listOutput[v1.Spare], error) {
		return list(s.backend.Layout.Spares(ctx, in.PageQuery))
	})
}
