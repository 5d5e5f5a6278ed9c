package client

import (
	"context"
	"fmt"
	"io"

	v1 "portcullis/api/v1"
)

// Inventory asks about the inventory of hosts.
type Inventory struct{ c *Client }

// Inventory returns the operations about the inventory of hosts.
func (c *Client) Inventory() Inventory { return Inventory{c} }

// Repairs lists rows of inventory that wait for a second person, by host.
func (g Inventory) Repairs(ctx context.Context) ([]v1.Repair, error) {
	return all[v1.Repair](ctx, g.c, listRepairs, query{})
}

// Repair returns the row of a host that waits for a second person.
func (g Inventory) Repair(ctx context.Context, host string) (*v1.Repair, error) {
	return ask[v1.Repair](ctx, g.c, getRepair, nil, host)
}

// ConfirmRepair puts a row that another operator staged into force.
func (g Inventory) ConfirmRepair(ctx context.Context, host string, in v1.RepairConfirm) (*v1.Repair, error) {
	return ask[v1.Repair](ctx, g.c, confirmRepair, in, host)
}

// CancelRepair ends a row that waits for a second person.
func (g Inventory) CancelRepair(ctx context.Context, host string, in v1.RepairCancel) (*v1.Repair, error) {
	return ask[v1.Repair](ctx, g.c, cancelRepair, in, host)
}

// DeniedEKs lists the EKs of TPMs that were replaced, the newest first.
func (g Inventory) DeniedEKs(ctx context.Context) ([]v1.DeniedEK, error) {
	return all[v1.DeniedEK](ctx, g.c, listDenied, query{})
}

// Import hands in inventory and cabling files, all or nothing.
// Rows that need a second person are staged under the ticket.
func (g Inventory) Import(ctx context.Context, files []v1.InventoryFile, t v1.RepairTicket, dryRun bool) (*v1.ImportReport, error) {
	v := query{}
	v.flag("dry_run", dryRun)
	return find[v1.ImportReport](ctx, g.c, importInventory, v1.InventoryUpload{Files: files, RepairTicket: t}, v)
}

// Export returns all inventory as a file that Import takes.
func (g Inventory) Export(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, g.c.timeout)
	defer cancel()
	resp, err := open(ctx, g.c, exportInventory, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("it has more than %d bytes", maxAnswer)
	}
	if err != nil {
		return nil, fmt.Errorf("read the inventory: %w", err)
	}
	return data, nil
}
