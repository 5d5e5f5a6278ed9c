package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

// Tenancy is what the routes of tenants, clusters and P_Keys need from the service. Package tenancy implements it. Errors,
// actors and lists are as those of [Backend].
type Tenancy interface {
	Tenants(ctx context.Context, q v1.TenantQuery) (*v1.List[v1.Tenant], error)
	Tenant(ctx context.Context, name string) (*v1.Tenant, error)
	CreateTenant(ctx context.Context, actor string, t v1.NewTenant) (*v1.Tenant, error)
	DeleteTenant(ctx context.Context, actor, name string) error
	// SetQuota replaces the quota of a tenant.
	SetQuota(ctx context.Context, actor, name string, q v1.TenantQuota) (*v1.Tenant, error)
	Clusters(ctx context.Context, q v1.ClusterQuery) (*v1.List[v1.Cluster], error)
	Cluster(ctx context.Context, name string) (*v1.Cluster, error)
	CreateCluster(ctx context.Context, actor string, c v1.NewCluster) (*v1.Cluster, error)
	DeleteCluster(ctx context.Context, actor, name string) error
	// Use has the hosts of a cluster use a shared one, as limited members; StopUse
	// ends that.
	Use(ctx context.Context, actor, cluster, shared string, u v1.ClusterUse) (*v1.Cluster, error)
	StopUse(ctx context.Context, actor, cluster, shared string) (*v1.Cluster, error)
	QuarantinedPKeys(ctx context.Context, q v1.PageQuery) (*v1.List[v1.QuarantinedPKey], error)
}

type nameInput struct {
	Name string `path:"name" maxLength:"127" doc:"name of the tenant or cluster; to a credential of one tenant, NAME is short for TENANT.NAME"`
}

// changeNameInput names an object, and maybe the version of it that is meant.
type changeNameInput struct {
	Name string `path:"name" maxLength:"127" doc:"name of the tenant or cluster; to a credential of one tenant, NAME is short for TENANT.NAME"`
	MatchInput
}

type tenantsInput struct{ v1.TenantQuery }

type tenantInput struct{ Body v1.NewTenant }

type quotaInput struct {
	Name string `path:"name" maxLength:"63" doc:"name of the tenant"`
	MatchInput
	Body v1.TenantQuota
}

type clustersInput struct{ v1.ClusterQuery }

type clusterInput struct{ Body v1.NewCluster }

type useInput struct {
	MatchInput
	Name   string `path:"name" maxLength:"127" doc:"name of the cluster"`
	Shared string `path:"shared" maxLength:"127" doc:"name of the shared cluster"`
	Body   *v1.ClusterUse
}

type stopUseInput struct {
	MatchInput
	Name   string `path:"name" maxLength:"127" doc:"name of the cluster"`
	Shared string `path:"shared" maxLength:"127" doc:"name of the shared cluster"`
}

// taggedTenant answers a tenant with its version.
func taggedTenant(t *v1.Tenant, err error) (*taggedOutput[v1.Tenant], error) {
	if err != nil {
		return nil, err
	}
	return &taggedOutput[v1.Tenant]{quoted(t.Version), t}, nil
}

// taggedCluster answers a cluster with its version.
func taggedCluster(c *v1.Cluster, err error) (*taggedOutput[v1.Cluster], error) {
	if err != nil {
		return nil, err
	}
	return &taggedOutput[v1.Cluster]{quoted(c.Version), c}, nil
}

func (s *Server) tenancyRoutes(a huma.API) {
	register(s, a, operation{
		id: "list-tenants", method: http.MethodGet, path: "/v1/tenants", tag: "tenancy",
		summary: "List tenants by name, a page at a time", access: accessView,
	}, func(ctx context.Context, in *tenantsInput) (*listOutput[v1.Tenant], error) {
		return list(s.tenancy.Tenants(ctx, in.TenantQuery))
	})
	register(s, a, operation{
		id: "create-tenant", method: http.MethodPost, path: "/v1/tenants", tag: "tenancy",
		summary: "Create a tenant", access: accessTenancy, status: http.StatusCreated,
	}, func(ctx context.Context, in *tenantInput) (*taggedOutput[v1.Tenant], error) {
		return taggedTenant(s.tenancy.CreateTenant(ctx, actor(ctx), in.Body))
	})
	register(s, a, operation{
		id: "get-tenant", method: http.MethodGet, path: "/v1/tenants/{name}", tag: "tenancy",
		summary: "Show a tenant, what it has and the most that it may have", access: accessView,
	}, func(ctx context.Context, in *nameInput) (*taggedOutput[v1.Tenant], error) {
		return taggedTenant(s.tenancy.Tenant(ctx, in.Name))
	})
	register(s, a, operation{
		id: "delete-tenant", method: http.MethodDelete, path: "/v1/tenants/{name}", tag: "tenancy",
		summary: "Delete a tenant that has no cluster", access: accessTenancy,
	}, func(ctx context.Context, in *changeNameInput) (*struct{}, error) {
		return nil, s.tenancy.DeleteTenant(ctx, actor(ctx), in.Name)
	})
	register(s, a, operation{
		id: "set-tenant-quota", method: http.MethodPut, path: "/v1/tenants/{name}/quota", tag: "tenancy",
		summary: "Replace the quota of a tenant: it bounds what is added, and takes nothing away", access: accessOperate,
	}, func(ctx context.Context, in *quotaInput) (*taggedOutput[v1.Tenant], error) {
		return taggedTenant(s.tenancy.SetQuota(ctx, actor(ctx), in.Name, in.Body))
	})
	register(s, a, operation{
		id: "list-clusters", method: http.MethodGet, path: "/v1/clusters", tag: "tenancy",
		summary: "List clusters by name, a page at a time", access: accessView,
	}, func(ctx context.Context, in *clustersInput) (*listOutput[v1.Cluster], error) {
		return list(s.tenancy.Clusters(ctx, in.ClusterQuery))
	})
	register(s, a, operation{
		id: "create-cluster", method: http.MethodPost, path: "/v1/clusters", tag: "tenancy",
		summary: "Create a cluster with a P_Key of its own", access: accessTenancy, status: http.StatusCreated,
	}, func(ctx context.Context, in *clusterInput) (*taggedOutput[v1.Cluster], error) {
		return taggedCluster(s.tenancy.CreateCluster(ctx, actor(ctx), in.Body))
	})
	register(s, a, operation{
		id: "get-cluster", method: http.MethodGet, path: "/v1/clusters/{name}", tag: "tenancy",
		summary: "Show a cluster", access: accessView,
	}, func(ctx context.Context, in *nameInput) (*taggedOutput[v1.Cluster], error) {
		return taggedCluster(s.tenancy.Cluster(ctx, in.Name))
	})
	register(s, a, operation{
		id: "delete-cluster", method: http.MethodDelete, path: "/v1/clusters/{name}", tag: "tenancy",
		summary: "Delete a cluster that has no host; its P_Key is quarantined until proven absent",
		access:  accessTenancy,
	}, func(ctx context.Context, in *changeNameInput) (*struct{}, error) {
		return nil, s.tenancy.DeleteCluster(ctx, actor(ctx), in.Name)
	})
	register(s, a, operation{
		id: "use-cluster", method: http.MethodPut, path: "/v1/clusters/{name}/uses/{shared}", tag: "tenancy",
		summary: "Have the hosts of a cluster use a shared one, as limited members", access: accessTenancy,
	}, func(ctx context.Context, in *useInput) (*taggedOutput[v1.Cluster], error) {
		var how v1.ClusterUse
		if in.Body != nil {
			how = *in.Body
		}
		return taggedCluster(s.tenancy.Use(ctx, actor(ctx), in.Name, in.Shared, how))
	})
	register(s, a, operation{
		id: "stop-using-cluster", method: http.MethodDelete, path: "/v1/clusters/{name}/uses/{shared}", tag: "tenancy",
		summary: "Have the hosts of a cluster use a shared one no longer", access: accessTenancy,
	}, func(ctx context.Context, in *stopUseInput) (*taggedOutput[v1.Cluster], error) {
		return taggedCluster(s.tenancy.StopUse(ctx, actor(ctx), in.Name, in.Shared))
	})
	register(s, a, operation{
		id: "list-quarantined-pkeys", method: http.MethodGet, path: "/v1/pkeys/quarantined", tag: "tenancy",
		summary: "List P_Keys that may not be given out yet, and what they wait for, a page at a time", access: accessView,
	}, func(ctx context.Context, in *pageInput) (*listOutput[v1.QuarantinedPKey], error) {
		return list(s.tenancy.QuarantinedPKeys(ctx, in.PageQuery))
	})
}
