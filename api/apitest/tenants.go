package apitest

import (
	"context"
	"slices"
	"strconv"
	"time"

	"portcullis/api/ifmatch"
	"portcullis/api/label"
	"portcullis/api/page"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// SetQuarantined puts the quarantined P_Keys in place.
func (b *Backend) SetQuarantined(q ...v1.QuarantinedPKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pkeys = q
}

// Tenants implements api.Tenancy.
func (b *Backend) Tenants(_ context.Context, q v1.TenantQuery) (*v1.List[v1.Tenant], error) {
	all, err := sorted(b, b.tenants, func(t v1.Tenant) string { return t.Name })
	if err != nil {
		return nil, err
	}
	if all, err = chosen(all, q.Selector, func(t *v1.Tenant) label.Set { return t.Labels }); err != nil {
		return nil, err
	}
	return page.Cut("tenants", q.PageQuery, all, func(t *v1.Tenant) string { return t.Name })
}

// Tenant implements api.Tenancy.
func (b *Backend) Tenant(_ context.Context, name string) (*v1.Tenant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.tenants[name]
	if !ok {
		return nil, notFound("tenant", name)
	}
	if b.renews {
		b.made++
		again := t
		again.Version = strconv.Itoa(b.made)
		b.tenants[name] = again
	}
	return &t, nil
}

// CreateTenant implements api.Tenancy.
func (b *Backend) CreateTenant(_ context.Context, _ string, n v1.NewTenant) (*v1.Tenant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.tenants[n.Name]; ok {
		return nil, conflict("tenant_exists", "tenant "+n.Name+" exists", "choose another name")
	}
	b.made++
	t := v1.Tenant{Name: n.Name, Created: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Version: strconv.Itoa(b.made), Labels: n.Labels}
	b.tenants[n.Name] = t
	return &t, nil
}

// DeleteTenant implements api.Tenancy.
func (b *Backend) DeleteTenant(ctx context.Context, _, name string) error {
	return remove(ctx, b, b.tenants, func(t v1.Tenant) string { return t.Version }, "tenant", name)
}

// SetQuota implements api.Tenancy. What the tenant has is nothing, or what SetUse says.
func (b *Backend) SetQuota(ctx context.Context, _, name string, q v1.TenantQuota) (*v1.Tenant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.tenants[name]
	if !ok {
		return nil, notFound("tenant", name)
	}
	if !ifmatch.Matches(ctx, t.Version) {
		return nil, changed("tenant", name)
	}
	b.made++
	t.Quota, t.Exceeded, t.Version = &q, nil, strconv.Itoa(b.made)
	if q.Hosts != nil && t.Use.Hosts > *q.Hosts {
		t.Exceeded = []string{"hosts"}
	}
	b.tenants[name] = t
	return &t, nil
}

// SetUse has a tenant show that it has so much.
func (b *Backend) SetUse(name string, use v1.TenantUse) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tenants[name]
	t.Use = use
	b.tenants[name] = t
}

// Clusters implements api.Tenancy.
func (b *Backend) Clusters(_ context.Context, q v1.ClusterQuery) (*v1.List[v1.Cluster], error) {
	all, err := sorted(b, b.clusters, func(c v1.Cluster) string { return c.Name })
	if err != nil {
		return nil, err
	}
	if all, err = chosen(all, q.Selector, func(c *v1.Cluster) label.Set { return c.Labels }); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c v1.Cluster) bool { return q.Tenant != "" && c.Tenant != q.Tenant })
	return page.Cut("clusters", q.PageQuery, all, func(c *v1.Cluster) string { return c.Name })
}

// Cluster implements api.Tenancy.
func (b *Backend) Cluster(_ context.Context, name string) (*v1.Cluster, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.clusters[name]
	if !ok {
		return nil, notFound("cluster", name)
	}
	if b.renews {
		b.made++
		again := c
		again.Version = strconv.Itoa(b.made)
		b.clusters[name] = again
	}
	return &c, nil
}

// CreateCluster implements api.Tenancy.
func (b *Backend) CreateCluster(_ context.Context, _ string, n v1.NewCluster) (*v1.Cluster, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.tenants[n.Tenant]; !ok {
		return nil, notFound("tenant", n.Tenant)
	}
	b.made++
	c := v1.Cluster{
		Version: strconv.Itoa(b.made), Labels: n.Labels,
		Name: n.Name, Tenant: n.Tenant, PKey: ib.PKey(0x0001 + len(b.clusters)), Hosts: []string{},
		Created: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
	}
	b.clusters[n.Name] = c
	return &c, nil
}

// DeleteCluster implements api.Tenancy.
func (b *Backend) DeleteCluster(ctx context.Context, _, name string) error {
	b.mu.Lock()
	for _, h := range b.hosts {
		if h.Cluster == name {
			b.mu.Unlock()
			return conflict("cluster_in_use", "cluster "+name+" still has host "+h.ID, "release its hosts first")
		}
	}
	b.mu.Unlock()
	return remove(ctx, b, b.clusters, func(c v1.Cluster) string { return c.Version }, "cluster", name)
}

// Use implements api.Tenancy.
func (b *Backend) Use(ctx context.Context, _, cluster, shared string, u v1.ClusterUse) (*v1.Cluster, error) {
	if u.Membership == v1.MembershipFull {
		return nil, &refusal.Error{Code: "full_membership_refused", Status: refusal.Refused, Detail: "cluster " + cluster + " asks for full membership of " + shared}
	}
	return b.changeUses(ctx, cluster, shared, []string{shared})
}

// StopUse implements api.Tenancy.
func (b *Backend) StopUse(ctx context.Context, _, cluster, shared string) (*v1.Cluster, error) {
	return b.changeUses(ctx, cluster, shared, nil)
}

func (b *Backend) changeUses(ctx context.Context, cluster, shared string, uses []string) (*v1.Cluster, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.clusters[cluster]
	if _, there := b.clusters[shared]; !ok || !there {
		return nil, notFound("cluster", cluster+" or "+shared)
	}
	if !ifmatch.Matches(ctx, c.Version) {
		return nil, changed("cluster", cluster)
	}
	c.Uses = uses
	b.clusters[cluster] = c
	return &c, nil
}

// QuarantinedPKeys implements api.Tenancy.
func (b *Backend) QuarantinedPKeys(_ context.Context, q v1.PageQuery) (*v1.List[v1.QuarantinedPKey], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return page.Cut("quarantined", q, b.pkeys, func(k *v1.QuarantinedPKey) string { return k.PKey.String() })
}
