package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	v1 "portcullis/api/v1"
)

// Topospec returns which declared topology is in force, and its state.
func (c *Client) Topospec(ctx context.Context) (*v1.Topospec, error) {
	var out v1.Topospec
	return answer(&out, c.get(ctx, "/v1/topospec", &out))
}

// TopospecRevisions lists revisions, the newest first: one page.
func (c *Client) TopospecRevisions(ctx context.Context, q v1.TopospecQuery) (*v1.TopospecRevisions, error) {
	v := query{}
	v.set("status", q.Status)
	if q.Before > 0 {
		v.set("before", strconv.FormatUint(q.Before, 10))
	}
	if q.Limit > 0 {
		v.set("limit", strconv.Itoa(q.Limit))
	}
	var out v1.TopospecRevisions
	return answer(&out, c.get(ctx, "/v1/topospec/revisions"+v.String(), &out))
}

// TopospecRevision returns one revision, except for its content.
func (c *Client) TopospecRevision(ctx context.Context, number uint64) (*v1.TopospecRevision, error) {
	var out v1.TopospecRevision
	return answer(&out, c.get(ctx, revisionPath(number, ""), &out))
}

// maxTopospec bounds the content of a revision that is read.
const maxTopospec = 256 << 20

// TopospecContent returns the content of a revision, in a form; "" is JSON.
func (c *Client) TopospecContent(ctx context.Context, number uint64, form string) ([]byte, error) {
	v := query{}
	v.set("form", form)
	resp, err := c.send(ctx, c.http, http.MethodGet, revisionPath(number, "content")+v.String())
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

// DraftTopospec keeps a file as a draft.
func (c *Client) DraftTopospec(ctx context.Context, in v1.NewTopospec) (*v1.TopospecRevision, error) {
	var out v1.TopospecRevision
	return answer(&out, c.post(ctx, "/v1/topospec/revisions", in, &out))
}

// ValidateTopospec returns what is wrong or suspicious in a revision.
func (c *Client) ValidateTopospec(ctx context.Context, number uint64) (*v1.TopospecCheck, error) {
	var out v1.TopospecCheck
	return answer(&out, c.post(ctx, revisionPath(number, "validate"), nil, &out))
}

// SimulateTopospec returns what putting a revision into force would do now.
func (c *Client) SimulateTopospec(ctx context.Context, number uint64, in v1.TopospecSimulate) (*v1.TopospecSimulation, error) {
	var out v1.TopospecSimulation
	return answer(&out, c.post(ctx, revisionPath(number, "simulate"), in, &out))
}

// ApproveTopospec approves a draft. match is the version that was looked at, "" for any;
// so with the other steps.
func (c *Client) ApproveTopospec(ctx context.Context, number uint64, match string, in v1.TopospecApprove) (*v1.TopospecRevision, error) {
	var out v1.TopospecRevision
	return answer(&out, c.step(ctx, revisionPath(number, "approve"), match, in, &out))
}

// RejectTopospec ends a draft.
func (c *Client) RejectTopospec(ctx context.Context, number uint64, match string, in v1.TopospecReject) (*v1.TopospecRevision, error) {
	var out v1.TopospecRevision
	return answer(&out, c.step(ctx, revisionPath(number, "reject"), match, in, &out))
}

// ActivateTopospec puts an approved draft into force, or what is in force into another
// mode.
func (c *Client) ActivateTopospec(ctx context.Context, number uint64, match string, in v1.TopospecActivate) (*v1.Topospec, error) {
	var out v1.Topospec
	return answer(&out, c.step(ctx, revisionPath(number, "activate"), match, in, &out))
}

// RollbackTopospec puts a revision that was in force into force again.
func (c *Client) RollbackTopospec(ctx context.Context, match string, in v1.TopospecRollback) (*v1.Topospec, error) {
	var out v1.Topospec
	return answer(&out, c.step(ctx, "/v1/topospec/rollback", match, in, &out))
}

func (c *Client) step(ctx context.Context, path, match string, in, out any) error {
	return c.callMatching(ctx, c.http, http.MethodPost, path, match, in, out)
}

func revisionPath(number uint64, verb string) string {
	path := "/v1/topospec/revisions/" + strconv.FormatUint(number, 10)
	if verb != "" {
		path += "/" + verb
	}
	return path
}
