package apitest

import (
	"context"
	"slices"

	"portcullis/api"
	"portcullis/api/label"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// chosen returns those of all that a selector chooses.
func chosen[T any](all []T, selector string, labels func(*T) label.Set) ([]T, error) {
	s, err := tenancy.ParseSelector(selector)
	return slices.DeleteFunc(all, func(v T) bool { return !s.Matches(labels(&v)) }), err
}

// keeper implements api.LabelKeeper over what a Backend holds of one kind.
type keeper[T any] struct {
	b       *Backend
	kind    string
	objects map[string]T
	labels  func(*T) *map[string]string
}

// labels keeps those of all kinds.
func (b *Backend) labels() api.Labels {
	return api.Labels{
		Hosts:    keeper[v1.Host]{b, "host", b.hosts, func(h *v1.Host) *map[string]string { return &h.Labels }},
		Clusters: keeper[v1.Cluster]{b, "cluster", b.clusters, func(c *v1.Cluster) *map[string]string { return &c.Labels }},
		Tenants:  keeper[v1.Tenant]{b, "tenant", b.tenants, func(t *v1.Tenant) *map[string]string { return &t.Labels }},
	}
}

// Labels implements api.LabelKeeper.
func (k keeper[T]) Labels(_ context.Context, name string) (*v1.Labels, error) {
	k.b.mu.Lock()
	defer k.b.mu.Unlock()
	o, ok := k.objects[name]
	if !ok {
		return nil, notFound(k.kind, name)
	}
	has := tenancy.LabelChange{Kind: k.kind, Name: name}
	return has.View(*k.labels(&o)), nil
}

// PatchLabels implements api.LabelKeeper.
func (k keeper[T]) PatchLabels(ctx context.Context, _, name string, p label.Patch) (*v1.Labels, error) {
	k.b.mu.Lock()
	defer k.b.mu.Unlock()
	o, ok := k.objects[name]
	if !ok {
		return nil, notFound(k.kind, name)
	}
	change := tenancy.LabelChange{Kind: k.kind, Name: name, Before: *k.labels(&o)}
	if err := change.Apply(ctx, p); err != nil {
		return nil, err
	}
	*k.labels(&o) = change.After
	k.objects[name] = o
	return change.View(change.After), nil
}
