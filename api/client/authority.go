package client

import (
	"context"

	v1 "portcullis/api/v1"
)

// HostAuthorities lists what certificates of hosts come from.
func (c *Client) HostAuthorities(ctx context.Context) (*v1.HostAuthorities, error) {
	var out v1.HostAuthorities
	return answer(&out, c.get(ctx, "/v1/host-authority", &out))
}

// RotateHostAuthority makes the next one.
func (c *Client) RotateHostAuthority(ctx context.Context, in v1.AuthorityRotation) (*v1.HostAuthorities, error) {
	var out v1.HostAuthorities
	return answer(&out, c.post(ctx, "/v1/host-authority/rotate", in, &out))
}
