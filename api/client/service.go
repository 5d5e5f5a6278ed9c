package client

import (
	"context"

	v1 "portcullis/api/v1"
)

// WhoAmI returns what the service knows of the credential of this client.
func (c *Client) WhoAmI(ctx context.Context) (*v1.WhoAmI, error) {
	return ask[v1.WhoAmI](ctx, c, whoami, nil)
}

// Logins returns the identity providers at which people sign in. It needs no credential.
func (c *Client) Logins(ctx context.Context) (*v1.Logins, error) {
	return ask[v1.Logins](ctx, c, listLogins, nil)
}

// Profile compares the installation with a security profile.
func (c *Client) Profile(ctx context.Context, in v1.ProfileQuery) (*v1.SecurityProfile, error) {
	q := query{}
	q.set("name", in.Name)
	return find[v1.SecurityProfile](ctx, c, getProfile, nil, q)
}

// Brakes asks about brakes of admission.
type Brakes struct{ c *Client }

// Brakes returns the operations about brakes of admission.
func (c *Client) Brakes() Brakes { return Brakes{c} }

// Get says which memberships are kept although automatic causes would take them.
func (g Brakes) Get(ctx context.Context) (*v1.Brakes, error) {
	return ask[v1.Brakes](ctx, g.c, getBrakes, nil)
}

// Release has automatic causes take the memberships that are kept now.
func (g Brakes) Release(ctx context.Context, in v1.BrakeRelease) (*v1.Brakes, error) {
	return ask[v1.Brakes](ctx, g.c, releaseBrake, in)
}

// Clock asks about the recorded time.
type Clock struct{ c *Client }

// Clock returns the operations about the recorded time.
func (c *Client) Clock() Clock { return Clock{c} }

// Get says how the clock of the service's machine stands to the highest time that was seen.
func (g Clock) Get(ctx context.Context) (*v1.Clock, error) {
	return ask[v1.Clock](ctx, g.c, getClock, nil)
}

// Set has the recorded time be what the machine shows.
func (g Clock) Set(ctx context.Context, in v1.ClockSet) (*v1.Clock, error) {
	return ask[v1.Clock](ctx, g.c, setClock, in)
}

// Authorities asks about authorities that issue certificates of hosts.
type Authorities struct{ c *Client }

// Authorities returns the operations about authorities that issue certificates of hosts.
func (c *Client) Authorities() Authorities { return Authorities{c} }

// Get lists what certificates of hosts come from.
func (g Authorities) Get(ctx context.Context) (*v1.HostAuthorities, error) {
	return ask[v1.HostAuthorities](ctx, g.c, getAuthorities, nil)
}

// Rotate makes the next one.
func (g Authorities) Rotate(ctx context.Context, in v1.AuthorityRotation) (*v1.HostAuthorities, error) {
	return ask[v1.HostAuthorities](ctx, g.c, rotateAuthority, in)
}

// Review asks about the review of a restored state.
type Review struct{ c *Client }

// Review returns the operations about the review of a restored state.
func (c *Client) Review() Review { return Review{c} }

// Get says what a restored state and the fabric differ in.
func (g Review) Get(ctx context.Context) (*v1.Review, error) {
	return ask[v1.Review](ctx, g.c, getReview, nil)
}

// Approve has the restored state count for hosts.
func (g Review) Approve(ctx context.Context, in v1.ReviewDecision) (*v1.Review, error) {
	return ask[v1.Review](ctx, g.c, approveReview, in)
}

// Reject releases hosts, and takes all P_Keys of tenants off their ports.
func (g Review) Reject(ctx context.Context, in v1.ReviewDecision) (*v1.Review, error) {
	return ask[v1.Review](ctx, g.c, rejectReview, in)
}

// End ends the review of a restored state.
func (g Review) End(ctx context.Context, in v1.ReviewEnd) (*v1.Review, error) {
	return ask[v1.Review](ctx, g.c, endReview, in)
}
