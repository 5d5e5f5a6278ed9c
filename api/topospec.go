package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// maxTopospec bounds a file with a declared topology, as JSON.
const maxTopospec = 80 << 20

// TopospecKeeper keeps the revisions of the declared topology. Package api/topology
// implements it. Errors are as those of Backend. match is the version in If-Match that
// the caller saw, "" for any; an actor is whose credential it was.
type TopospecKeeper interface {
	Status(ctx context.Context) (*v1.Topospec, error)
	Revisions(ctx context.Context, q v1.TopospecQuery) (*v1.TopospecRevisions, error)
	Revision(ctx context.Context, number uint64) (*v1.TopospecRevision, error)
	// Content returns the content of a revision in a form, "" for JSON.
	Content(ctx context.Context, number uint64, form string) (string, error)

	Draft(ctx context.Context, actor string, in v1.NewTopospec) (*v1.TopospecRevision, error)
	Validate(ctx context.Context, actor string, number uint64) (*v1.TopospecCheck, error)
	Simulate(ctx context.Context, actor string, number uint64, in v1.TopospecSimulate) (*v1.TopospecSimulation, error)
	Approve(ctx context.Context, actor string, number uint64, match string, in v1.TopospecApprove) (*v1.TopospecRevision, error)
	Reject(ctx context.Context, actor string, number uint64, match string, in v1.TopospecReject) (*v1.TopospecRevision, error)
	Activate(ctx context.Context, actor string, number uint64, match string, in v1.TopospecActivate) (*v1.Topospec, error)
	Rollback(ctx context.Context, actor, match string, in v1.TopospecRollback) (*v1.Topospec, error)
}

type (
	revisionsInput struct{ v1.TopospecQuery }
	revisionInput  struct {
		Number uint64 `path:"number" minimum:"1" doc:"number of the revision"`
	}
	contentInput struct {
		Number uint64 `path:"number" minimum:"1" doc:"number of the revision"`
		Form   string `query:"form" maxLength:"32" doc:"json, yaml, topoconfig, topoconfig-types, ibnetdiscover, slurm, ndt, root-guids, cn-guids, io-guids or allowed-guids; none: json"`
	}
	draftInput    struct{ Body v1.NewTopospec }
	simulateInput struct {
		Number uint64 `path:"number" minimum:"1" doc:"number of the revision"`
		Body   v1.TopospecSimulate
	}
	rollbackInput struct {
		IfMatch string `header:"If-Match" maxLength:"64" doc:"version of what is in force that was looked at; none: any"`
		Body    v1.TopospecRollback
	}
)

// stepInput is a step in the life of a revision.
type stepInput[T any] struct {
	Number  uint64 `path:"number" minimum:"1" doc:"number of the revision"`
	IfMatch string `header:"If-Match" maxLength:"64" doc:"version of the revision that was looked at; none: any"`
	Body    T
}

// taggedOutput is an answer with its version.
type taggedOutput[T any] struct {
	ETag string `header:"ETag" doc:"for If-Match"`
	Body *T
}

type contentOutput struct {
	ContentType string `header:"Content-Type"`
	ETag        string `header:"ETag" doc:"of the content; it never changes"`
	Body        []byte
}

func quoted(version string) string { return `"` + version + `"` }

func taggedRevision(r *v1.TopospecRevision, err error) (*taggedOutput[v1.TopospecRevision], error) {
	if err != nil {
		return nil, err
	}
	return &taggedOutput[v1.TopospecRevision]{quoted(r.Version), r}, nil
}

func taggedTopospec(t *v1.Topospec, err error) (*taggedOutput[v1.Topospec], error) {
	if err != nil {
		return nil, err
	}
	return &taggedOutput[v1.Topospec]{quoted(t.Version), t}, nil
}

// keeper returns the keeper of revisions.
func (s *Server) keeper() (TopospecKeeper, error) {
	if s.topospec == nil {
		return nil, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable,
			"this process keeps no revisions of the topology", "ask the service")
	}
	return s.topospec, nil
}

// keeps registers an operation on revisions.
func keeps[I, O any](s *Server, a huma.API, op operation, do func(TopospecKeeper, context.Context, *I) (*O, error)) {
	op.tag = "topospec"
	register(s, a, op, func(ctx context.Context, in *I) (*O, error) {
		k, err := s.keeper()
		if err != nil {
			return nil, err
		}
		return do(k, ctx, in)
	})
}

func (s *Server) topospecRoutes(a huma.API) {
	keeps(s, a, operation{
		id: "get-topospec", method: http.MethodGet, path: "/v1/topospec", access: accessView,
		summary: "Show which declared topology is in force, and what becomes of it",
	}, func(k TopospecKeeper, ctx context.Context, _ *struct{}) (*taggedOutput[v1.Topospec], error) {
		return taggedTopospec(k.Status(ctx))
	})
	keeps(s, a, operation{
		id: "rollback-topospec", method: http.MethodPost, path: "/v1/topospec/rollback", access: accessOperate,
		summary: "Put a revision that was in force into force again",
	}, func(k TopospecKeeper, ctx context.Context, in *rollbackInput) (*taggedOutput[v1.Topospec], error) {
		return taggedTopospec(k.Rollback(ctx, actor(ctx), in.IfMatch, in.Body))
	})
	s.topospecReads(a)
	s.topospecSteps(a)
	s.rmaRoutes(a)
}

func (s *Server) topospecReads(a huma.API) {
	keeps(s, a, operation{
		id: "list-topospec-revisions", method: http.MethodGet, path: "/v1/topospec/revisions", access: accessView,
		summary: "List revisions of the declared topology, the newest first, a page at a time",
	}, func(k TopospecKeeper, ctx context.Context, in *revisionsInput) (*bodyOutput[v1.TopospecRevisions], error) {
		out, err := k.Revisions(ctx, in.TopospecQuery)
		return &bodyOutput[v1.TopospecRevisions]{out}, err
	})
	keeps(s, a, operation{
		id: "get-topospec-revision", method: http.MethodGet, path: "/v1/topospec/revisions/{number}", access: accessView,
		summary: "Show a revision, but for its content",
	}, func(k TopospecKeeper, ctx context.Context, in *revisionInput) (*taggedOutput[v1.TopospecRevision], error) {
		return taggedRevision(k.Revision(ctx, in.Number))
	})
	keeps(s, a, operation{
		id: "get-topospec-content", method: http.MethodGet, path: "/v1/topospec/revisions/{number}/content", access: accessView,
		summary: "Write what a revision says as a file",
	}, func(k TopospecKeeper, ctx context.Context, in *contentInput) (*contentOutput, error) {
		r, err := k.Revision(ctx, in.Number)
		if err != nil {
			return nil, err
		}
		text, err := k.Content(ctx, in.Number, in.Form)
		if err != nil {
			return nil, err
		}
		return &contentOutput{"text/plain; charset=utf-8", quoted(r.Digest), []byte(text)}, nil
	})
}

func (s *Server) topospecSteps(a huma.API) {
	step := func(id, verb, summary string) operation {
		return operation{
			id: id + "-topospec-revision", method: http.MethodPost, path: "/v1/topospec/revisions/{number}/" + verb,
			summary: summary, access: accessOperate,
		}
	}
	keeps(s, a, operation{
		id: "draft-topospec-revision", method: http.MethodPost, path: "/v1/topospec/revisions", access: accessOperate,
		summary: "Keep a file as a draft of the declared topology", status: http.StatusCreated, maxBody: maxTopospec,
	}, func(k TopospecKeeper, ctx context.Context, in *draftInput) (*taggedOutput[v1.TopospecRevision], error) {
		return taggedRevision(k.Draft(ctx, actor(ctx), in.Body))
	})
	keeps(s, a, step("validate", "validate", "Report what is wrong or suspicious in a revision"),
		func(k TopospecKeeper, ctx context.Context, in *revisionInput) (*bodyOutput[v1.TopospecCheck], error) {
			out, err := k.Validate(ctx, actor(ctx), in.Number)
			return &bodyOutput[v1.TopospecCheck]{out}, err
		})
	keeps(s, a, step("simulate", "simulate", "Report what putting a revision into force would do to the fabric as it is seen now"),
		func(k TopospecKeeper, ctx context.Context, in *simulateInput) (*bodyOutput[v1.TopospecSimulation], error) {
			out, err := k.Simulate(ctx, actor(ctx), in.Number, in.Body)
			return &bodyOutput[v1.TopospecSimulation]{out}, err
		})
	keeps(s, a, step("approve", "approve", "Approve a draft, by the digest of what was looked at"),
		func(k TopospecKeeper, ctx context.Context, in *stepInput[v1.TopospecApprove]) (*taggedOutput[v1.TopospecRevision], error) {
			return taggedRevision(k.Approve(ctx, actor(ctx), in.Number, in.IfMatch, in.Body))
		})
	keeps(s, a, step("reject", "reject", "End a draft"),
		func(k TopospecKeeper, ctx context.Context, in *stepInput[v1.TopospecReject]) (*taggedOutput[v1.TopospecRevision], error) {
			return taggedRevision(k.Reject(ctx, actor(ctx), in.Number, in.IfMatch, in.Body))
		})
	keeps(s, a, step("activate", "activate", "Put an approved draft into force, or what is in force into another mode"),
		func(k TopospecKeeper, ctx context.Context, in *stepInput[v1.TopospecActivate]) (*taggedOutput[v1.Topospec], error) {
			return taggedTopospec(k.Activate(ctx, actor(ctx), in.Number, in.IfMatch, in.Body))
		})
}
