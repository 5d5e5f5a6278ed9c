package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// KeyOperator changes which devices have keys. Errors and actors are as those of FabricOperator. Nothing that it returns
// shows a key.
type KeyOperator interface {
	// ReleaseKeys begins to make all devices return their keys, or to issue keys again. It is durable when it returns.
	ReleaseKeys(ctx context.Context, actor string, r v1.KeyRelease) (*v1.FabricKeys, error)
	// MoveKey has a device use its key at another place.
	MoveKey(ctx context.Context, actor string, m v1.KeyMove) (*v1.FabricKey, error)
	// SealedKeys returns what is stored about keys, as it is sealed.
	SealedKeys(ctx context.Context, actor string) (*v1.SealedKeys, error)
	// LendKey lends the key of one device to a tool for a while, or ends that. It is
	// durable when it returns.
	LendKey(ctx context.Context, actor string, l v1.KeyLoan) (*v1.LentKey, error)
	// LendSAKey returns what is stored about the SA_Key in force, as it is sealed.
	LendSAKey(ctx context.Context, actor string, l v1.SAKeyLoan) (*v1.SealedKeys, error)
	// RetireKeys destroys the keys of a device that left permanently. It is durable when it returns.
	RetireKeys(ctx context.Context, actor string, r v1.KeyRetirement) (*v1.FabricKeys, error)
	// RecordRehearsal verifies the proof that an escrow kit has every key, and records it.
	RecordRehearsal(ctx context.Context, actor string, r v1.KeyRehearsal) (*v1.KeyRehearsed, error)
}

type (
	releaseInput struct{ Body v1.KeyRelease }
	moveInput    struct{ Body v1.KeyMove }
	loanInput    struct{ Body v1.KeyLoan }
	saKeyInput   struct{ Body v1.SAKeyLoan }
	retireInput  struct{ Body v1.KeyRetirement }

	rehearsalInput struct{ Body v1.KeyRehearsal }
)

func (s *Server) keyRoutes(a huma.API) {
	read(s, a, "get-keys", "/v1/fabric/keys", "Show how the keys of devices stand; never a key",
		func(r FabricReader, ctx context.Context, _ *struct{}) (*v1.FabricKeys, error) { return r.Keys(ctx) })
	read(s, a, "list-keys", "/v1/fabric/keys/devices", "List end ports with the state and age of their keys, a page at a time",
		func(r FabricReader, ctx context.Context, in *pageInput) (*v1.Page[v1.FabricKey], error) {
			return r.DeviceKeys(ctx, in.PageQuery)
		})
	operate(s, a, "release-keys", "/v1/fabric/keys/release", "Have all devices return their keys, or assign them again",
		func(o FabricOperator, ctx context.Context, in *releaseInput) (*v1.FabricKeys, error) {
			return o.ReleaseKeys(ctx, actor(ctx), in.Body)
		})
	operate(s, a, "move-key", "/v1/fabric/keys/move", "Have a device use its key at another place than it was given it at",
		func(o FabricOperator, ctx context.Context, in *moveInput) (*v1.FabricKey, error) {
			return o.MoveKey(ctx, actor(ctx), in.Body)
		})
	operate(s, a, "get-sealed-keys", "/v1/fabric/keys/sealed", "Return what is stored about keys, sealed, for an escrow kit or an export",
		func(o FabricOperator, ctx context.Context, _ *struct{}) (*v1.SealedKeys, error) {
			return o.SealedKeys(ctx, actor(ctx))
		})
	operate(s, a, "lend-key", "/v1/fabric/keys/lend", "Lend the key of one device to a tool for a while; it comes sealed, and changes when the time is over",
		func(o FabricOperator, ctx context.Context, in *loanInput) (*v1.LentKey, error) {
			return o.LendKey(ctx, actor(ctx), in.Body)
		})
	operate(s, a, "lend-sa-key", "/v1/fabric/keys/sa-key", "Return the SA_Key in force, sealed, for a tool that asks subnet administration",
		func(o FabricOperator, ctx context.Context, in *saKeyInput) (*v1.SealedKeys, error) {
			return o.LendSAKey(ctx, actor(ctx), in.Body)
		})
	operate(s, a, "retire-keys", "/v1/fabric/keys/retire", "Destroy the keys of a device that left permanently",
		func(o FabricOperator, ctx context.Context, in *retireInput) (*v1.FabricKeys, error) {
			return o.RetireKeys(ctx, actor(ctx), in.Body)
		})
	operate(s, a, "record-rehearsal", "/v1/fabric/keys/rehearsal", "Record that an escrow kit was opened and has every key",
		func(o FabricOperator, ctx context.Context, in *rehearsalInput) (*v1.KeyRehearsed, error) {
			return o.RecordRehearsal(ctx, actor(ctx), in.Body)
		})
}

// operate registers an operation by which operators change the fabric, or that is
// put into the audit log.
func operate[I, T any](s *Server, a huma.API, id, path, summary string, do func(FabricOperator, context.Context, *I) (*T, error)) {
	register(s, a, operation{
		id: id, method: http.MethodPost, path: path, tag: "fabric", summary: summary, access: accessOperate, leader: true,
	}, func(ctx context.Context, in *I) (*bodyOutput[T], error) {
		if _, err := s.reader(); err != nil {
			return nil, err
		}
		if s.operator == nil {
			return nil, problem.New(http.StatusConflict, v1.CodeReadOnly,
				"this socket only shows the fabric", "ask the service, which knows who you are: --service https://HOST:PORT")
		}
		body, err := do(s.operator, ctx, in)
		return &bodyOutput[T]{body}, err
	})
}
