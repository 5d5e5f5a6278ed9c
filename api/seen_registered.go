package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

// RegisteredReader answers what is registered with subnet administration, by which ports, and how that stands. It shows no
// ServiceKey and no SA_Key.
type RegisteredReader interface {
	SA(ctx context.Context) (*v1.FabricSA, error)
	Groups(ctx context.Context, q v1.GroupQuery) (*v1.Page[v1.FabricGroup], error)
	// Members are those of the group with an MGID.
	Members(ctx context.Context, mgid string, q v1.RegisteredQuery) (*v1.Page[v1.FabricMember], error)
	Services(ctx context.Context, q v1.ServiceQuery) (*v1.Page[v1.FabricService], error)
	Subscriptions(ctx context.Context, q v1.RegisteredQuery) (*v1.Page[v1.FabricSubscription], error)
	Aliases(ctx context.Context, q v1.RegisteredQuery) (*v1.Page[v1.FabricAlias], error)
}

type (
	groupsInput     struct{ v1.GroupQuery }
	servicesInput   struct{ v1.ServiceQuery }
	registeredInput struct{ v1.RegisteredQuery }
	membersInput    struct {
		MGID string `path:"mgid" maxLength:"64" doc:"MGID of the group"`
		v1.RegisteredQuery
	}
)

func (s *Server) registeredRoutes(a huma.API) {
	read(s, a, "get-sa", "/v1/fabric/sa", "Show how subnet administration stands; never a key",
		func(r FabricReader, ctx context.Context, _ *struct{}) (*v1.FabricSA, error) { return r.SA(ctx) })
	read(s, a, "list-groups", "/v1/fabric/groups", "List multicast groups by MGID, a page at a time",
		func(r FabricReader, ctx context.Context, in *groupsInput) (*v1.Page[v1.FabricGroup], error) {
			return r.Groups(ctx, in.GroupQuery)
		})
	read(s, a, "list-members", "/v1/fabric/groups/{mgid}/members", "List the members of a multicast group by GUID, a page at a time",
		func(r FabricReader, ctx context.Context, in *membersInput) (*v1.Page[v1.FabricMember], error) {
			return r.Members(ctx, in.MGID, in.RegisteredQuery)
		})
	read(s, a, "list-services", "/v1/fabric/services", "List services that ports registered by ServiceID, a page at a time",
		func(r FabricReader, ctx context.Context, in *servicesInput) (*v1.Page[v1.FabricService], error) {
			return r.Services(ctx, in.ServiceQuery)
		})
	read(s, a, "list-subscriptions", "/v1/fabric/subscriptions", "List subscriptions to notices by GUID, a page at a time",
		func(r FabricReader, ctx context.Context, in *registeredInput) (*v1.Page[v1.FabricSubscription], error) {
			return r.Subscriptions(ctx, in.RegisteredQuery)
		})
	read(s, a, "list-aliases", "/v1/fabric/aliases", "List alias GUIDs that ports were given by port GUID, a page at a time",
		func(r FabricReader, ctx context.Context, in *registeredInput) (*v1.Page[v1.FabricAlias], error) {
			return r.Aliases(ctx, in.RegisteredQuery)
		})
}
