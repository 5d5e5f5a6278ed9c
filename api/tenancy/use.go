package tenancy

import (
	"context"

	"portcullis/api/fabric/records"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Leaving is a host that was released while a P_Key of its tenant may still be in its switch port. It counts as a host of that
// tenant until the port was read back without.
type Leaving struct {
	Tenant string `json:"tenant"`
}

// LeavingHosts holds hosts that are being released, by their ids. Package admission writes it as it settles a host.
func LeavingHosts() store.Collection[Leaving] { return store.NewCollection[Leaving]("leaving", 1) }

// tenantShown shows a tenant with what it has as of n.
func tenantShown(ctx context.Context, n store.Snapshot, t *Tenant) (*v1.Tenant, error) {
	out, err := tenantsShown(ctx, n, []*Tenant{t})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// tenantsShown shows tenants with what they have as of n, in their order. The clusters of all are read together.
func tenantsShown(ctx context.Context, n store.Snapshot, list []*Tenant) ([]*v1.Tenant, error) {
	var names []string
	for _, t := range list {
		names = append(names, t.Clusters...)
	}
	clusters, err := Clusters().Of(ctx, n, names)
	if err != nil {
		return nil, err
	}
	leaving, _, err := LeavingHosts().List(ctx, n, "")
	if err != nil {
		return nil, err
	}
	quarantined, err := quarantinedOf(ctx, n)
	if err != nil {
		return nil, err
	}
	of := map[string][]store.Record[Cluster]{}
	for i := range clusters {
		c := &clusters[i]
		of[c.Value.Tenant] = append(of[c.Value.Tenant], *c)
	}
	released := map[string][]store.Record[Leaving]{}
	for _, l := range leaving {
		released[l.Value.Tenant] = append(released[l.Value.Tenant], l)
	}
	out := make([]*v1.Tenant, len(list))
	for i, t := range list {
		use := hostsOf(t, of[t.Name], released[t.Name])
		use.PKeys = use.Clusters + quarantined[t.Name]
		out[i] = &v1.Tenant{
			Name: t.Name, Created: t.Created, Version: t.version(), PKeys: t.PKeys, Set: t.Set, Labels: t.Labels,
			Quota: t.Quota, Use: use, Exceeded: exceeded(t.Quota, &use),
		}
	}
	return out, nil
}

// hostsOf counts the clusters and hosts of a tenant. A shared cluster counts for its own tenant alone, and so do its hosts.
func hostsOf(t *Tenant, clusters []store.Record[Cluster], leaving []store.Record[Leaving]) v1.TenantUse {
	use := v1.TenantUse{Clusters: len(t.Clusters)}
	for i := range clusters {
		use.Hosts += len(clusters[i].Value.Hosts)
	}
	for i := range leaving {
		if leaving[i].Value.Tenant == t.Name {
			use.Releasing++
		}
	}
	use.Hosts += use.Releasing
	return use
}

// quarantinedOf counts the quarantined P_Keys of each tenant.
func quarantinedOf(ctx context.Context, n store.Snapshot) (map[string]int, error) {
	all, _, err := PKeys().List(ctx, n, "")
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for i := range all {
		r := &all[i]
		if r.Value.State != PKeyQuarantined {
			continue
		}
		tenant := r.Value.Tenant
		if tenant == "" {
			if tenant, err = tenantOfGrants(ctx, n, r.Key); err != nil {
				return nil, err
			}
		}
		out[tenant]++
	}
	return out, nil
}

// tenantOfGrants returns the tenant that had a P_Key whose record does not name it, as those of earlier releases do not. While a
// P_Key is quarantined, a grant of it is left.
func tenantOfGrants(ctx context.Context, n store.Snapshot, key string) (string, error) {
	k, err := ib.ParsePKey(key)
	if err != nil {
		return "", err
	}
	grants, _, err := records.Grants().List(ctx, n, records.PKeyPrefix(k))
	if err != nil {
		return "", err
	}
	for i := range grants {
		if g := &grants[i].Value; g.Tenant != "" && g.Adopted == "" {
			return g.Tenant, nil
		}
	}
	return "", nil
}
