package client

import (
	"context"

	v1 "portcullis/api/v1"
)

// Adoptions asks about memberships that the fabric had before.
type Adoptions struct{ c *Client }

// Adoptions returns the operations about memberships that the fabric had before.
func (c *Client) Adoptions() Adoptions { return Adoptions{c} }

// List returns all adoptions, the newest first.
func (g Adoptions) List(ctx context.Context) (*v1.List[v1.Adoption], error) {
	return ask[v1.List[v1.Adoption]](ctx, g.c, listAdoptions, nil)
}

// Get returns an adoption with its memberships.
func (g Adoptions) Get(ctx context.Context, id string) (*v1.AdoptionView, error) {
	return ask[v1.AdoptionView](ctx, g.c, getAdoption, nil, id)
}

// Start stages an adoption, which another person confirms.
func (g Adoptions) Start(ctx context.Context, in *v1.NewAdoption) (*v1.Adoption, error) {
	return ask[v1.Adoption](ctx, g.c, startAdoption, in)
}

// Confirm puts an adoption into force.
func (g Adoptions) Confirm(ctx context.Context, id string, in v1.AdoptionConfirm) (*v1.Adoption, error) {
	return ask[v1.Adoption](ctx, g.c, confirmAdoption, in, id)
}

// End ends the adoption of memberships.
func (g Adoptions) End(ctx context.Context, id string, in *v1.AdoptionEnd) (*v1.Adoption, error) {
	return ask[v1.Adoption](ctx, g.c, endAdoption, in, id)
}
