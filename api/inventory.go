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

func (s *Server) inventoryRoutes(a huma.API) {
	register(s, a, operation{
		id: "import-inventory", method: http.MethodPost, path: "/v1/inventory/import", tag: "inventory",
		summary: "Import inventory and cabling files, all or nothing",
		access:  accessOperate, maxBody: maxInventory,
	}, func(ctx context.Context, in *importInput) (*importOutput, error) {
		files := make([]inventory.File, len(in.Body.Files))
		for i, f := range in.Body.Files {
			files[i] = inventory.File{Name: f.Name, Data: []byte(f.Content)}
		}
		report, err := s.backend.ImportInventory(ctx, actor(ctx), files, in.DryRun)
		return &importOutput{report}, err
	})
}
