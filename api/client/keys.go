package client

import (
	"context"
	"iter"

	v1 "portcullis/api/v1"
)

// Keys asks about keys of devices.
type Keys struct{ c *Client }

// Keys returns the operations about keys of devices.
func (c *Client) Keys() Keys { return Keys{c} }

// Get says how the keys of devices stand.
func (g Keys) Get(ctx context.Context) (*v1.FabricKeys, error) {
	return ask[v1.FabricKeys](ctx, g.c, getKeys, nil)
}

// Release begins to make all devices return their keys, or to issue keys again.
func (g Keys) Release(ctx context.Context, in v1.KeyRelease) (*v1.FabricKeys, error) {
	return ask[v1.FabricKeys](ctx, g.c, releaseKeys, in)
}

// Move has a device use its key at another place.
func (g Keys) Move(ctx context.Context, in v1.KeyMove) (*v1.FabricKey, error) {
	return ask[v1.FabricKey](ctx, g.c, moveKey, in)
}

// Sealed returns what the service stores about keys, as it is sealed.
func (g Keys) Sealed(ctx context.Context) (*v1.SealedKeys, error) {
	return ask[v1.SealedKeys](ctx, g.c, sealedKeys, nil)
}

// Lend lends the M_Key of one device to a tool for a while, or ends that.
func (g Keys) Lend(ctx context.Context, in v1.KeyLoan) (*v1.LentKey, error) {
	return ask[v1.LentKey](ctx, g.c, lendKey, in)
}

// LendSAKey returns the SA_Key in force, sealed.
func (g Keys) LendSAKey(ctx context.Context, in v1.SAKeyLoan) (*v1.SealedKeys, error) {
	return ask[v1.SealedKeys](ctx, g.c, lendSAKey, in)
}

// Retire destroys the keys of a device that left permanently.
func (g Keys) Retire(ctx context.Context, in v1.KeyRetirement) (*v1.FabricKeys, error) {
	return ask[v1.FabricKeys](ctx, g.c, retireKeys, in)
}

// Rehearsed records the proof that an escrow kit has every key.
func (g Keys) Rehearsed(ctx context.Context, in v1.KeyRehearsal) (*v1.KeyRehearsed, error) {
	return ask[v1.KeyRehearsed](ctx, g.c, rehearsedKeys, in)
}

// Devices returns end ports with the state and age of their keys, page by page.
func (g Keys) Devices(ctx context.Context, q v1.PageQuery) iter.Seq2[*v1.Page[v1.FabricKey], error] {
	return pages[v1.FabricKey](ctx, g.c, listDeviceKeys, query{}.page(q))
}
