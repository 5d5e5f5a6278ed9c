package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	v1 "portcullis/api/v1"
)

// Hosts asks about hosts: where they stand, and what is decided of them.
type Hosts struct{ c *Client }

// Hosts returns the operations about hosts.
func (c *Client) Hosts() Hosts { return Hosts{c} }

// Get returns one host.
func (g Hosts) Get(ctx context.Context, id string) (*v1.Host, error) {
	return ask[v1.Host](ctx, g.c, getHost, nil, id)
}

// Assign assigns a host to a cluster and opens its provisioning window.
func (g Hosts) Assign(ctx context.Context, id string, in v1.Assignment) (*v1.Host, error) {
	return ask[v1.Host](ctx, g.c, assignHost, in, id)
}

// Release withdraws a host's admission, of the version in IfMatch. The host is released when its phase is quarantined again.
func (g Hosts) Release(ctx context.Context, id string) (*v1.Host, error) {
	return ask[v1.Host](ctx, g.c, releaseHost, nil, id)
}

// AssignBatch assigns several hosts to a cluster, each by itself.
func (g Hosts) AssignBatch(ctx context.Context, in v1.AssignBatch) (*v1.Batch, error) {
	return ask[v1.Batch](ctx, g.c, assignHosts, in)
}

// ReleaseBatch withdraws the admission of several hosts, each by itself.
func (g Hosts) ReleaseBatch(ctx context.Context, in v1.ReleaseBatch) (*v1.Batch, error) {
	return ask[v1.Batch](ctx, g.c, releaseHosts, in)
}

// Fence withdraws a host's admission and marks its switch ports as unhealthy.
func (g Hosts) Fence(ctx context.Context, id string, in v1.Fence) (*v1.Host, error) {
	return ask[v1.Host](ctx, g.c, fenceHost, in, id)
}

// ResolveGUID records which host has the GUIDs that a host and others claim.
func (g Hosts) ResolveGUID(ctx context.Context, id string, in v1.GUIDResolved) (*v1.Host, error) {
	return ask[v1.Host](ctx, g.c, resolveGUID, in, id)
}

// AcknowledgeClear says that a host's TPM was cleared on purpose.
func (g Hosts) AcknowledgeClear(ctx context.Context, id string, in v1.TPMCleared) (*v1.Host, error) {
	return ask[v1.Host](ctx, g.c, acknowledgeClear, in, id)
}

// Remove takes a host out of inventory, of the version in IfMatch.
func (g Hosts) Remove(ctx context.Context, id string, in v1.HostRemoval) error {
	return do(ctx, g.c, removeHost, in, id)
}

// All lists all hosts, sorted by id.
func (g Hosts) All(ctx context.Context) ([]v1.Host, error) { return g.List(ctx, v1.HostQuery{}) }

// List lists the hosts that q asks for, of all pages; q.Limit is how many a page has.
func (g Hosts) List(ctx context.Context, q v1.HostQuery) ([]v1.Host, error) {
	return all[v1.Host](ctx, g.c, listHosts, hostQuery(q, v1.ViewFull))
}

// Summaries is List with each host in one line.
func (g Hosts) Summaries(ctx context.Context, q v1.HostQuery) ([]v1.HostSummary, error) {
	return all[v1.HostSummary](ctx, g.c, listHosts, hostQuery(q, v1.ViewSummary))
}

// IDs is List with ids alone.
func (g Hosts) IDs(ctx context.Context, q v1.HostQuery) ([]v1.HostID, error) {
	return all[v1.HostID](ctx, g.c, listHosts, hostQuery(q, v1.ViewID))
}

// IDPage lists the ids of one page, for callers that need only a few.
func (g Hosts) IDPage(ctx context.Context, q v1.HostQuery) ([]string, error) {
	page, err := find[v1.List[v1.HostID]](ctx, g.c, listHosts, nil, hostQuery(q, v1.ViewID))
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(page.Items))
	for i, h := range page.Items {
		ids[i] = h.ID
	}
	return ids, nil
}

func hostQuery(q v1.HostQuery, view string) query {
	v := query{}
	if view != v1.ViewFull {
		v.set("view", view)
	}
	v.set("tenant", q.Tenant)
	v.set("cluster", q.Cluster)
	v.set("phase", string(q.Phase))
	v.set("rack", q.Rack)
	v.set("prefix", q.Prefix)
	v.set("selector", q.Selector)
	return v.page(q.PageQuery)
}

// AttestationResult has a result about a host signed, which answers nonce unless that is nil.
func (g Hosts) AttestationResult(ctx context.Context, id string, nonce []byte) (*v1.AttestationResult, error) {
	return ask[v1.AttestationResult](ctx, g.c, attestationResult, v1.ResultRequest{Nonce: nonce}, id)
}

// Watch returns a host now and after each change. The sequence ends after the first error, and with io.ErrUnexpectedEOF
// when the service ends the stream.
func (g Hosts) Watch(ctx context.Context, id string) iter.Seq2[*v1.Host, error] {
	return func(yield func(*v1.Host, error) bool) {
		for m, err := range messages(ctx, g.c, watchHost, nil, id) {
			var h v1.Host
			if err == nil {
				err = json.Unmarshal(m.data, &h)
			}
			if err != nil {
				yield(nil, fmt.Errorf("watch host %s: %w", id, err))
				return
			}
			if !yield(&h, nil) {
				return
			}
		}
	}
}
