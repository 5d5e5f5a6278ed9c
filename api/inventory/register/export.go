package register

import (
	"context"

	"portcullis/api/inventory"
	"portcullis/api/refusal"
)

// ExportInventory returns the stored inventory as a file that ImportInventory reads: sites, racks, switches, hosts
// with their cables, adapters in stock, and cables between switches.
// Importing it changes nothing.
func (s *Service) ExportInventory(ctx context.Context) ([]byte, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	all, err := inventory.Load(ctx, snap)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	return inventory.Write(all), nil
}
