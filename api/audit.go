package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/audit"
	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// AuditReader reads the audit log. Package api/audit implements it.
type AuditReader interface {
	List(ctx context.Context, q v1.AuditQuery) (*v1.AuditEntries, error)
	Head(ctx context.Context) (*v1.AuditHead, error)
}

// AuditVerifier verifies the audit log. Package api/audit/verifier implements it.
type AuditVerifier interface {
	// Breaks returns where the log is not what was written, by the last verification.
	Breaks(ctx context.Context) (*v1.AuditBreaks, error)
	// AcceptBreak writes into the log that an actor accepts a break of it.
	AcceptBreak(ctx context.Context, actor string, in v1.AuditAccept) (*v1.AuditBreaks, error)
}

type auditAcceptInput struct{ Body v1.AuditAccept }

type auditInput struct{ v1.AuditQuery }

func (s *Server) auditRoutes(a huma.API) {
	register(s, a, operation{
		id: "list-audit", method: http.MethodGet, path: "/v1/audit", tag: "audit", access: accessAudit,
		summary: "List entries of the audit log, a page at a time",
	}, func(ctx context.Context, in *auditInput) (*bodyOutput[v1.AuditEntries], error) {
		if s.audit == nil {
			return nil, noAudit()
		}
		body, err := s.audit.List(ctx, in.AuditQuery)
		if errors.Is(err, audit.ErrCursor) {
			return nil, problem.New(http.StatusUnprocessableEntity, v1.CodeCursor, err.Error(), "begin without after")
		}
		return &bodyOutput[v1.AuditEntries]{body}, err
	})
	register(s, a, operation{
		id: "get-audit-head", method: http.MethodGet, path: "/v1/audit/head", tag: "audit", access: accessAudit,
		summary: "Show number and hash of the last entry of the audit log",
	}, func(ctx context.Context, _ *struct{}) (*bodyOutput[v1.AuditHead], error) {
		if s.audit == nil {
			return nil, noAudit()
		}
		body, err := s.audit.Head(ctx)
		return &bodyOutput[v1.AuditHead]{body}, err
	})
	register(s, a, operation{
		id: "list-audit-breaks", method: http.MethodGet, path: "/v1/audit/breaks", tag: "audit", access: accessAudit,
		summary: "List where the audit log is not what was written, by the last verification of this instance",
	}, func(ctx context.Context, _ *struct{}) (*bodyOutput[v1.AuditBreaks], error) {
		if s.breaks == nil {
			return nil, noAudit()
		}
		body, err := s.breaks.Breaks(ctx)
		return &bodyOutput[v1.AuditBreaks]{body}, err
	})
	register(s, a, operation{
		id: "accept-audit-break", method: http.MethodPost, path: "/v1/audit/breaks/accept", tag: "audit", access: accessOperate,
		summary: "Accept a break of the audit log: the log says so from then on, and counts as whole once all are accepted",
	}, func(ctx context.Context, in *auditAcceptInput) (*bodyOutput[v1.AuditBreaks], error) {
		if s.breaks == nil {
			return nil, noAudit()
		}
		body, err := s.breaks.AcceptBreak(ctx, actor(ctx), in.Body)
		return &bodyOutput[v1.AuditBreaks]{body}, err
	})
}

func noAudit() *problem.Problem {
	return problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable, "this process does not read the audit log", "ask the service")
}
