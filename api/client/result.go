package client

import (
	"context"
	"encoding/json"
	"net/url"

	v1 "portcullis/api/v1"
)

// AttestationResult has a result about a host signed, which answers nonce unless that is
// nil.
func (c *Client) AttestationResult(ctx context.Context, host string, nonce []byte) (*v1.AttestationResult, error) {
	var out v1.AttestationResult
	return answer(&out, c.post(ctx, "/v1/hosts/"+url.PathEscape(host)+"/attestation-result", v1.ResultRequest{Nonce: nonce}, &out))
}

// ResultJWKS returns the public keys that results are verified by, as a JWK Set.
func (c *Client) ResultJWKS(ctx context.Context) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.get(ctx, "/.well-known/jwks.json", &out)
	return out, err
}

// ResultKeys returns the keys that results are signed by.
func (c *Client) ResultKeys(ctx context.Context) (*v1.ResultKeys, error) {
	var out v1.ResultKeys
	return answer(&out, c.get(ctx, "/v1/results/keys", &out))
}

// RotateResultKey has another key sign results.
func (c *Client) RotateResultKey(ctx context.Context, in v1.ResultRotation) (*v1.ResultKeys, error) {
	var out v1.ResultKeys
	return answer(&out, c.post(ctx, "/v1/results/keys/rotate", in, &out))
}
