package client

import (
	"context"
	"fmt"
	"io"
	"strconv"

	v1 "portcullis/api/v1"
)

// Topospec asks about the declared topology.
type Topospec struct{ c *Client }

// Topospec returns the operations about the declared topology.
func (c *Client) Topospec() Topospec { return Topospec{c} }

// Get returns which declared topology is in force, and its state.
func (g Topospec) Get(ctx context.Context) (*v1.Topospec, error) {
	return ask[v1.Topospec](ctx, g.c, getTopospec, nil)
}

// Draft keeps a file as a draft.
func (g Topospec) Draft(ctx context.Context, in v1.NewTopospec) (*v1.TopospecRevision, error) {
	return ask[v1.TopospecRevision](ctx, g.c, draftTopospec, in)
}

// Revisions lists revisions, the newest first: one page.
func (g Topospec) Revisions(ctx context.Context, q v1.TopospecQuery) (*v1.TopospecRevisions, error) {
	v := query{}
	v.set("status", q.Status)
	if q.Before > 0 {
		v.set("before", decimal(q.Before))
	}
	if q.Limit > 0 {
		v.set("limit", strconv.Itoa(q.Limit))
	}
	return find[v1.TopospecRevisions](ctx, g.c, listRevisions, nil, v)
}

// Revision returns one revision, except for its content.
func (g Topospec) Revision(ctx context.Context, number uint64) (*v1.TopospecRevision, error) {
	return ask[v1.TopospecRevision](ctx, g.c, getRevision, nil, decimal(number))
}

// maxTopospec bounds the content of a revision that is read.
const maxTopospec = 256 << 20

// Content returns the content of a revision, in a form; "" is JSON.
func (g Topospec) Content(ctx context.Context, number uint64, form string) ([]byte, error) {
	v := query{}
	v.set("form", form)
	resp, err := open(ctx, g.c, getContent, v, decimal(number))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxTopospec+1))
	if err == nil && len(data) > maxTopospec {
		err = fmt.Errorf("more than %d MiB", maxTopospec>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("read revision %d: %w", number, err)
	}
	return data, nil
}

// Validate returns what is wrong or suspicious in a revision.
func (g Topospec) Validate(ctx context.Context, number uint64) (*v1.TopospecCheck, error) {
	return ask[v1.TopospecCheck](ctx, g.c, validateRevision, nil, decimal(number))
}

// Simulate returns what putting a revision into force would do now.
func (g Topospec) Simulate(ctx context.Context, number uint64, in v1.TopospecSimulate) (*v1.TopospecSimulation, error) {
	return ask[v1.TopospecSimulation](ctx, g.c, simulateRevision, in, decimal(number))
}

// Approve approves a draft. match is the version that was looked at, "" for any;
// so with the other steps.
func (g Topospec) Approve(ctx context.Context, number uint64, match string, in v1.TopospecApprove) (*v1.TopospecRevision, error) {
	return ask[v1.TopospecRevision](IfMatch(ctx, match), g.c, approveRevision, in, decimal(number))
}

// Reject ends a draft.
func (g Topospec) Reject(ctx context.Context, number uint64, match string, in v1.TopospecReject) (*v1.TopospecRevision, error) {
	return ask[v1.TopospecRevision](IfMatch(ctx, match), g.c, rejectRevision, in, decimal(number))
}

// Activate puts an approved draft into force, or what is in force into another
// mode.
func (g Topospec) Activate(ctx context.Context, number uint64, match string, in v1.TopospecActivate) (*v1.Topospec, error) {
	return ask[v1.Topospec](IfMatch(ctx, match), g.c, activateRevision, in, decimal(number))
}

// Rollback puts a revision that was in force into force again.
func (g Topospec) Rollback(ctx context.Context, match string, in v1.TopospecRollback) (*v1.Topospec, error) {
	return ask[v1.Topospec](IfMatch(ctx, match), g.c, rollbackTopospec, in)
}

// RMAs asks about replacements of devices.
type RMAs struct{ c *Client }

// RMAs returns the operations about replacements of devices.
func (c *Client) RMAs() RMAs { return RMAs{c} }

// List lists replacements of devices, the newest first.
func (g RMAs) List(ctx context.Context) (*v1.RMAs, error) {
	return ask[v1.RMAs](ctx, g.c, listRMAs, nil)
}

// Get returns the state of a replacement.
func (g RMAs) Get(ctx context.Context, ticket string) (*v1.RMA, error) {
	return ask[v1.RMA](ctx, g.c, getRMA, nil, ticket)
}

// Start opens a replacement.
func (g RMAs) Start(ctx context.Context, in v1.NewRMA) (*v1.RMA, error) {
	return ask[v1.RMA](ctx, g.c, startRMA, in)
}

// Cancel ends a replacement before the new device has the place.
func (g RMAs) Cancel(ctx context.Context, ticket string, in v1.RMACancel) (*v1.RMA, error) {
	return ask[v1.RMA](ctx, g.c, cancelRMA, in, ticket)
}

// Confirm takes the step of a replacement that waits for a second person.
func (g RMAs) Confirm(ctx context.Context, ticket string, in v1.RMAConfirm) (*v1.RMA, error) {
	var body any // services of before take none
	if in.Reason != "" {
		body = in
	}
	return ask[v1.RMA](ctx, g.c, confirmRMA, body, ticket)
}
