package tenancy

import (
	"context"
	"slices"

	"portcullis/api/refusal"
	"portcullis/api/store"
)

// Owned is what the tenants of a credential have. It is read from these tenants downwards. So an object of another tenant is
// not looked at: the answer about it, and the work for that, are the same as for one that does not exist.
type Owned struct {
	tenants  []string          // sorted
	clusters map[string]string // tenant by cluster
	hosts    map[string]bool
}

// Confined reports whether the credential has to do with tenants of its own alone.
func Confined(ctx context.Context) bool { return scopeOf(ctx).confined() }

// Scoped reports whether the credential has to do with some clusters or tenants alone.
func Scoped(ctx context.Context) bool { return scopeOf(ctx) != nil }

// OwnedBy returns what the credential has, and nil for one that is not confined to tenants.
func OwnedBy(ctx context.Context, n store.Snapshot) (*Owned, error) {
	s := scopeOf(ctx)
	if !s.confined() {
		return nil, nil
	}
	names := slices.Compact(slices.Sorted(slices.Values(s.Tenants)))
	tenants, err := Tenants().Of(ctx, n, names)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	o := &Owned{tenants: names, clusters: map[string]string{}, hosts: map[string]bool{}}
	var under []string
	for i := range tenants {
		under = append(under, tenants[i].Value.Clusters...)
	}
	clusters, err := Clusters().Of(ctx, n, under)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	for i := range clusters {
		c := &clusters[i].Value
		if !slices.Contains(names, c.Tenant) {
			continue
		}
		o.clusters[c.Name] = c.Tenant
		for _, h := range c.Hosts {
			o.hosts[h] = true
		}
	}
	return o, nil
}

// HasHost reports whether a host is in one of the clusters. Every host is nil's.
func (o *Owned) HasHost(id string) bool { return o == nil || o.hosts[id] }

// CheckTenant refuses another tenant just as one that does not exist.
func (o *Owned) CheckTenant(name string) error {
	if o == nil || slices.Contains(o.tenants, name) {
		return nil
	}
	if err := ValidName("tenant", name); err != nil {
		return err
	}
	return noTenant(name)
}

// Clusters returns the names of the clusters, sorted, of one tenant alone unless that is "".
func (o *Owned) Clusters(tenant string) []string {
	var out []string
	for name, of := range o.clusters {
		if tenant == "" || of == tenant {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
