package client

import (
	"context"

	v1 "portcullis/api/v1"
)

// LendKey lends the M_Key of one device to a tool for a while, or ends that.
func (c *Client) LendKey(ctx context.Context, l v1.KeyLoan) (*v1.LentKey, error) {
	var out v1.LentKey
	return answer(&out, c.post(ctx, "/v1/fabric/keys/lend", l, &out))
}

// LendSAKey returns the SA_Key in force, sealed.
func (c *Client) LendSAKey(ctx context.Context, l v1.SAKeyLoan) (*v1.SealedKeys, error) {
	var out v1.SealedKeys
	return answer(&out, c.post(ctx, "/v1/fabric/keys/sa-key", l, &out))
}

// RetireKeys destroys the keys of a device that left permanently.
func (c *Client) RetireKeys(ctx context.Context, r v1.KeyRetirement) (*v1.FabricKeys, error) {
	var out v1.FabricKeys
	return answer(&out, c.post(ctx, "/v1/fabric/keys/retire", r, &out))
}
