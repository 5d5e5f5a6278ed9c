package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"portcullis/api/audit"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// RemoveEquipment removes an object that left permanently, and is no host. A site with racks stays, a rack with devices, and a switch to
// which a host is cabled. Cables to other switches go with their switch. A cable is named by one of its ends, as NAME/PORT or
// GUID/PORT; only one between switches is removed, since the cable of a host goes with the host or is replaced by an import.
func (s *Service) RemoveEquipment(ctx context.Context, actor string, kind inventory.Kind, id string, in v1.HostRemoval) error {
	why := strings.TrimSpace(in.Reason)
	if why == "" {
		return refusal.New(refusal.Invalid, "reason_missing", "say why it leaves", "no reason given")
	}
	return s.update(ctx, func(tx *store.Tx) error {
		head, err := store.Optional(inventory.Heads().Get(ctx, tx, inventory.HeadKey))
		if err != nil {
			return err
		}
		snap, err := tx.Snapshot(ctx)
		if err != nil {
			return err
		}
		all, err := inventory.Load(ctx, snap)
		if err != nil {
			return err
		}
		r := &removing{tx: tx, all: all, where: all.Locator()}
		if err := r.remove(kind, id); err != nil {
			return err
		}
		return errors.Join(
			inventory.Heads().Put(tx, inventory.HeadKey, inventory.Head{Imported: s.now(), Actor: actor, Hosts: head.Hosts}),
			s.log(ctx, tx, &audit.Change{
				Actor: actor, Action: "inventory.remove", Object: fmt.Sprintf("%s/%s", kind, refusal.Clip(id)), Before: r.before,
				Detail: refusal.ClipTo(r.what+": "+why, maxDetail),
			}),
		)
	})
}

// removing is a removal in its transaction.
type removing struct {
	tx     *store.Tx
	all    *inventory.Contents
	where  *inventory.Locator
	before []any
	what   string
}

func (r *removing) remove(kind inventory.Kind, id string) error {
	switch kind {
	case inventory.KindSite:
		return r.site(id)
	case inventory.KindRack:
		return r.rack(id)
	case inventory.KindSwitch:
		return r.aSwitch(id)
	case inventory.KindCable:
		return r.cable(id)
	case inventory.KindAdapter:
		return r.adapter(id)
	default:
		return refusal.New(refusal.Invalid, "kind_unknown", "want site, rack, switch, cable or adapter; of a host: portcullis host remove", "kind %q", refusal.Clip(string(kind)))
	}
}

// unknown refuses what inventory does not have.
func unknown(kind inventory.Kind, id string) error {
	return refusal.New(refusal.NotFound, string(kind)+"_unknown", "portcullis inventory show lists what there is", "no %s %q in inventory", kind, refusal.Clip(id))
}

// occupied refuses what others depend on.
func occupied(kind inventory.Kind, id, how string, by []string) error {
	return refusal.New(refusal.Conflict, string(kind)+"_occupied", "remove or move them first", "%s %s cannot be removed: %s %s", kind, id, how, refusal.Some(by))
}

func (r *removing) site(id string) error {
	i := slices.IndexFunc(r.all.Sites, func(s inventory.Site) bool { return s.ID == id })
	if i < 0 {
		return unknown(inventory.KindSite, id)
	}
	var racks []string
	for _, k := range r.all.Racks {
		if k.Site == id {
			racks = append(racks, k.ID)
		}
	}
	if len(racks) > 0 {
		return occupied(inventory.KindSite, id, "it has the racks", racks)
	}
	inventory.Sites().Delete(r.tx, id)
	r.before, r.what = []any{r.all.Sites[i]}, "site "+id
	return nil
}

func (r *removing) rack(id string) error {
	i := slices.IndexFunc(r.all.Racks, func(k inventory.Rack) bool { return k.ID == id })
	if i < 0 {
		return unknown(inventory.KindRack, id)
	}
	var devices []string
	for _, w := range r.all.Switches {
		if w.Rack == id {
			devices = append(devices, "switch "+w.ID)
		}
	}
	for j := range r.all.Hosts {
		if h := &r.all.Hosts[j]; h.Rack == id {
			devices = append(devices, "host "+h.ID)
		}
	}
	if len(devices) > 0 {
		return occupied(inventory.KindRack, id, "in it stand", devices)
	}
	inventory.Racks().Delete(r.tx, id)
	r.before, r.what = []any{r.all.Racks[i]}, "rack "+id
	return nil
}

func (r *removing) aSwitch(id string) error {
	guid, err := ib.ParseGUID(id)
	i := slices.IndexFunc(r.all.Switches, func(w inventory.Switch) bool { return w.ID == id || err == nil && w.GUID == guid })
	if i < 0 {
		return unknown(inventory.KindSwitch, id)
	}
	w := &r.all.Switches[i]
	var hosts []string
	for j := range r.all.Hosts {
		h := &r.all.Hosts[j]
		for _, p := range h.Ports() {
			if p.Cable.Switch == w.GUID {
				hosts = append(hosts, fmt.Sprintf("%s at port %d", h.ID, p.Cable.Port))
			}
		}
	}
	if len(hosts) > 0 {
		return occupied(inventory.KindSwitch, w.ID, "cabled to it are", hosts)
	}
	r.before, r.what = []any{*w}, r.where.Device(w.ID, w.Position)
	cables := 0
	for j := range r.all.Trunks {
		if t := &r.all.Trunks[j]; t.A.Switch == w.GUID || t.B.Switch == w.GUID {
			inventory.Trunks().Delete(r.tx, t.Key())
			r.before, cables = append(r.before, *t), cables+1
		}
	}
	inventory.Switches().Delete(r.tx, w.ID)
	r.what += fmt.Sprintf(" with %d cables to other switches", cables)
	return nil
}

func (r *removing) cable(id string) error {
	end, ok := r.end(id)
	i := slices.IndexFunc(r.all.Trunks, func(t inventory.Trunk) bool { return t.A == end || t.B == end })
	if !ok || i < 0 {
		return unknown(inventory.KindCable, id)
	}
	t := &r.all.Trunks[i]
	inventory.Trunks().Delete(r.tx, t.Key())
	r.before, r.what = []any{*t}, r.where.Trunk(t)
	return nil
}

// end returns a switch port that is named NAME/PORT or GUID/PORT.
func (r *removing) end(id string) (ib.Place, bool) {
	if p, err := ib.ParsePlace(id); err == nil {
		return p, true
	}
	cut := max(strings.LastIndexByte(id, '/'), 0)
	port, err := ib.ParsePortNum(strings.TrimPrefix(id[cut:], "/"))
	i := slices.IndexFunc(r.all.Switches, func(w inventory.Switch) bool { return w.ID == id[:cut] })
	if err != nil || i < 0 {
		return ib.Place{}, false
	}
	return ib.Place{Switch: r.all.Switches[i].GUID, Port: port}, true
}

func (r *removing) adapter(id string) error {
	guid, err := ib.ParseGUID(id)
	i := slices.IndexFunc(r.all.Adapters, func(a inventory.Adapter) bool { return a.NodeGUID == guid })
	if err != nil || i < 0 {
		return unknown(inventory.KindAdapter, id)
	}
	inventory.Adapters().Delete(r.tx, guid.String())
	r.before, r.what = []any{r.all.Adapters[i]}, fmt.Sprintf("adapter %v in stock", guid)
	return nil
}
