package register

import (
	"context"

	"portcullis/api/inventory"
	"portcullis/api/refusal"
)

// ExportInventory returns the stored inventory as a file that ImportInventory reads: hosts by id, with their cables.
// Importing it changes nothing.
func (s *Service) ExportInventory(ctx context.Context) ([]byte, error) {
	recs, _, err := inventory.Hosts().List(ctx, s.o.Store, "")
	if err != nil {
		return nil, refusal.Explain(err)
	}
	hosts := make([]inventory.Host, len(recs))
	for i := range recs {
		hosts[i] = recs[i].Value
	}
	return inventory.Write(hosts), nil
}
