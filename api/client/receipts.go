package client

import (
	"context"
	"encoding/json"

	v1 "portcullis/api/v1"
)

// Receipts asks about receipts.
type Receipts struct{ c *Client }

// Receipts returns the operations about receipts.
func (c *Client) Receipts() Receipts { return Receipts{c} }

// Issue returns a receipt, as its file has it: one line of JSON and a line feed.
func (g Receipts) Issue(ctx context.Context, in v1.ReceiptRequest) ([]byte, error) {
	out, err := ask[json.RawMessage](ctx, g.c, issueReceipt, in)
	if err != nil {
		return nil, err
	}
	return append(*out, '\n'), nil
}

// Keys returns the keys that receipts are signed by.
func (g Receipts) Keys(ctx context.Context) (*v1.ReceiptKeys, error) {
	return ask[v1.ReceiptKeys](ctx, g.c, getReceiptKeys, nil)
}

// RotateKey has another key sign receipts.
func (g Receipts) RotateKey(ctx context.Context, in v1.ReceiptRotation) (*v1.ReceiptKeys, error) {
	return ask[v1.ReceiptKeys](ctx, g.c, rotateReceiptKey, in)
}
