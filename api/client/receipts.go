package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	v1 "portcullis/api/v1"
)

// maxText bounds a checkpoint, a proof and a tile.
const maxText = 16 << 10

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

// Checkpoint returns the signed head of the log of receipts.
func (g Receipts) Checkpoint(ctx context.Context) ([]byte, error) {
	return g.text(ctx, getReceiptHead)
}

// Proof returns the proof that the receipt with a digest, in hexadecimal, is in the log.
func (g Receipts) Proof(ctx context.Context, digest string) ([]byte, error) {
	return g.text(ctx, getReceiptProof, digest)
}

// Consistency returns what proves that the log of one size continues that of a smaller one.
func (g Receipts) Consistency(ctx context.Context, q v1.ReceiptLogQuery) (*v1.ReceiptLogConsistency, error) {
	sizes := query{}
	sizes.set("from", strconv.FormatInt(q.From, 10))
	sizes.set("to", strconv.FormatInt(q.To, 10))
	return find[v1.ReceiptLogConsistency](ctx, g.c, compareReceiptHeads, nil, sizes)
}

// Tile returns up to 256 hashes of the log, of 32 bytes each; level 0 has the leaves.
func (g Receipts) Tile(ctx context.Context, level int, number int64) ([]byte, error) {
	return g.text(ctx, getReceiptTile, strconv.Itoa(level), strconv.FormatInt(number, 10))
}

// text returns an answer that is no JSON.
func (g Receipts) text(ctx context.Context, o operation, operands ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, g.c.timeout)
	defer cancel()
	resp, err := open(ctx, g.c, o, nil, operands...)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxText+1))
	if err == nil && len(data) > maxText {
		err = fmt.Errorf("it has more than %d bytes", maxText)
	}
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", o.path(operands), err)
	}
	return data, nil
}
