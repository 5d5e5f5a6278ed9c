package client

import (
	"context"
	"encoding/json"

	v1 "portcullis/api/v1"
)

// Results asks about attestation results.
type Results struct{ c *Client }

// Results returns the operations about attestation results.
func (c *Client) Results() Results { return Results{c} }

// Keys returns the keys that results are signed by.
func (g Results) Keys(ctx context.Context) (*v1.ResultKeys, error) {
	return ask[v1.ResultKeys](ctx, g.c, getResultKeys, nil)
}

// RotateKey has another key sign results.
func (g Results) RotateKey(ctx context.Context, in v1.ResultRotation) (*v1.ResultKeys, error) {
	return ask[v1.ResultKeys](ctx, g.c, rotateResultKey, in)
}

// JWKS returns the public keys that results are verified by, as a JWK Set.
func (g Results) JWKS(ctx context.Context) (json.RawMessage, error) {
	out, err := ask[json.RawMessage](ctx, g.c, getJWKS, nil)
	if err != nil {
		return nil, err
	}
	return *out, nil
}
