package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	v1 "portcullis/api/v1"
)

// VerifyIsolation has the service read the tables of all devices, and returns what they prove of the isolation of tenants. It may
// take as long as ctx allows.
func (c *Client) VerifyIsolation(ctx context.Context, in v1.IsolationQuery) (*v1.Isolation, error) {
	q := query{}
	q.set("tenant", in.Tenant)
	q.flag("membership", in.Membership)
	resp, err := open(ctx, c, verifyIsolation, q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out v1.Isolation
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&out); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", verifyIsolation, err)
	}
	return &out, nil
}

// LastIsolation returns what was found when the isolation of all tenants was examined last.
func (c *Client) LastIsolation(ctx context.Context) (*v1.IsolationKept, error) {
	return find[v1.IsolationKept](ctx, c, getIsolation, nil, nil)
}

// IsolationPorts returns what the newest examination of all tenants proves of each port, all pages of it in one.
func (c *Client) IsolationPorts(ctx context.Context, q v1.IsolationPortQuery) (*v1.IsolationPorts, error) {
	v := query{}
	v.set("host", q.Host)
	v.set("tenant", q.Tenant)
	v.set("verdict", q.Verdict)
	v.page(q.PageQuery)
	return whole(ctx, c, isolationPorts, v, func(p *v1.IsolationPorts) (*[]v1.IsolationPortVerdict, string) { return &p.Items, p.Next })
}

// Drift returns how the tables of ports differ from what is wanted, by the newest reading, all pages of it in one.
func (c *Client) Drift(ctx context.Context, q v1.DriftQuery) (*v1.DriftList, error) {
	v := query{}
	v.set("host", q.Host)
	v.set("kind", q.Kind)
	v.page(q.PageQuery)
	return whole(ctx, c, fabricDrift, v, func(p *v1.DriftList) (*[]v1.Drift, string) { return &p.Items, p.Next })
}

// whole returns an answer that has more than a list, with the items of all pages.
func whole[P, I any](ctx context.Context, c *Client, op operation, v query, of func(*P) (items *[]I, next string)) (*P, error) {
	all := []I{}
	for {
		page, err := find[P](ctx, c, op, nil, v)
		if err != nil {
			return nil, err
		}
		items, next := of(page)
		all = append(all, *items...)
		if next == "" {
			*items = all
			return page, nil
		}
		v.set("after", next)
	}
}
