package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// ReceiptIssuer issues receipts about the isolation of tenants, and has the keys that sign them. Package api/receipts implements it.
// Errors and actors are as those of Backend.
type ReceiptIssuer interface {
	// Issue returns a receipt: one line of JSON. The context says which tenants the credential has to do with.
	Issue(ctx context.Context, actor string, q v1.ReceiptRequest) ([]byte, error)
	Keys(ctx context.Context) (*v1.ReceiptKeys, error)
	Rotate(ctx context.Context, actor string, in v1.ReceiptRotation) (*v1.ReceiptKeys, error)
	ReceiptLog
}

type (
	receiptInput  struct{ Body v1.ReceiptRequest }
	receiptOutput struct {
		ContentType  string `header:"Content-Type"`
		CacheControl string `header:"Cache-Control"`
		Body         []byte
	}
	receiptRotateInput struct{ Body v1.ReceiptRotation }
)

// typeDSSE is the media type of an envelope in JSON.
const typeDSSE = "application/vnd.dsse.envelope.v1+json"

// dsseEnvelope is the shape of a receipt. Its names are those of package receipt, which writes it.
func dsseEnvelope() *huma.Schema {
	text := func(what string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: what} }
	return &huma.Schema{
		Type: huma.TypeObject, Required: []string{"payload", "payloadType", "signatures"},
		Properties: map[string]*huma.Schema{
			"payload": text("in-toto Statement v1 with the predicate urn:portcullis:isolation-receipt:1, in base64"), "payloadType": text("application/vnd.in-toto+json"),
			"signatures": {
				Type: huma.TypeArray,
				Items: &huma.Schema{
					Type: huma.TypeObject, Required: []string{"keyid", "sig"},
					Properties: map[string]*huma.Schema{"keyid": text("names the key"), "sig": text("Ed25519, in base64")},
				},
			},
		},
	}
}

// issuerOfReceipts returns the issuer, or why there is none.
func issuerOfReceipts(s *Server) (ReceiptIssuer, error) {
	if s.receipts == nil {
		return nil, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable,
			"the service issues no receipts", "name a root for their keys (results.root) and start it again")
	}
	return s.receipts, nil
}

func receiptRoutes(s *Server, a huma.API) {
	register(s, a, operation{
		id: "issue-receipt", method: http.MethodPost, path: "/v1/receipts", tag: "fabric", access: accessOperate, leader: true, long: true,
		summary: "Prove the isolation of tenants, and have a signed statement of it made that is verified without the service (DSSE, in-toto)",
		answer:  dsseEnvelope(), answerType: typeDSSE,
	}, func(ctx context.Context, in *receiptInput) (*receiptOutput, error) {
		k, err := issuerOfReceipts(s)
		if err != nil {
			return nil, err
		}
		out, err := k.Issue(ctx, actor(ctx), in.Body)
		return &receiptOutput{typeDSSE, "no-store", out}, err
	})
	register(s, a, operation{
		id: "list-receipt-keys", method: http.MethodGet, path: "/v1/receipts/keys", tag: "results",
		summary: "List the public keys that receipts are verified by (Ed25519, PEM), and since when they sign", access: accessPublic,
	}, func(ctx context.Context, _ *struct{}) (*bodyOutput[v1.ReceiptKeys], error) {
		k, err := issuerOfReceipts(s)
		if err != nil {
			return nil, err
		}
		out, err := k.Keys(ctx)
		return &bodyOutput[v1.ReceiptKeys]{out}, err
	})
	register(s, a, operation{
		id: "rotate-receipt-key", method: http.MethodPost, path: "/v1/receipts/keys/rotate", tag: "results",
		summary: "Have another key sign receipts, and publish those before no longer if they were stolen or lost", access: accessOperate,
	}, func(ctx context.Context, in *receiptRotateInput) (*bodyOutput[v1.ReceiptKeys], error) {
		k, err := issuerOfReceipts(s)
		if err != nil {
			return nil, err
		}
		out, err := k.Rotate(ctx, actor(ctx), in.Body)
		return &bodyOutput[v1.ReceiptKeys]{out}, err
	})
}
