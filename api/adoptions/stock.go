package adoptions

import (
	"context"
	"maps"
	"slices"

	"portcullis/api/adoption"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// item is a membership of an adoption with what is recorded of it.
type item struct {
	key   records.Key
	m     records.Adopted
	grant records.Grant // zero: there is none any longer
	found records.Membership
	at    int64 // revision of the grant
	host  string
	rec   hostrecord.Record
}

// kept reports whether the membership is granted as adopted.
func (i *item) kept() bool { return i.grant.Adopted == i.m.Adoption && !i.grant.Withdrawn }

// replaced reports whether admission granted the membership itself.
func (i *item) replaced() bool { return i.grant.Adopted != i.m.Adoption && i.grant.Host != "" }

// absent reports whether the membership is proven absent from switch port and adapter.
func (i *item) absent() bool {
	st := records.Standing{Grant: i.grant, Modified: i.at, Found: i.found}
	return i.grant.Adopted == i.m.Adoption && st.Proven()
}

// subject names the host of the membership for the brake.
func (i *item) subject() string {
	if i.host != "" {
		return i.host
	}
	return i.key.GUID.String()
}

// stockOf reads the memberships of an adoption, or of all where id is "", in key order.
func stockOf(ctx context.Context, n store.Snapshot, id string) ([]item, error) {
	members, _, err := records.Adoptions().List(ctx, n, "")
	if err != nil {
		return nil, err
	}
	members = slices.DeleteFunc(members, func(m store.Record[records.Adopted]) bool { return id != "" && m.Value.Adoption != id })
	if len(members) == 0 {
		return nil, nil
	}
	keys := make([]string, len(members))
	for i := range members {
		keys[i] = members[i].Key
	}
	grants, err := byKey(records.Grants().Of(ctx, n, keys))
	if err != nil {
		return nil, err
	}
	found, err := byKey(records.Memberships().Of(ctx, n, keys))
	if err != nil {
		return nil, err
	}
	out := make([]item, len(members))
	for i := range members {
		k, err := records.ParseKey(members[i].Key)
		if err != nil {
			return nil, err
		}
		g := grants[members[i].Key]
		out[i] = item{key: k, m: members[i].Value, grant: g.Value, at: g.Modified, found: found[members[i].Key].Value}
	}
	return out, nameHosts(ctx, n, out)
}

// nameHosts finds the hosts that have the ports in the inventory.
func nameHosts(ctx context.Context, n store.Snapshot, items []item) error {
	hosts, _, err := inventory.Hosts().List(ctx, n, "")
	if err != nil {
		return err
	}
	of := map[ib.GUID]string{}
	for i := range hosts {
		for _, p := range hosts[i].Value.Ports() {
			of[p.GUID] = hosts[i].Key
		}
	}
	ids := map[string]bool{}
	for i := range items {
		if items[i].host = of[items[i].key.GUID]; items[i].host != "" {
			ids[items[i].host] = true
		}
	}
	recs, err := byKey(hostrecord.Records().Of(ctx, n, slices.Sorted(maps.Keys(ids))))
	for i := range items {
		items[i].rec = recs[items[i].host].Value
	}
	return err
}

func byKey[T any](list []store.Record[T], err error) (map[string]store.Record[T], error) {
	out := make(map[string]store.Record[T], len(list))
	for i := range list {
		out[list[i].Key] = list[i]
	}
	return out, err
}

// view is what operators see of a membership.
func (i *item) view() v1.AdoptedMember {
	out := v1.AdoptedMember{GUID: i.key.GUID, Place: i.key.Place, PKey: i.key.PKey.Full(), Device: i.m.Device, Host: i.host, Since: i.grant.Since, State: "waiting"}
	if i.grant.Limited {
		out.PKey = i.key.PKey.Limited()
	}
	st := records.Standing{Grant: i.grant, Modified: i.at, Found: i.found}
	switch {
	case i.grant.Withdrawn:
		out.State, out.Detail = "leaving", "not yet proven absent from the switch port; it ended: "+i.m.Cause
		if st.Absent() {
			out.Detail = "not yet proven absent from the adapter; it ended: " + i.m.Cause
		}
	case st.Applied():
		out.State = "kept"
	case st.Current(records.Refused):
		out.State, out.Detail = "refused", i.found.Reason
	}
	return out
}

// List returns all adoptions, the newest first.
func (s *Service) List(ctx context.Context) (*v1.List[v1.Adoption], error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	recs, _, err := Records().List(ctx, snap, "")
	if err != nil {
		return nil, err
	}
	out := &v1.List[v1.Adoption]{Items: make([]v1.Adoption, 0, len(recs))}
	for i := range slices.Backward(recs) {
		a := recs[i].Value.view(recs[i].Key)
		if a.State == v1.AdoptionFound {
			items, err := stockOf(ctx, snap, a.ID)
			if err != nil {
				return nil, err
			}
			if a.Digest, a.Memberships, err = digestOf(items); err != nil {
				return nil, err
			}
		}
		out.Items = append(out.Items, a)
	}
	return out, nil
}

// Show returns an adoption with its memberships.
func (s *Service) Show(ctx context.Context, id string) (*v1.AdoptionView, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	rec, err := get(ctx, snap, id)
	if err != nil {
		return nil, err
	}
	out := &v1.AdoptionView{Adoption: rec.view(id), Members: []v1.AdoptedMember{}}
	device := map[ib.GUID]string{}
	for i := range rec.Ports {
		device[rec.Ports[i].GUID] = rec.Ports[i].Device
	}
	for _, m := range adoption.Memberships(rec.Ports) {
		out.Members = append(out.Members, v1.AdoptedMember{GUID: m.GUID, Place: m.Place, PKey: m.PKey, Device: device[m.GUID], State: v1.AdoptionStaged, Since: rec.Staged})
	}
	items, err := stockOf(ctx, snap, id)
	if err != nil {
		return nil, err
	}
	if rec.State == v1.AdoptionFound {
		if out.Digest, out.Memberships, err = digestOf(items); err != nil {
			return nil, err
		}
	}
	for i := range items {
		if items[i].kept() || items[i].grant.Adopted == id {
			out.Members = append(out.Members, items[i].view())
		}
	}
	return out, nil
}
