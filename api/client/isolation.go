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
	items := []v1.IsolationPortVerdict{}
	for {
		page, err := find[v1.IsolationPorts](ctx, c, isolationPorts, nil, v)
		if err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if page.Next == "" {
			page.Items = items
			return page, nil
		}
		v.set("after", page.Next)
	}
}
