package client

import (
	"context"

	v1 "portcullis/api/v1"
)

// Racks lists the racks of a site by name; "": of all.
func (g Inventory) Racks(ctx context.Context, site string) ([]v1.Rack, error) {
	v := query{}
	v.set("site", site)
	return all[v1.Rack](ctx, g.c, listRacks, v)
}

// Rack returns a rack with what stands in it.
func (g Inventory) Rack(ctx context.Context, id string) (*v1.RackView, error) {
	return ask[v1.RackView](ctx, g.c, getRack, nil, id)
}

// Switches lists switches by name.
func (g Inventory) Switches(ctx context.Context, q v1.SwitchQuery) ([]v1.Switch, error) {
	v := query{}
	v.set("rack", q.Rack)
	v.set("role", q.Role)
	return all[v1.Switch](ctx, g.c, listSwitches, v)
}

// Switch returns the switch with a name or a GUID, with its cables.
func (g Inventory) Switch(ctx context.Context, id string) (*v1.SwitchView, error) {
	return ask[v1.SwitchView](ctx, g.c, getSwitch, nil, id)
}

// Cables lists cables by their ends A.
func (g Inventory) Cables(ctx context.Context, q v1.CableQuery) ([]v1.InventoryCable, error) {
	v := query{}
	v.set("rack", q.Rack)
	v.set("switch", q.Switch)
	v.set("host", q.Host)
	return all[v1.InventoryCable](ctx, g.c, listCables, v)
}

// Spares lists devices in stock, by kind and name.
func (g Inventory) Spares(ctx context.Context) ([]v1.Spare, error) {
	return all[v1.Spare](ctx, g.c, listSpares, query{})
}

// Check compares the inventory with the topology in force and with the fabric.
func (g Inventory) Check(ctx context.Context) (*v1.InventoryCheck, error) {
	return ask[v1.InventoryCheck](ctx, g.c, checkInventory, nil)
}

// Draft keeps a draft of the declared topology that is made of the inventory.
func (g Inventory) Draft(ctx context.Context, in v1.TopospecFromInventory) (*v1.TopospecRevision, error) {
	return ask[v1.TopospecRevision](ctx, g.c, draftInventory, in)
}

// Remove removes what left permanently: a site, rack, switch, adapter or cable.
func (g Inventory) Remove(ctx context.Context, kind, id string, in v1.HostRemoval) error {
	return do(ctx, g.c, removeEquipment, in, kind, id)
}
