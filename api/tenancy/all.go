package tenancy

import (
	"context"
	"slices"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// All returns all tenants and clusters that the credential may know of, as of n, by name. What tenants use is not counted.
func All(ctx context.Context, n store.Snapshot) (tenants map[string]v1.Tenant, clusters map[string]v1.Cluster, err error) {
	own, err := OwnedBy(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	ts, cs, err := recordsOf(ctx, n, own)
	if err != nil {
		return nil, nil, err
	}
	tenants, clusters = make(map[string]v1.Tenant, len(ts)), make(map[string]v1.Cluster, len(cs))
	for i := range ts {
		t := &ts[i].Value
		tenants[t.Name] = v1.Tenant{Name: t.Name, Created: t.Created, Version: t.version(), PKeys: t.PKeys, Set: t.Set, Labels: t.Labels, Quota: t.Quota}
	}
	for i := range cs {
		c := &cs[i].Value
		if own == nil || slices.Contains(own.tenants, c.Tenant) {
			clusters[c.Name] = *own.view(c)
		}
	}
	return tenants, clusters, nil
}

// recordsOf returns the records of all tenants and clusters, or of those that are owned.
func recordsOf(ctx context.Context, n store.Snapshot, own *Owned) ([]store.Record[Tenant], []store.Record[Cluster], error) {
	if own != nil {
		ts, err := Tenants().Of(ctx, n, own.tenants)
		if err != nil {
			return nil, nil, err
		}
		cs, err := Clusters().Of(ctx, n, own.Clusters(""))
		return ts, cs, err
	}
	ts, _, err := Tenants().List(ctx, n, "")
	if err != nil {
		return nil, nil, err
	}
	cs, _, err := Clusters().List(ctx, n, "")
	return ts, cs, err
}
