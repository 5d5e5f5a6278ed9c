package client

import (
	"context"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// LockOrders returns the orders for the adapters of the host that the client's token, a ticket, was issued to. The ticket
// is used up.
func (c *Client) LockOrders(ctx context.Context, in v1.LockRequest) (*v1.LockOrders, error) {
	var out v1.LockOrders
	return answer(&out, c.post(ctx, "/v1/attest/locks", in, &out))
}

// ReportLocks says what became of the orders that came with the client's token, a
// ticket for reports. It is used up.
func (c *Client) ReportLocks(ctx context.Context, in v1.LockReport) error {
	return c.post(ctx, "/v1/attest/locks/report", in, nil)
}

// Locks returns the state of the locks of adapters, of all pages.
func (c *Client) Locks(ctx context.Context, q v1.LockQuery) (*v1.List[v1.Lock], error) {
	v := query{}
	v.set("host", q.Host)
	items, err := all[v1.Lock](ctx, c, "/v1/locks", v.page(q.PageQuery))
	return answer(&v1.List[v1.Lock]{Items: items}, err)
}

// Lock returns one, by the adapter's node GUID.
func (c *Client) Lock(ctx context.Context, guid ib.GUID) (*v1.Lock, error) {
	var out v1.Lock
	return answer(&out, c.get(ctx, "/v1/locks/"+guid.String(), &out))
}

// ReleaseLock decides that an adapter leaves.
func (c *Client) ReleaseLock(ctx context.Context, guid ib.GUID, in v1.LockRelease) (*v1.Lock, error) {
	var out v1.Lock
	return answer(&out, c.post(ctx, "/v1/locks/"+guid.String()+"/release", in, &out))
}

// RetainLock takes that back.
func (c *Client) RetainLock(ctx context.Context, guid ib.GUID) error {
	return c.delete(ctx, "/v1/locks/"+guid.String()+"/release")
}
