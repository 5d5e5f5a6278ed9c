package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// IsolationProver reads the fabric and proves what it can of the isolation of tenants. Errors and actors are as those of
// FabricOperator.
type IsolationProver interface {
	// Prove refuses a request while it works for another one.
	Prove(ctx context.Context, actor string, q v1.IsolationQuery) (*v1.Isolation, error)
	// Kept returns what was found of all tenants last, and reads nothing.
	Kept(ctx context.Context) (*v1.IsolationKept, error)
	// Ports returns a page of what that proves of each port. The context says which tenants the credential has to do with.
	Ports(ctx context.Context, q v1.IsolationPortQuery) (*v1.IsolationPorts, error)
	// Drift returns a page of how the tables of ports differ from memberships, by the same reading.
	Drift(ctx context.Context, q v1.DriftQuery) (*v1.DriftList, error)
}

type (
	isolationInput      struct{ v1.IsolationQuery }
	isolationPortsInput struct{ v1.IsolationPortQuery }
	driftInput          struct{ v1.DriftQuery }
)

func isolationRoutes(s *Server, a huma.API) {
	register(s, a, operation{
		id: "verify-isolation", method: http.MethodPost, path: "/v1/verify", tag: "fabric", access: accessAudit, leader: true, long: true,
		summary: "Read the tables of all devices, and prove that tenants are isolated from each other, or show a packet that passes",
	}, func(ctx context.Context, in *isolationInput) (*bodyOutput[v1.Isolation], error) {
		if s.isolation == nil {
			return nil, unreadHere()
		}
		body, err := s.isolation.Prove(ctx, actor(ctx), in.IsolationQuery)
		return &bodyOutput[v1.Isolation]{body}, err
	})
	register(s, a, operation{
		id: "get-isolation", method: http.MethodGet, path: "/v1/verify", tag: "fabric", access: accessAudit, leader: true,
		summary: "Return what was found when the isolation of all tenants was examined last, and how old that is; nothing is read",
	}, func(ctx context.Context, _ *struct{}) (*bodyOutput[v1.IsolationKept], error) {
		if s.isolation == nil {
			return nil, unreadHere()
		}
		body, err := s.isolation.Kept(ctx)
		return &bodyOutput[v1.IsolationKept]{body}, err
	})
	register(s, a, operation{
		id: "list-isolation-ports", method: http.MethodGet, path: "/v1/verify/ports", tag: "fabric", access: accessAudit, leader: true,
		summary: "List what the newest examination of all tenants proves of each port, a page at a time; nothing is read",
	}, func(ctx context.Context, in *isolationPortsInput) (*bodyOutput[v1.IsolationPorts], error) {
		if s.isolation == nil {
			return nil, unreadHere()
		}
		body, err := s.isolation.Ports(ctx, in.IsolationPortQuery)
		return &bodyOutput[v1.IsolationPorts]{body}, err
	})
	register(s, a, operation{
		id: "list-drift", method: http.MethodGet, path: "/v1/fabric/drift", tag: "fabric", access: accessAudit, leader: true,
		summary: "List how the P_Key tables and enforcement of ports differ from what is wanted, by the newest reading, a page at a time; nothing is read",
	}, func(ctx context.Context, in *driftInput) (*bodyOutput[v1.DriftList], error) {
		if s.isolation == nil {
			return nil, unreadHere()
		}
		body, err := s.isolation.Drift(ctx, in.DriftQuery)
		return &bodyOutput[v1.DriftList]{body}, err
	})
}

// unreadHere is the problem where the fabric cannot be read.
func unreadHere() *problem.Problem {
	return problem.New(http.StatusServiceUnavailable, v1.CodeSMElsewhere,
		"this process has no port in the fabric, and cannot read it", "ask an instance that has the role sm")
}
