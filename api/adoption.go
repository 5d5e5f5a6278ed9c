package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// Adopter keeps memberships that the fabric had before. Package api/adoptions implements it. Errors and actors are as those of
// Backend.
type Adopter interface {
	List(ctx context.Context) (*v1.List[v1.Adoption], error)
	Show(ctx context.Context, id string) (*v1.AdoptionView, error)
	// Start stages an adoption, and Confirm puts it into force. The actor of one must not be that of the other.
	Start(ctx context.Context, actor string, in *v1.NewAdoption) (*v1.Adoption, error)
	Confirm(ctx context.Context, actor, id string, in v1.AdoptionConfirm) (*v1.Adoption, error)
	End(ctx context.Context, actor, id string, in *v1.AdoptionEnd) (*v1.Adoption, error)
}

type (
	newAdoptionInput struct{ Body v1.NewAdoption }
	adoptionInput    struct {
		ID string `path:"id" maxLength:"64" doc:"id of the adoption"`
	}
	adoptionConfirmInput struct {
		ID   string `path:"id" maxLength:"64" doc:"id of the adoption"`
		Body v1.AdoptionConfirm
	}
	adoptionEndInput struct {
		ID   string `path:"id" maxLength:"64" doc:"id of the adoption"`
		Body v1.AdoptionEnd
	}
)

// adopts registers an operation on adoptions.
func adopts[I, T any](s *Server, a huma.API, op operation, do func(Adopter, context.Context, *I) (*T, error)) {
	op.tag = "adoption"
	register(s, a, op, func(ctx context.Context, in *I) (*bodyOutput[T], error) {
		if s.adopter == nil {
			return nil, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable, "this process adopts nothing", "ask the service")
		}
		body, err := do(s.adopter, ctx, in)
		return &bodyOutput[T]{body}, err
	})
}

func adoptionRoutes(s *Server, a huma.API) {
	adopts(s, a, operation{
		id: "list-adoptions", method: http.MethodGet, path: "/v1/adoption", access: accessAudit,
		summary: "List adoptions, the newest first: memberships that are kept though nothing is proven of their hosts",
	}, func(d Adopter, ctx context.Context, _ *struct{}) (*v1.List[v1.Adoption], error) { return d.List(ctx) })
	adopts(s, a, operation{
		id: "get-adoption", method: http.MethodGet, path: "/v1/adoption/{id}", access: accessAudit,
		summary: "Show an adoption with its memberships",
	}, func(d Adopter, ctx context.Context, in *adoptionInput) (*v1.AdoptionView, error) {
		return d.Show(ctx, in.ID)
	})
	adopts(s, a, operation{
		id: "start-adoption", method: http.MethodPost, path: "/v1/adoption", access: accessOperate, status: http.StatusCreated, maxBody: maxAdoption,
		summary: "Stage an adoption: memberships that the fabric has, to be kept until their hosts attest; a second person confirms it",
	}, func(d Adopter, ctx context.Context, in *newAdoptionInput) (*v1.Adoption, error) {
		return d.Start(ctx, actor(ctx), &in.Body)
	})
	adopts(s, a, operation{
		id: "confirm-adoption", method: http.MethodPost, path: "/v1/adoption/{id}/confirm", access: accessOperate,
		summary: "Confirm an adoption as the second person: its memberships are kept from now on",
	}, func(d Adopter, ctx context.Context, in *adoptionConfirmInput) (*v1.Adoption, error) {
		return d.Confirm(ctx, actor(ctx), in.ID, in.Body)
	})
	adopts(s, a, operation{
		id: "end-adoption", method: http.MethodPost, path: "/v1/adoption/{id}/end", access: accessOperate,
		summary: "End the adoption of all or some memberships: the ports lose them",
	}, func(d Adopter, ctx context.Context, in *adoptionEndInput) (*v1.Adoption, error) {
		return d.End(ctx, actor(ctx), in.ID, &in.Body)
	})
}
