package client

import (
	"context"
	"iter"
	"net/url"

	v1 "portcullis/api/v1"
)

// SA says how subnet administration stands.
func (c *Client) SA(ctx context.Context) (*v1.FabricSA, error) {
	var out v1.FabricSA
	return answer(&out, c.get(ctx, "/v1/fabric/sa", &out))
}

// Groups returns multicast groups by MGID, page by page.
func (c *Client) Groups(ctx context.Context, q v1.GroupQuery) iter.Seq2[*v1.Page[v1.FabricGroup], error] {
	v := registered(&q.RegisteredQuery)
	v.set("mgid", q.MGID)
	v.set("p_key", q.PKey)
	return pages[v1.FabricGroup](ctx, c, "/v1/fabric/groups", v)
}

// Members returns the members of the group with an MGID, page by page.
func (c *Client) Members(ctx context.Context, mgid string, q v1.RegisteredQuery) iter.Seq2[*v1.Page[v1.FabricMember], error] {
	return pages[v1.FabricMember](ctx, c, "/v1/fabric/groups/"+url.PathEscape(mgid)+"/members", registered(&q))
}

// Services returns services by ServiceID, page by page.
func (c *Client) Services(ctx context.Context, q v1.ServiceQuery) iter.Seq2[*v1.Page[v1.FabricService], error] {
	v := registered(&q.RegisteredQuery)
	v.set("service_id", q.ID)
	v.set("service_name", q.Name)
	v.set("p_key", q.PKey)
	return pages[v1.FabricService](ctx, c, "/v1/fabric/services", v)
}

// Subscriptions returns subscriptions to notices, page by page.
func (c *Client) Subscriptions(ctx context.Context, q v1.RegisteredQuery) iter.Seq2[*v1.Page[v1.FabricSubscription], error] {
	return pages[v1.FabricSubscription](ctx, c, "/v1/fabric/subscriptions", registered(&q))
}

// Aliases returns alias GUIDs that ports were given, page by page.
func (c *Client) Aliases(ctx context.Context, q v1.RegisteredQuery) iter.Seq2[*v1.Page[v1.FabricAlias], error] {
	return pages[v1.FabricAlias](ctx, c, "/v1/fabric/aliases", registered(&q))
}

func registered(q *v1.RegisteredQuery) query {
	v := query{}
	v.set("port", q.Port)
	v.set("host", q.Host)
	v.set("tenant", q.Tenant)
	return v.page(q.PageQuery)
}
