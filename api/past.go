package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/credential"
	"portcullis/api/roles"
	v1 "portcullis/api/v1"
)

// Historian answers how the fabric was. Package api/fabric/past implements it. proofs says whether the caller may see what was proven.
type Historian interface {
	Known(ctx context.Context, proofs bool) (*v1.FabricHistory, error)
	At(ctx context.Context, q v1.PastQuery, proofs bool) (*v1.FabricPast, error)
	Changes(ctx context.Context, q v1.PastChangeQuery, proofs bool) (*v1.PastChanges, error)
}

func past[I, T any](s *Server, a huma.API, id, path, summary string, answer func(Historian, context.Context, *I, bool) (*T, error)) {
	register(s, a, operation{id: id, method: http.MethodGet, path: path, tag: "fabric", summary: summary, access: accessView, leader: true}, func(ctx context.Context, in *I) (*bodyOutput[T], error) {
		if s.past == nil {
			return nil, unreadHere()
		}
		who, _ := ctx.Value(principalKey{}).(credential.Principal)
		body, err := answer(s.past, ctx, in, who.PKeys == nil && roles.Allows(who.Role, "list-isolation-ports"))
		return &bodyOutput[T]{body}, err
	})
}

func pastRoutes(s *Server, a huma.API) {
	past(s, a, "get-history", "/v1/fabric/history", "Say of which times it is known how the fabric was, and when it changed",
		func(h Historian, ctx context.Context, _ *struct{}, proofs bool) (*v1.FabricHistory, error) {
			return h.Known(ctx, proofs)
		})
	past(s, a, "get-past", "/v1/fabric/history/at", "Show the fabric as it was at a time: what the map draws",
		func(h Historian, ctx context.Context, in *v1.PastQuery, proofs bool) (*v1.FabricPast, error) {
			return h.At(ctx, *in, proofs)
		})
	past(s, a, "list-changes", "/v1/fabric/history/changes", "List what changed in the fabric between two times, a page at a time",
		func(h Historian, ctx context.Context, in *v1.PastChangeQuery, proofs bool) (*v1.PastChanges, error) {
			return h.Changes(ctx, *in, proofs)
		})
}
