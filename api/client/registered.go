package client

import (
	"context"
	"iter"

	v1 "portcullis/api/v1"
)

// Registered asks about what hosts have registered with subnet administration.
type Registered struct{ c *Client }

// Registered returns the operations about what hosts have registered with subnet administration.
func (c *Client) Registered() Registered { return Registered{c} }

// SA says how subnet administration stands.
func (g Registered) SA(ctx context.Context) (*v1.FabricSA, error) {
	return ask[v1.FabricSA](ctx, g.c, getSA, nil)
}

// Groups returns multicast groups by MGID, page by page.
func (g Registered) Groups(ctx context.Context, q v1.GroupQuery) iter.Seq2[*v1.Page[v1.FabricGroup], error] {
	v := registered(&q.RegisteredQuery)
	v.set("mgid", q.MGID)
	v.set("p_key", q.PKey)
	return pages[v1.FabricGroup](ctx, g.c, listGroups, v)
}

// Members returns the members of the group with an MGID, page by page.
func (g Registered) Members(ctx context.Context, mgid string, q v1.RegisteredQuery) iter.Seq2[*v1.Page[v1.FabricMember], error] {
	return pages[v1.FabricMember](ctx, g.c, listMembers, registered(&q), mgid)
}

// Services returns services by ServiceID, page by page.
func (g Registered) Services(ctx context.Context, q v1.ServiceQuery) iter.Seq2[*v1.Page[v1.FabricService], error] {
	v := registered(&q.RegisteredQuery)
	v.set("service_id", q.ID)
	v.set("service_name", q.Name)
	v.set("p_key", q.PKey)
	return pages[v1.FabricService](ctx, g.c, listServices, v)
}

// Subscriptions returns subscriptions to notices, page by page.
func (g Registered) Subscriptions(ctx context.Context, q v1.RegisteredQuery) iter.Seq2[*v1.Page[v1.FabricSubscription], error] {
	return pages[v1.FabricSubscription](ctx, g.c, listSubscriptions, registered(&q))
}

// Aliases returns alias GUIDs that ports were given, page by page.
func (g Registered) Aliases(ctx context.Context, q v1.RegisteredQuery) iter.Seq2[*v1.Page[v1.FabricAlias], error] {
	return pages[v1.FabricAlias](ctx, g.c, listAliases, registered(&q))
}

func registered(q *v1.RegisteredQuery) query {
	v := query{}
	v.set("port", q.Port)
	v.set("host", q.Host)
	v.set("tenant", q.Tenant)
	return v.page(q.PageQuery)
}
