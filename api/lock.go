package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// LockKeeper decides on the locks of adapters. Package api/locks implements it.
// Errors and actors are as those of Backend.
type LockKeeper interface {
	// AwaitsOrders refuses a ticket that Orders would refuse, and AwaitsReport one that
	// Report would.
	AwaitsOrders(ctx context.Context, ticket string) error
	AwaitsReport(ctx context.Context, ticket string) error
	// Orders returns orders for an agent about its host's adapters, for a ticket.
	Orders(ctx context.Context, ticket string, in v1.LockRequest) (*v1.LockOrders, error)
	// Report takes an agent's word for what became of its orders, for a ticket of theirs.
	Report(ctx context.Context, ticket string, in v1.LockReport) error
	// List returns the locks of all adapters, of those of one host if it is named.
	List(ctx context.Context, q v1.LockQuery) (*v1.List[v1.Lock], error)
	Show(ctx context.Context, guid ib.GUID) (*v1.Lock, error)
	// Release decides that an adapter leaves; Retain takes that back.
	Release(ctx context.Context, actor string, guid ib.GUID, in v1.LockRelease) (*v1.Lock, error)
	Retain(ctx context.Context, actor string, guid ib.GUID) (*v1.Lock, error)
}

// maxLockRequest bounds what an agent says of its adapters: as many settings as maxValues
// lets through, each with 511 bytes.
const maxLockRequest = 1 << 20

type (
	lockOrdersInput struct {
		Authorization string `header:"Authorization" doc:"Bearer and the ticket"`
		Body          v1.LockRequest
	}
	lockReportInput struct {
		Authorization string `header:"Authorization" doc:"Bearer and the ticket that came with the orders"`
		Body          v1.LockReport
	}
	locksInput struct{ v1.LockQuery }
	lockInput  struct {
		GUID ib.GUID `path:"guid" doc:"node GUID of the adapter"`
	}
	lockReleaseInput struct {
		GUID ib.GUID `path:"guid" doc:"node GUID of the adapter"`
		Body v1.LockRelease
	}
)

// locksUp registers an operation on locks.
func locksUp[I, T any](s *Server, a huma.API, op operation, do func(LockKeeper, context.Context, *I) (*T, error)) {
	op.tag = "lock"
	register(s, a, op, func(ctx context.Context, in *I) (*bodyOutput[T], error) {
		if s.locks == nil {
			return nil, noLocks()
		}
		body, err := do(s.locks, ctx, in)
		return &bodyOutput[T]{body}, err
	})
}

// noLocks refuses what needs a LockKeeper.
func noLocks() *problem.Problem {
	return problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable,
		"the service locks no adapters", "name a root for lock keys (locks.root) and start it again")
}

// ticket has a keeper check the ticket of a request. A request without one is refused with a hint.
func ticket(hint string, awaits func(LockKeeper, context.Context, string) error) func(*Server, *http.Request) error {
	return func(s *Server, r *http.Request) error {
		if s.locks == nil {
			return noLocks()
		}
		t := bearer(r.Header.Get("Authorization"))
		if t == "" {
			return problem.New(http.StatusUnauthorized, v1.CodeUnauthenticated, "no ticket was sent", hint)
		}
		return awaits(s.locks, r.Context(), t)
	}
}

func (s *Server) lockRoutes(a huma.API) {
	locksUp(s, a, operation{
		id: "order-locks", method: http.MethodPost, path: "/v1/attest/locks", access: accessHost, maxBody: maxLockRequest,
		expects: ticket("attest; evidence that lacks only locked adapters earns a ticket", LockKeeper.AwaitsOrders),
		summary: "Get keys and settings for the adapters of the host that holds this ticket, once",
	}, func(k LockKeeper, ctx context.Context, in *lockOrdersInput) (*v1.LockOrders, error) {
		return k.Orders(ctx, bearer(in.Authorization), in.Body)
	})
	register(s, a, operation{
		id: "report-locks", method: http.MethodPost, path: "/v1/attest/locks/report", tag: "lock", access: accessHost, status: http.StatusNoContent,
		expects: ticket("orders come with one", LockKeeper.AwaitsReport),
		summary: "Report once what became of orders for adapters: it is shown to operators, and grants nothing",
	}, func(ctx context.Context, in *lockReportInput) (*struct{}, error) {
		return nil, s.locks.Report(ctx, bearer(in.Authorization), in.Body)
	})
	locksUp(s, a, operation{
		id: "list-locks", method: http.MethodGet, path: "/v1/locks", access: accessView,
		summary: "List how the locks of adapters stand, without keys, a page at a time",
	}, func(k LockKeeper, ctx context.Context, in *locksInput) (*v1.List[v1.Lock], error) {
		return k.List(ctx, in.LockQuery)
	})
	locksUp(s, a, operation{
		id: "get-lock", method: http.MethodGet, path: "/v1/locks/{guid}", access: accessView,
		summary: "Show how the lock of an adapter stands",
	}, func(k LockKeeper, ctx context.Context, in *lockInput) (*v1.Lock, error) {
		return k.Show(ctx, in.GUID)
	})
	locksUp(s, a, operation{
		id: "release-lock", method: http.MethodPost, path: "/v1/locks/{guid}/release", access: accessOperate,
		summary: "Decide that an adapter leaves: it is opened permanently at its next provisioning",
	}, func(k LockKeeper, ctx context.Context, in *lockReleaseInput) (*v1.Lock, error) {
		return k.Release(ctx, actor(ctx), in.GUID, in.Body)
	})
	locksUp(s, a, operation{
		id: "retain-lock", method: http.MethodDelete, path: "/v1/locks/{guid}/release", access: accessOperate,
		summary: "Take the decision back that an adapter leaves",
	}, func(k LockKeeper, ctx context.Context, in *lockInput) (*v1.Lock, error) {
		return k.Retain(ctx, actor(ctx), in.GUID)
	})
}
