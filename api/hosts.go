package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

type hostInput struct {
	ID string `path:"id" maxLength:"128" doc:"host id as in inventory"`
}

type changeHostInput struct {
	ID string `path:"id" maxLength:"128" doc:"host id as in inventory"`
	MatchInput
}

type assignInput struct {
	MatchInput
	ID   string `path:"id" maxLength:"128" doc:"host id as in inventory"`
	Body v1.Assignment
}

type clearedInput struct {
	MatchInput
	ID   string `path:"id" maxLength:"128" doc:"host id as in inventory"`
	Body v1.TPMCleared
}

type resolvedInput struct {
	MatchInput
	ID   string `path:"id" maxLength:"128" doc:"host id as in inventory"`
	Body v1.GUIDResolved
}

type listOutput[T any] struct{ Body *v1.List[T] }

// list answers a page.
func list[T any](page *v1.List[T], err error) (*listOutput[T], error) {
	return &listOutput[T]{page}, err
}

type removeHostInput struct {
	MatchInput
	ID   string `path:"id" maxLength:"128" doc:"host id as in inventory"`
	Body v1.HostRemoval
}

// taggedHost answers a host with the number of its last assignment as ETag.
func taggedHost(h *v1.Host, err error) (*taggedOutput[v1.Host], error) {
	if err != nil {
		return nil, err
	}
	return &taggedOutput[v1.Host]{quoted(strconv.FormatInt(h.Epoch, 10)), h}, nil
}

func (s *Server) hostRoutes(a huma.API) {
	s.hostListRoute(a)
	register(s, a, operation{
		id: "get-host", method: http.MethodGet, path: "/v1/hosts/{id}", tag: "hosts",
		summary: "Show a host, its guards and why it is not admitted", access: accessView,
	}, func(ctx context.Context, in *hostInput) (*taggedOutput[v1.Host], error) {
		return taggedHost(s.backend.Lifecycle.Host(ctx, in.ID))
	})
	register(s, a, operation{
		id: "assign-host", method: http.MethodPost, path: "/v1/hosts/{id}/assign", tag: "hosts",
		summary: "Want the host in a cluster and open its provisioning window",
		access:  accessTenancy, status: http.StatusAccepted,
	}, func(ctx context.Context, in *assignInput) (*taggedOutput[v1.Host], error) {
		return taggedHost(s.backend.Lifecycle.Assign(ctx, actor(ctx), in.ID, in.Body))
	})
	register(s, a, operation{
		id: "release-host", method: http.MethodPost, path: "/v1/hosts/{id}/release", tag: "hosts",
		summary: "Withdraw the host's admission; it is released once its absence was read back",
		access:  accessTenancy, status: http.StatusAccepted,
	}, func(ctx context.Context, in *changeHostInput) (*taggedOutput[v1.Host], error) {
		return taggedHost(s.backend.Lifecycle.Release(ctx, actor(ctx), in.ID))
	})
	register(s, a, operation{
		id: "acknowledge-tpm-clear", method: http.MethodPost, path: "/v1/hosts/{id}/tpm-cleared", tag: "hosts",
		summary: "Acknowledge that the host's TPM was cleared, so that it may count boots from the beginning",
		access:  accessOperate,
	}, func(ctx context.Context, in *clearedInput) (*taggedOutput[v1.Host], error) {
		return taggedHost(s.backend.Attestation.AcknowledgeClear(ctx, actor(ctx), in.ID, in.Body))
	})
	register(s, a, operation{
		id: "resolve-guid-conflict", method: http.MethodPost, path: "/v1/hosts/{id}/guid-resolved", tag: "hosts",
		summary: "Say that it was found out who has the GUIDs that the host and others claim, so that none is held for them any longer",
		access:  accessOperate,
	}, func(ctx context.Context, in *resolvedInput) (*taggedOutput[v1.Host], error) {
		return taggedHost(s.backend.Lifecycle.ResolveGUID(ctx, actor(ctx), in.ID, in.Body))
	})
	register(s, a, operation{
		id: "remove-host", method: http.MethodDelete, path: "/v1/hosts/{id}", tag: "hosts",
		summary: "Take a host out of inventory that was released and left permanently: its adapters, EK and switch ports are free",
		access:  accessOperate,
	}, func(ctx context.Context, in *removeHostInput) (*struct{}, error) {
		return nil, s.backend.Lifecycle.RemoveHost(ctx, actor(ctx), in.ID, in.Body)
	})
	batchRoutes(s, a)
	s.watchRoute(a)
}
