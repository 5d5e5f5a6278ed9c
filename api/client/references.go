package client

import (
	"context"
	"strconv"

	v1 "portcullis/api/v1"
)

// References asks about sets of reference values.
type References struct{ c *Client }

// References returns the operations about sets of reference values.
func (c *Client) References() References { return References{c} }

// Learn has a draft made.
func (g References) Learn(ctx context.Context, in v1.NewReference) (*v1.Reference, error) {
	return ask[v1.Reference](ctx, g.c, learnReference, in)
}

// Waive has the draft of a waiver made.
func (g References) Waive(ctx context.Context, in v1.NewWaiver) (*v1.Reference, error) {
	return ask[v1.Reference](ctx, g.c, waiveReference, in)
}

// List lists sets of reference values, of one class unless it is "".
func (g References) List(ctx context.Context, class string) (*v1.References, error) {
	v := query{}
	v.set("class", class)
	return find[v1.References](ctx, g.c, listReferences, nil, v)
}

// Get returns one set.
func (g References) Get(ctx context.Context, class string, version uint64) (*v1.Reference, error) {
	return ask[v1.Reference](ctx, g.c, getReference, nil, class, decimal(version))
}

// Approve puts a draft into force.
func (g References) Approve(ctx context.Context, class string, version uint64, in v1.ReferenceApprove) (*v1.Reference, error) {
	return ask[v1.Reference](ctx, g.c, approveReference, in, class, decimal(version))
}

// Expire ends a set.
func (g References) Expire(ctx context.Context, class string, version uint64, in v1.ReferenceExpire) (*v1.Reference, error) {
	return ask[v1.Reference](ctx, g.c, expireReference, in, class, decimal(version))
}

// DiffHost compares a set with the last boot of a host.
func (g References) DiffHost(ctx context.Context, class string, version uint64, host string) (*v1.ReferenceDiff, error) {
	return find[v1.ReferenceDiff](ctx, g.c, diffReference, nil, query{"host": {host}}, class, decimal(version))
}

// Diff compares a set with another version of its class.
func (g References) Diff(ctx context.Context, class string, version, with uint64) (*v1.ReferenceDiff, error) {
	return find[v1.ReferenceDiff](ctx, g.c, diffReference, nil, query{"with": {decimal(with)}}, class, decimal(version))
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
