package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

type nameInput struct {
	Name string `path:"name" maxLength:"63"`
}

type tenantInput struct{ Body v1.NewTenant }

type tenantOutput struct{ Body *v1.Tenant }

type clusterInput struct{ Body v1.NewCluster }

type useInput struct {
	Name   string `path:"name" maxLength:"63"`
	Shared string `path:"shared" maxLength:"63"`
	Body   *v1.ClusterUse
}

type stopUseInput struct {
	Name   string `path:"name" maxLength:"63"`
	Shared string `path:"shared" maxLength:"63"`
}

type clusterOutput struct{ Body *v1.Cluster }

func (s *Server) tenancyRoutes(a huma.API) {
	register(s, a, operation{
		id: "list-tenants", method: http.MethodGet, path: "/v1/tenants", tag: "tenancy",
		summary: "List tenants", access: accessView,
	}, func(ctx context.Context, _ *struct{}) (*listOutput[v1.Tenant], error) {
		return list(s.backend.Tenants(ctx))
	})
	register(s, a, operation{
		id: "create-tenant", method: http.MethodPost, path: "/v1/tenants", tag: "tenancy",
		summary: "Create a tenant", access: accessTenancy, status: http.StatusCreated,
	}, func(ctx context.Context, in *tenantInput) (*tenantOutput, error) {
		t, err := s.backend.CreateTenant(ctx, actor(ctx), in.Body)
		return &tenantOutput{t}, err
	})
	register(s, a, operation{
		id: "delete-tenant", method: http.MethodDelete, path: "/v1/tenants/{name}", tag: "tenancy",
		summary: "Delete a tenant that has no cluster", access: accessTenancy,
	}, func(ctx context.Context, in *nameInput) (*struct{}, error) {
		return nil, s.backend.DeleteTenant(ctx, actor(ctx), in.Name)
	})
	register(s, a, operation{
		id: "list-clusters", method: http.MethodGet, path: "/v1/clusters", tag: "tenancy",
		summary: "List clusters", access: accessView,
	}, func(ctx context.Context, _ *struct{}) (*listOutput[v1.Cluster], error) {
		return list(s.backend.Clusters(ctx))
	})
	register(s, a, operation{
		id: "create-cluster", method: http.MethodPost, path: "/v1/clusters", tag: "tenancy",
		summary: "Create a cluster with a P_Key of its own", access: accessTenancy, status: http.StatusCreated,
	}, func(ctx context.Context, in *clusterInput) (*clusterOutput, error) {
		c, err := s.backend.CreateCluster(ctx, actor(ctx), in.Body)
		return &clusterOutput{c}, err
	})
	register(s, a, operation{
		id: "get-cluster", method: http.MethodGet, path: "/v1/clusters/{name}", tag: "tenancy",
		summary: "Show a cluster", access: accessView,
	}, func(ctx context.Context, in *nameInput) (*clusterOutput, error) {
		c, err := s.backend.Cluster(ctx, in.Name)
		return &clusterOutput{c}, err
	})
	register(s, a, operation{
		id: "delete-cluster", method: http.MethodDelete, path: "/v1/clusters/{name}", tag: "tenancy",
		summary: "Delete a cluster that has no host; its P_Key is quarantined until proven absent",
		access:  accessTenancy,
	}, func(ctx context.Context, in *nameInput) (*struct{}, error) {
		return nil, s.backend.DeleteCluster(ctx, actor(ctx), in.Name)
	})
	register(s, a, operation{
		id: "use-cluster", method: http.MethodPut, path: "/v1/clusters/{name}/uses/{shared}", tag: "tenancy",
		summary: "Have the hosts of a cluster use a shared one, as limited members", access: accessTenancy,
	}, func(ctx context.Context, in *useInput) (*clusterOutput, error) {
		var how v1.ClusterUse
		if in.Body != nil {
			how = *in.Body
		}
		c, err := s.backend.Use(ctx, actor(ctx), in.Name, in.Shared, how)
		return &clusterOutput{c}, err
	})
	register(s, a, operation{
		id: "stop-using-cluster", method: http.MethodDelete, path: "/v1/clusters/{name}/uses/{shared}", tag: "tenancy",
		summary: "Have the hosts of a cluster use a shared one no longer", access: accessTenancy,
	}, func(ctx context.Context, in *stopUseInput) (*clusterOutput, error) {
		c, err := s.backend.StopUse(ctx, actor(ctx), in.Name, in.Shared)
		return &clusterOutput{c}, err
	})
	register(s, a, operation{
		id: "list-quarantined-pkeys", method: http.MethodGet, path: "/v1/pkeys/quarantined", tag: "tenancy",
		summary: "List P_Keys that may not be given out yet, and what they wait for", access: accessView,
	}, func(ctx context.Context, _ *struct{}) (*listOutput[v1.QuarantinedPKey], error) {
		return list(s.backend.QuarantinedPKeys(ctx))
	})
}
