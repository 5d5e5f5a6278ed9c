package client

import (
	"context"

	v1 "portcullis/api/v1"
)

// Tenants asks about tenants.
type Tenants struct{ c *Client }

// Tenants returns the operations about tenants.
func (c *Client) Tenants() Tenants { return Tenants{c} }

// All lists all tenants, sorted by name.
func (g Tenants) All(ctx context.Context) ([]v1.Tenant, error) {
	return g.List(ctx, v1.TenantQuery{})
}

// List lists the tenants that q asks for, of all pages.
func (g Tenants) List(ctx context.Context, q v1.TenantQuery) ([]v1.Tenant, error) {
	v := query{}
	v.set("selector", q.Selector)
	return all[v1.Tenant](ctx, g.c, listTenants, v.page(q.PageQuery))
}

// Get returns one tenant.
func (g Tenants) Get(ctx context.Context, name string) (*v1.Tenant, error) {
	return ask[v1.Tenant](ctx, g.c, getTenant, nil, name)
}

// Create makes a tenant.
func (g Tenants) Create(ctx context.Context, in v1.NewTenant) (*v1.Tenant, error) {
	return ask[v1.Tenant](ctx, g.c, createTenant, in)
}

// Delete removes a tenant that has no cluster, of the version in IfMatch.
func (g Tenants) Delete(ctx context.Context, name string) error {
	return do(ctx, g.c, deleteTenant, nil, name)
}

// SetQuota replaces the quota of a tenant, of the version in IfMatch.
func (g Tenants) SetQuota(ctx context.Context, name string, in v1.TenantQuota) (*v1.Tenant, error) {
	return ask[v1.Tenant](ctx, g.c, setQuota, in, name)
}

// Plan says how what is there differs from what is wanted. It changes nothing.
func (g Tenants) Plan(ctx context.Context, w *v1.Wanted) (*v1.Plan, error) {
	return ask[v1.Plan](ctx, g.c, makePlan, w)
}

// Clusters asks about clusters and their P_Keys.
type Clusters struct{ c *Client }

// Clusters returns the operations about clusters and their P_Keys.
func (c *Client) Clusters() Clusters { return Clusters{c} }

// Get returns one cluster.
func (g Clusters) Get(ctx context.Context, name string) (*v1.Cluster, error) {
	return ask[v1.Cluster](ctx, g.c, getCluster, nil, name)
}

// Create makes a cluster; the service chooses its P_Key.
func (g Clusters) Create(ctx context.Context, in v1.NewCluster) (*v1.Cluster, error) {
	return ask[v1.Cluster](ctx, g.c, createCluster, in)
}

// Delete removes a cluster that has no host, of the version in IfMatch.
func (g Clusters) Delete(ctx context.Context, name string) error {
	return do(ctx, g.c, deleteCluster, nil, name)
}

// QuarantinedPKeys lists P_Keys that may not be given out yet.
func (g Clusters) QuarantinedPKeys(ctx context.Context) ([]v1.QuarantinedPKey, error) {
	return all[v1.QuarantinedPKey](ctx, g.c, listQuarantined, query{})
}

// All lists all clusters, sorted by name.
func (g Clusters) All(ctx context.Context) ([]v1.Cluster, error) {
	return g.List(ctx, v1.ClusterQuery{})
}

// List lists the clusters that q asks for, of all pages.
func (g Clusters) List(ctx context.Context, q v1.ClusterQuery) ([]v1.Cluster, error) {
	v := query{}
	v.set("tenant", q.Tenant)
	v.set("selector", q.Selector)
	return all[v1.Cluster](ctx, g.c, listClusters, v.page(q.PageQuery))
}

// Use has the hosts of a cluster use a shared one, as limited members.
func (g Clusters) Use(ctx context.Context, name, shared string, in v1.ClusterUse) (*v1.Cluster, error) {
	return ask[v1.Cluster](ctx, g.c, useCluster, in, name, shared)
}

// StopUse ends that, of the version of the cluster in IfMatch.
func (g Clusters) StopUse(ctx context.Context, name, shared string) (*v1.Cluster, error) {
	return ask[v1.Cluster](ctx, g.c, stopUse, nil, name, shared)
}
