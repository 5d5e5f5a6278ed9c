package client

import (
	"context"

	v1 "portcullis/api/v1"
)

// BeginInquiry begins to have a diagnostic tool read devices through the service.
func (c *Client) BeginInquiry(ctx context.Context, n v1.NewInquiry) (*v1.Inquiry, error) {
	return ask[v1.Inquiry](ctx, c, beginInquiry, n)
}

// AskInquiry sends requests of a tool, 1 to [v1.MaxInquiryMADs], and returns what it may see of the answers, in the same order.
func (c *Client) AskInquiry(ctx context.Context, id string, q v1.InquiryMADs) (*v1.InquiryAnswers, error) {
	return ask[v1.InquiryAnswers](ctx, c, askInquiry, q, id)
}

// EndInquiry ends it before its time is over.
func (c *Client) EndInquiry(ctx context.Context, id string) error {
	return do(ctx, c, endInquiry, nil, id)
}
