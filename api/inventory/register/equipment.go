package register

import (
	"context"
	"errors"
	"slices"

	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// putEquipment writes what a plan does to objects that are no hosts.
func putEquipment(tx *store.Tx, p *inventory.Plan) error {
	return errors.Join(
		putDelta(tx, inventory.Sites(), &p.Sites, func(s *inventory.Site) string { return s.ID }),
		putDelta(tx, inventory.Racks(), &p.Racks, func(r *inventory.Rack) string { return r.ID }),
		putDelta(tx, inventory.Switches(), &p.Switches, func(s *inventory.Switch) string { return s.ID }),
		putDelta(tx, inventory.Adapters(), &p.Adapters, func(a *inventory.Adapter) string { return a.NodeGUID.String() }),
		putDelta(tx, inventory.Trunks(), &p.Trunks, (*inventory.Trunk).Key),
	)
}

func putDelta[T any](tx *store.Tx, c store.Collection[T], d *inventory.Delta[T], key func(*T) string) error {
	for i := range d.Removed {
		c.Delete(tx, key(&d.Removed[i]))
	}
	for i := range d.Added {
		if err := c.Put(tx, key(&d.Added[i]), d.Added[i]); err != nil {
			return err
		}
	}
	for i := range d.Changed {
		if err := c.Put(tx, key(&d.Changed[i].After), d.Changed[i].After); err != nil {
			return err
		}
	}
	return nil
}

// replaceSwitch has the switch with the GUID to stand where the one with the GUID from stood, with its name and its cables
// to other switches. It reports whether inventory has either. A switch in stock with the GUID to leaves stock.
func replaceSwitch(ctx context.Context, tx *store.Tx, n store.Snapshot, from, to ib.GUID) (bool, error) {
	all, err := inventory.Load(ctx, n)
	if err != nil {
		return false, err
	}
	find := func(g ib.GUID) int {
		return slices.IndexFunc(all.Switches, func(s inventory.Switch) bool { return s.GUID == g })
	}
	was, now := find(from), find(to)
	if was < 0 {
		return false, nil
	}
	next := all.Switches[was]
	next.GUID, next.SystemImageGUID, next.AggregationGUID, next.Serial = to, 0, 0, ""
	if now >= 0 {
		spare := &all.Switches[now]
		if !spare.Spare {
			return false, refusal.New(refusal.Conflict, "switch_in_use", "name the switch that replaced it, or correct the inventory",
				"switch %s with GUID %v is in use: it does not replace %s", spare.ID, to, next.ID)
		}
		next.SystemImageGUID, next.AggregationGUID, next.Serial = spare.SystemImageGUID, spare.AggregationGUID, spare.Serial
		next.Model, next.NumPorts = spare.Model, spare.NumPorts
		inventory.Switches().Delete(tx, spare.ID)
	}
	return true, errors.Join(inventory.Switches().Put(tx, next.ID, next), moveTrunks(tx, all.Trunks, from, to))
}

// moveTrunks has the cables between switches that end at one switch end at another, at ports of the same number.
func moveTrunks(tx *store.Tx, trunks []inventory.Trunk, from, to ib.GUID) error {
	for i := range trunks {
		t := trunks[i]
		if t.A.Switch != from && t.B.Switch != from {
			continue
		}
		moved := t.Moved(from, to)
		if moved.Key() != t.Key() {
			inventory.Trunks().Delete(tx, t.Key())
		}
		if err := inventory.Trunks().Put(tx, moved.Key(), moved); err != nil {
			return err
		}
	}
	return nil
}
