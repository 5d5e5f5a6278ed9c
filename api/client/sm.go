package client

import (
	"context"

	v1 "portcullis/api/v1"
)

// SM asks about the subnet manager.
type SM struct{ c *Client }

// SM returns the operations about the subnet manager.
func (c *Client) SM() SM { return SM{c} }

// Get returns the state of the subnet manager.
func (g SM) Get(ctx context.Context) (*v1.SM, error) {
	return ask[v1.SM](ctx, g.c, getSM, nil)
}

// Progress returns how far the subnet manager is.
func (g SM) Progress(ctx context.Context) (*v1.SMProgress, error) {
	return ask[v1.SMProgress](ctx, g.c, getProgress, nil)
}

// StepDown has the leader end its term as Subnet Manager, for another instance to lead.
func (g SM) StepDown(ctx context.Context, in v1.StepDown) error {
	return do(ctx, g.c, stepDown, in)
}

// ForgetUnseen holds the nodes that are out of sight for gone, and answers what they were.
func (g SM) ForgetUnseen(ctx context.Context, in v1.SightAccept) (*v1.Sight, error) {
	return ask[v1.Sight](ctx, g.c, forgetUnseen, in)
}
