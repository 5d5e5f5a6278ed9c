package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

// ReceiptLog shows the log of the receipts that were issued. Errors are as those of Backend.
type ReceiptLog interface {
	Checkpoint(ctx context.Context) ([]byte, error)
	LogProof(ctx context.Context, digest string) ([]byte, error)
	LogConsistency(ctx context.Context, from, to int64) (*v1.ReceiptLogConsistency, error)
	LogTile(ctx context.Context, level int, number int64) ([]byte, error)
}

type (
	receiptProofInput struct {
		Digest string `path:"digest" minLength:"64" maxLength:"64" doc:"SHA-256 of the receipt with its line feed, in lower-case hexadecimal"`
	}
	receiptTileInput struct {
		Level int   `path:"level" minimum:"0" maximum:"4" doc:"0: leaves"`
		Tile  int64 `path:"tile" minimum:"0" doc:"number of the tile in its level, from 0"`
	}
	receiptSizesInput struct{ v1.ReceiptLogQuery }
	noteOutput        struct {
		ContentType  string `header:"Content-Type"`
		CacheControl string `header:"Cache-Control"`
		Body         []byte
	}
)

const typeNote = "text/plain; charset=utf-8"

func textSchema(what string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: what}
}

// receiptLogRoutes are public: a leaf is a digest, of which nothing is learned but by those that have the receipt.
func receiptLogRoutes(s *Server, a huma.API) {
	register(s, a, operation{
		id: "receipt-log-checkpoint", method: http.MethodGet, path: "/v1/receipts/log/checkpoint", tag: "results", access: accessPublic,
		summary: "Get the signed head of the log of receipts (C2SP tlog-checkpoint)", answer: textSchema("a checkpoint"), answerType: "text/plain",
	}, func(ctx context.Context, _ *struct{}) (*noteOutput, error) {
		k, err := issuerOfReceipts(s)
		if err != nil {
			return nil, err
		}
		out, err := k.Checkpoint(ctx)
		return &noteOutput{typeNote, "no-store", out}, err
	})
	register(s, a, operation{
		id: "receipt-log-proof", method: http.MethodGet, path: "/v1/receipts/log/proofs/{digest}", tag: "results", access: accessPublic,
		summary: "Get the proof that a receipt is in the log (C2SP tlog-proof)", answer: textSchema("a proof with its checkpoint"), answerType: "text/plain",
	}, func(ctx context.Context, in *receiptProofInput) (*noteOutput, error) {
		k, err := issuerOfReceipts(s)
		if err != nil {
			return nil, err
		}
		out, err := k.LogProof(ctx, in.Digest)
		return &noteOutput{typeNote, "no-store", out}, err
	})
	register(s, a, operation{
		id: "receipt-log-consistency", method: http.MethodGet, path: "/v1/receipts/log/consistency", tag: "results", access: accessPublic,
		summary: "Get the proof that the log of one size continues that of a smaller one (RFC 6962)",
	}, func(ctx context.Context, in *receiptSizesInput) (*bodyOutput[v1.ReceiptLogConsistency], error) {
		k, err := issuerOfReceipts(s)
		if err != nil {
			return nil, err
		}
		out, err := k.LogConsistency(ctx, in.From, in.To)
		return &bodyOutput[v1.ReceiptLogConsistency]{out}, err
	})
	register(s, a, operation{
		id: "receipt-log-tile", method: http.MethodGet, path: "/v1/receipts/log/tiles/{level}/{tile}", tag: "results", access: accessPublic,
		summary: "Get up to 256 hashes of the log of receipts, of 32 bytes each (C2SP tlog-tiles)",
		answer:  textSchema("hashes"), answerType: "application/octet-stream",
	}, func(ctx context.Context, in *receiptTileInput) (*noteOutput, error) {
		k, err := issuerOfReceipts(s)
		if err != nil {
			return nil, err
		}
		out, err := k.LogTile(ctx, in.Level, in.Tile)
		return &noteOutput{"application/octet-stream", "no-store", out}, err
	})
}
