package client

import (
	"context"

	v1 "portcullis/api/v1"
)

// Labels asks about the labels of the objects of one kind.
type Labels struct {
	c        *Client
	get, set operation
}

// Labels returns the operations about labels of hosts.
func (g Hosts) Labels() Labels { return Labels{g.c, getHostLabels, labelHost} }

// Labels returns the operations about labels of clusters.
func (g Clusters) Labels() Labels { return Labels{g.c, getClusterLabels, labelCluster} }

// Labels returns the operations about labels of tenants.
func (g Tenants) Labels() Labels { return Labels{g.c, getTenantLabels, labelTenant} }

// Get returns the labels of an object, with their version for IfMatch.
func (g Labels) Get(ctx context.Context, name string) (*v1.Labels, error) {
	return ask[v1.Labels](ctx, g.c, g.get, nil, name)
}

// Patch sets the labels of an object that have a value and removes those that have none, all or nothing.
func (g Labels) Patch(ctx context.Context, name string, labels map[string]*string) (*v1.Labels, error) {
	return ask[v1.Labels](ctx, g.c, g.set, v1.LabelPatch{Labels: labels}, name)
}
