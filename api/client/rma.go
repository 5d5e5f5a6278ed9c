package client

import (
	"context"
	"net/url"

	v1 "portcullis/api/v1"
)

// RMAs lists replacements of devices, the newest first.
func (c *Client) RMAs(ctx context.Context) (*v1.RMAs, error) {
	var out v1.RMAs
	return answer(&out, c.get(ctx, "/v1/topospec/rma", &out))
}

// RMA returns the state of a replacement.
func (c *Client) RMA(ctx context.Context, ticket string) (*v1.RMA, error) {
	var out v1.RMA
	return answer(&out, c.get(ctx, rmaPath(ticket, ""), &out))
}

// StartRMA opens a replacement.
func (c *Client) StartRMA(ctx context.Context, in v1.NewRMA) (*v1.RMA, error) {
	var out v1.RMA
	return answer(&out, c.post(ctx, "/v1/topospec/rma", in, &out))
}

// ConfirmRMA takes the step of a replacement that waits for a second person.
func (c *Client) ConfirmRMA(ctx context.Context, ticket string, in v1.RMAConfirm) (*v1.RMA, error) {
	var out v1.RMA
	var body any // services of before take none
	if in.Reason != "" {
		body = in
	}
	return answer(&out, c.post(ctx, rmaPath(ticket, "/confirm"), body, &out))
}

// CancelRMA ends a replacement before the new device has the place.
func (c *Client) CancelRMA(ctx context.Context, ticket string, in v1.RMACancel) (*v1.RMA, error) {
	var out v1.RMA
	return answer(&out, c.post(ctx, rmaPath(ticket, "/cancel"), in, &out))
}

func rmaPath(ticket, verb string) string { return "/v1/topospec/rma/" + url.PathEscape(ticket) + verb }
