package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	"portcullis/api/results"
	v1 "portcullis/api/v1"
)

// ResultKeeper has the keys that attestation results are signed by. Package api/results
// implements it. Errors and actors are as those of Backend.
type ResultKeeper interface {
	// JWKS returns the public keys as a JWK Set.
	JWKS(ctx context.Context) ([]byte, error)
	Keys(ctx context.Context) (*v1.ResultKeys, error)
	Rotate(ctx context.Context, actor string, in v1.ResultRotation) (*v1.ResultKeys, error)
}

type (
	resultInput struct {
		ID   string `path:"id" maxLength:"128" doc:"host id as in inventory"`
		Body *v1.ResultRequest
	}
	resultOutput struct {
		CacheControl string `header:"Cache-Control"`
		Body         *v1.AttestationResult
	}
	jwksOutput struct {
		ContentType  string `header:"Content-Type"`
		CacheControl string `header:"Cache-Control"`
		Body         []byte
	}
	resultRotateInput struct{ Body v1.ResultRotation }
)

// jwkSet is the shape of a JWK Set with keys of P-256. Its names are those of package token, which writes it.
func jwkSet() *huma.Schema {
	text := func(what string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: what} }
	return &huma.Schema{
		Type: huma.TypeObject, Required: []string{"keys"},
		Properties: map[string]*huma.Schema{"keys": {
			Type: huma.TypeArray,
			Items: &huma.Schema{
				Type: huma.TypeObject, Required: []string{"kty", "crv", "x", "y", "kid", "alg", "use"},
				Properties: map[string]*huma.Schema{
					"kty": text("EC"), "crv": text("P-256"), "x": text("base64url, 32 bytes"), "y": text("base64url, 32 bytes"),
					"kid": text("names the key in the header of a token"), "alg": text("ES256"), "use": text("sig"),
				},
			},
		}},
	}
}

// keysOfResults returns the keeper, or why there is none.
func (s *Server) keysOfResults() (ResultKeeper, error) {
	if s.results == nil {
		return nil, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable,
			"the service signs no attestation results", "name a root for their keys (results.root) and start it again")
	}
	return s.results, nil
}

func (s *Server) resultRoutes(a huma.API) {
	register(s, a, operation{
		id: "attestation-result", method: http.MethodPost, path: "/v1/hosts/{id}/attestation-result", tag: "results",
		summary: "Have a token signed that says to others where the host stands now", access: accessView,
	}, func(ctx context.Context, in *resultInput) (*resultOutput, error) {
		var nonce []byte
		if in.Body != nil {
			nonce = in.Body.Nonce
		}
		r, err := s.backend.Attestation.AttestationResult(ctx, in.ID, nonce)
		return &resultOutput{"no-store", r}, err
	})
	register(s, a, operation{
		id: "result-jwks", method: http.MethodGet, path: "/.well-known/jwks.json", tag: "results",
		summary: "Get the public keys that attestation results are verified by (JWK Set, RFC 7517)", access: accessPublic,
		answer: jwkSet(), answerType: "application/jwk-set+json",
	}, func(ctx context.Context, _ *struct{}) (*jwksOutput, error) {
		k, err := s.keysOfResults()
		if err != nil {
			return nil, err
		}
		set, err := k.JWKS(ctx)
		return &jwksOutput{"application/jwk-set+json", fmt.Sprintf("public, max-age=%d", int(results.MaxAge.Seconds())), set}, err
	})
	register(s, a, operation{
		id: "list-result-keys", method: http.MethodGet, path: "/v1/results/keys", tag: "results",
		summary: "List the keys that attestation results are signed by, and since when", access: accessView,
	}, func(ctx context.Context, _ *struct{}) (*bodyOutput[v1.ResultKeys], error) {
		k, err := s.keysOfResults()
		if err != nil {
			return nil, err
		}
		out, err := k.Keys(ctx)
		return &bodyOutput[v1.ResultKeys]{out}, err
	})
	register(s, a, operation{
		id: "rotate-result-key", method: http.MethodPost, path: "/v1/results/keys/rotate", tag: "results",
		summary: "Have another key sign attestation results, and revoke those before if they were stolen or lost", access: accessOperate,
	}, func(ctx context.Context, in *resultRotateInput) (*bodyOutput[v1.ResultKeys], error) {
		k, err := s.keysOfResults()
		if err != nil {
			return nil, err
		}
		out, err := k.Rotate(ctx, actor(ctx), in.Body)
		return &bodyOutput[v1.ResultKeys]{out}, err
	})
}
