package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// maxReference bounds a request with event logs, in base64.
const maxReference = 4 << 20

// ReferenceKeeper keeps reference values of measured boots. Package
// api/measuredboot implements it. Errors and actors are as those of Backend.
type ReferenceKeeper interface {
	// List returns the sets of a class, of all when it is "", without their values.
	List(ctx context.Context, class string) (*v1.References, error)
	Show(ctx context.Context, class string, version uint64) (*v1.Reference, error)
	Learn(ctx context.Context, actor string, in v1.NewReference) (*v1.Reference, error)
	Waive(ctx context.Context, actor string, in v1.NewWaiver) (*v1.Reference, error)
	Approve(ctx context.Context, actor, class string, version uint64, in v1.ReferenceApprove) (*v1.Reference, error)
	Expire(ctx context.Context, actor, class string, version uint64, in v1.ReferenceExpire) (*v1.Reference, error)
	// DiffHost and Diff compare a set with a host's last boot, and with another set.
	DiffHost(ctx context.Context, class string, version uint64, host string) (*v1.ReferenceDiff, error)
	Diff(ctx context.Context, class string, version, with uint64) (*v1.ReferenceDiff, error)
}

type (
	referencesInput struct {
		Class string `query:"class" maxLength:"64" doc:"only of this class"`
	}
	newReferenceInput struct{ Body v1.NewReference }
	newWaiverInput    struct{ Body v1.NewWaiver }
	referenceInput    struct {
		Class   string `path:"class" maxLength:"64" doc:"class of hosts, by name"`
		Version uint64 `path:"version" doc:"version of the set"`
	}
	referenceApproveInput struct {
		Class   string `path:"class" maxLength:"64" doc:"class of hosts, by name"`
		Version uint64 `path:"version" doc:"version of the set"`
		Body    v1.ReferenceApprove
	}
	referenceExpireInput struct {
		Class   string `path:"class" maxLength:"64" doc:"class of hosts, by name"`
		Version uint64 `path:"version" doc:"version of the set"`
		Body    v1.ReferenceExpire
	}
	referenceDiffInput struct {
		Class   string `path:"class" maxLength:"64" doc:"class of hosts, by name"`
		Version uint64 `path:"version" doc:"version of the set"`
		Host    string `query:"host" maxLength:"63" doc:"compare with the last boot of this host"`
		With    uint64 `query:"with" doc:"or with this version of the class"`
	}
)

// refers registers an operation on reference values.
func refers[I, T any](s *Server, a huma.API, op operation, do func(ReferenceKeeper, context.Context, *I) (*T, error)) {
	op.tag = "reference"
	register(s, a, op, func(ctx context.Context, in *I) (*bodyOutput[T], error) {
		if s.reference == nil {
			return nil, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable,
				"this process keeps no reference values", "ask the service")
		}
		body, err := do(s.reference, ctx, in)
		return &bodyOutput[T]{body}, err
	})
}

func (s *Server) referenceRoutes(a huma.API) {
	const one = "/v1/references/{class}/{version}"
	refers(s, a, operation{
		id: "list-references", method: http.MethodGet, path: "/v1/references", access: accessView,
		summary: "List sets of reference values of measured boots, by class and version",
	}, func(k ReferenceKeeper, ctx context.Context, in *referencesInput) (*v1.References, error) {
		return k.List(ctx, in.Class)
	})
	refers(s, a, operation{
		id: "learn-reference", method: http.MethodPost, path: "/v1/references", access: accessOperate, status: http.StatusCreated,
		summary: "Learn reference values from proven boots of hosts or from event logs, or take what was predicted of an image, as a draft", maxBody: maxReference,
	}, func(k ReferenceKeeper, ctx context.Context, in *newReferenceInput) (*v1.Reference, error) {
		return k.Learn(ctx, actor(ctx), in.Body)
	})
	refers(s, a, operation{
		id: "waive-reference", method: http.MethodPost, path: "/v1/references/waivers", access: accessOperate, status: http.StatusCreated,
		summary: "Draft a waiver: until it ends, any boot of the class whose log replays is trusted",
	}, func(k ReferenceKeeper, ctx context.Context, in *newWaiverInput) (*v1.Reference, error) {
		return k.Waive(ctx, actor(ctx), in.Body)
	})
	refers(s, a, operation{
		id: "get-reference", method: http.MethodGet, path: one, access: accessView,
		summary: "Show a set of reference values",
	}, func(k ReferenceKeeper, ctx context.Context, in *referenceInput) (*v1.Reference, error) {
		return k.Show(ctx, in.Class, in.Version)
	})
	refers(s, a, operation{
		id: "approve-reference", method: http.MethodPost, path: one + "/approve", access: accessOperate,
		summary: "Put a draft into force; who made it may not",
	}, func(k ReferenceKeeper, ctx context.Context, in *referenceApproveInput) (*v1.Reference, error) {
		return k.Approve(ctx, actor(ctx), in.Class, in.Version, in.Body)
	})
	refers(s, a, operation{
		id: "expire-reference", method: http.MethodPost, path: one + "/expire", access: accessOperate,
		summary: "End a set of reference values, now or at a date",
	}, func(k ReferenceKeeper, ctx context.Context, in *referenceExpireInput) (*v1.Reference, error) {
		return k.Expire(ctx, actor(ctx), in.Class, in.Version, in.Body)
	})
	refers(s, a, operation{
		id: "diff-reference", method: http.MethodGet, path: one + "/diff", access: accessView,
		summary: "Report how the last boot of a host, or another version, differs from a set",
	}, diffReference)
}

func diffReference(k ReferenceKeeper, ctx context.Context, in *referenceDiffInput) (*v1.ReferenceDiff, error) {
	if (in.Host == "") == (in.With == 0) {
		return nil, problem.New(http.StatusUnprocessableEntity, v1.CodeInvalid, "want either host or with", "name a host, or another version")
	}
	if in.Host != "" {
		return k.DiffHost(ctx, in.Class, in.Version, in.Host)
	}
	return k.Diff(ctx, in.Class, in.Version, in.With)
}
