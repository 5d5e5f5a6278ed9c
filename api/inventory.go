package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/inventory"
	v1 "portcullis/api/v1"
)

type importInput struct {
	DryRun bool `query:"dry_run" doc:"report what would change, change nothing"`
	Body   v1.InventoryUpload
}

type importOutput struct{ Body *v1.ImportReport }

type equipmentInput struct {
	Kind string `path:"kind" enum:"site,rack,switch,adapter,cable" doc:"kind of the object"`
	ID   string `path:"id" maxLength:"128" doc:"name; of a switch also its GUID, of an adapter its node GUID, of a cable one of its ends"`
	Body v1.HostRemoval
}

type exportOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

type confirmRepairInput struct {
	ID   string `path:"id" maxLength:"128" doc:"host id as in inventory"`
	Body v1.RepairConfirm
}

type cancelRepairInput struct {
	ID   string `path:"id" maxLength:"128" doc:"host id as in inventory"`
	Body v1.RepairCancel
}

func (s *Server) inventoryRoutes(a huma.API) {
	register(s, a, operation{
		id: "import-inventory", method: http.MethodPost, path: "/v1/inventory/import", tag: "inventory",
		summary: "Import inventory and cabling files, all or nothing",
		access:  accessOperate, maxBody: maxInventory,
	}, func(ctx context.Context, in *importInput) (*importOutput, error) {
		files := make([]inventory.File, len(in.Body.Files))
		for i, f := range in.Body.Files {
			files[i] = inventory.File{Name: f.Name, Data: []byte(f.Content), Form: f.Form, Signature: f.Signature}
		}
		report, err := s.backend.Inventory.ImportInventory(ctx, actor(ctx), files, in.Body.RepairTicket, in.DryRun)
		return &importOutput{report}, err
	})
	register(s, a, operation{
		id: "export-inventory", method: http.MethodGet, path: "/v1/inventory/export", tag: "inventory",
		summary: "Write all inventory as a file that can be imported", access: accessView,
	}, func(ctx context.Context, _ *struct{}) (*exportOutput, error) {
		file, err := s.backend.Inventory.ExportInventory(ctx)
		return &exportOutput{"application/yaml", file}, err
	})
	register(s, a, operation{
		id: "remove-equipment", method: http.MethodDelete, path: "/v1/inventory/equipment/{kind}/{id}", tag: "inventory",
		summary: "Remove a site, rack, switch, adapter in stock or cable between switches that left permanently", access: accessOperate,
	}, func(ctx context.Context, in *equipmentInput) (*struct{}, error) {
		return nil, s.backend.Inventory.RemoveEquipment(ctx, actor(ctx), inventory.Kind(in.Kind), in.ID, in.Body)
	})
	register(s, a, operation{
		id: "list-repairs", method: http.MethodGet, path: "/v1/inventory/repairs", tag: "inventory",
		summary: "List rows of inventory that wait for a second person, by host, a page at a time", access: accessView,
	}, func(ctx context.Context, in *pageInput) (*listOutput[v1.Repair], error) {
		return list(s.backend.Inventory.Repairs(ctx, in.PageQuery))
	})
	register(s, a, operation{
		id: "get-repair", method: http.MethodGet, path: "/v1/inventory/repairs/{id}", tag: "inventory",
		summary: "Show a row of inventory that waits for a second person", access: accessView,
	}, func(ctx context.Context, in *hostInput) (*bodyOutput[v1.Repair], error) {
		r, err := s.backend.Inventory.Repair(ctx, in.ID)
		return &bodyOutput[v1.Repair]{r}, err
	})
	register(s, a, operation{
		id: "confirm-repair", method: http.MethodPost, path: "/v1/inventory/repairs/{id}/confirm", tag: "inventory",
		summary: "Put a row of inventory that another operator staged into force: the EK that the host had is denied, and all that it showed is void",
		access:  accessOperate,
	}, func(ctx context.Context, in *confirmRepairInput) (*bodyOutput[v1.Repair], error) {
		r, err := s.backend.Inventory.ConfirmRepair(ctx, actor(ctx), in.ID, in.Body)
		return &bodyOutput[v1.Repair]{r}, err
	})
	register(s, a, operation{
		id: "cancel-repair", method: http.MethodPost, path: "/v1/inventory/repairs/{id}/cancel", tag: "inventory",
		summary: "End a row of inventory that waits for a second person", access: accessOperate,
	}, func(ctx context.Context, in *cancelRepairInput) (*bodyOutput[v1.Repair], error) {
		r, err := s.backend.Inventory.CancelRepair(ctx, actor(ctx), in.ID, in.Body)
		return &bodyOutput[v1.Repair]{r}, err
	})
	register(s, a, operation{
		id: "list-denied-eks", method: http.MethodGet, path: "/v1/inventory/denied", tag: "inventory",
		summary: "List the EKs of TPMs that were replaced, the newest first, a page at a time", access: accessView,
	}, func(ctx context.Context, in *pageInput) (*listOutput[v1.DeniedEK], error) {
		return list(s.backend.Inventory.DeniedEKs(ctx, in.PageQuery))
	})
}
