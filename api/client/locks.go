package client

import (
	"context"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Locks asks about locks of adapters.
type Locks struct{ c *Client }

// Locks returns the operations about locks of adapters.
func (c *Client) Locks() Locks { return Locks{c} }

// Orders returns the orders for the adapters of the host that the client's token, a ticket, was issued to. The ticket
// is used up.
func (g Locks) Orders(ctx context.Context, in v1.LockRequest) (*v1.LockOrders, error) {
	return ask[v1.LockOrders](ctx, g.c, lockOrders, in)
}

// Report says what became of the orders that came with the client's token, a ticket for reports. It is used up.
func (g Locks) Report(ctx context.Context, in v1.LockReport) error {
	return do(ctx, g.c, reportLocks, in)
}

// List returns the state of the locks of adapters, of all pages.
func (g Locks) List(ctx context.Context, q v1.LockQuery) (*v1.List[v1.Lock], error) {
	v := query{}
	v.set("host", q.Host)
	items, err := all[v1.Lock](ctx, g.c, listLocks, v.page(q.PageQuery))
	return answer(&v1.List[v1.Lock]{Items: items}, err)
}

// Get returns one, by the adapter's node GUID.
func (g Locks) Get(ctx context.Context, guid ib.GUID) (*v1.Lock, error) {
	return ask[v1.Lock](ctx, g.c, getLock, nil, guid.String())
}

// Release decides that an adapter leaves.
func (g Locks) Release(ctx context.Context, guid ib.GUID, in v1.LockRelease) (*v1.Lock, error) {
	return ask[v1.Lock](ctx, g.c, releaseLock, in, guid.String())
}

// Retain takes that back.
func (g Locks) Retain(ctx context.Context, guid ib.GUID) error {
	return do(ctx, g.c, retainLock, nil, guid.String())
}
