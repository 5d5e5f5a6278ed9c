package client

import (
	"context"

	v1 "portcullis/api/v1"
)

// Review says what a restored state and the fabric differ in.
func (c *Client) Review(ctx context.Context) (*v1.Review, error) {
	var out v1.Review
	return answer(&out, c.get(ctx, "/v1/review", &out))
}

// ApproveReview has the restored state count for hosts.
func (c *Client) ApproveReview(ctx context.Context, in v1.ReviewDecision) (*v1.Review, error) {
	var out v1.Review
	return answer(&out, c.post(ctx, "/v1/review/approve", in, &out))
}

// RejectReview releases hosts, and takes all P_Keys of tenants off their ports.
func (c *Client) RejectReview(ctx context.Context, in v1.ReviewDecision) (*v1.Review, error) {
	var out v1.Review
	return answer(&out, c.post(ctx, "/v1/review/reject", in, &out))
}

// EndReview ends the review of a restored state.
func (c *Client) EndReview(ctx context.Context, in v1.ReviewEnd) (*v1.Review, error) {
	var out v1.Review
	return answer(&out, c.post(ctx, "/v1/review/end", in, &out))
}
