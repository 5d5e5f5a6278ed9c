package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

type hostsInput struct {
	View string `query:"view" enum:"full,summary,id" default:"full" doc:"how much of each host; summary: one line; id: nothing but the id"`
	v1.HostQuery
}

// hostPage is a page of hosts in one of the three views.
type hostPage struct{ Body hostList }

// hostList is a *v1.List of v1.Host, v1.HostSummary or v1.HostID.
type hostList any

// hostListRoute registers the list of hosts. Its answer has a shape for each view, which huma cannot
// say of a type, so the shapes are said here.
func (s *Server) hostListRoute(a huma.API) {
	schemas := a.OpenAPI().Components.Schemas
	register(s, a, operation{
		id: "list-hosts", method: http.MethodGet, path: "/v1/hosts", tag: "hosts",
		summary: "List hosts by id, a page at a time, all or those of a tenant, cluster, phase or rack", access: accessView,
		answer: &huma.Schema{AnyOf: []*huma.Schema{
			schemas.Schema(reflect.TypeFor[v1.List[v1.Host]](), true, "Hosts"),
			schemas.Schema(reflect.TypeFor[v1.List[v1.HostSummary]](), true, "HostSummaries"),
			schemas.Schema(reflect.TypeFor[v1.List[v1.HostID]](), true, "HostIDs"),
		}},
	}, func(ctx context.Context, in *hostsInput) (*hostPage, error) {
		var page hostList
		var err error
		switch in.View {
		case v1.ViewID:
			page, err = s.backend.Lifecycle.HostIDs(ctx, in.HostQuery)
		case v1.ViewSummary:
			page, err = s.backend.Lifecycle.HostSummaries(ctx, in.HostQuery)
		default:
			page, err = s.backend.Lifecycle.Hosts(ctx, in.HostQuery)
		}
		return &hostPage{page}, err
	})
}
