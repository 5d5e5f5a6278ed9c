package apitest

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"portcullis/api/ifmatch"
	"portcullis/api/label"
	"portcullis/api/page"
	v1 "portcullis/api/v1"
)

// OnAssign runs f after each assignment, for a test that plays the fabric.
func (b *Backend) OnAssign(f func(*v1.Host)) { b.mu.Lock(); defer b.mu.Unlock(); b.assigned = f }

// OnRelease runs f after each release.
func (b *Backend) OnRelease(f func(*v1.Host)) { b.mu.Lock(); defer b.mu.Unlock(); b.released = f }

// SetHost puts a host in place and notifies watchers.
func (b *Backend) SetHost(h v1.Host) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hosts[h.ID] = h
	b.tell(h)
}

// tell sends h to its watchers; one that is slow loses the older state.
func (b *Backend) tell(h v1.Host) {
	for ch, id := range b.watchers {
		if id != h.ID {
			continue
		}
		select {
		case <-ch:
		default:
		}
		ch <- &h
	}
}

// ResolveGUID implements api.Backend.
func (b *Backend) ResolveGUID(ctx context.Context, _, id string, _ v1.GUIDResolved) (*v1.Host, error) {
	return b.change(ctx, id, new(func(*v1.Host)), func(h *v1.Host) error {
		if h.Status.Conflicts == nil {
			return conflict("host_not_held", "no other host claims a GUID of host "+id, "")
		}
		h.Status.Conflicts = nil
		return nil
	})
}

// AcknowledgeClear implements api.Backend.
func (b *Backend) AcknowledgeClear(ctx context.Context, _, id string, _ v1.TPMCleared) (*v1.Host, error) {
	return b.change(ctx, id, new(func(*v1.Host)), func(*v1.Host) error { return nil })
}

// Hosts implements api.Backend.
func (b *Backend) Hosts(_ context.Context, q v1.HostQuery) (*v1.List[v1.Host], error) {
	return hostPage(b, q, func(h v1.Host) v1.Host { return h })
}

// HostSummaries implements api.Backend.
func (b *Backend) HostSummaries(_ context.Context, q v1.HostQuery) (*v1.List[v1.HostSummary], error) {
	return hostPage(b, q, func(h v1.Host) v1.HostSummary { return h.Summary() })
}

// HostIDs implements api.Backend.
func (b *Backend) HostIDs(_ context.Context, q v1.HostQuery) (*v1.List[v1.HostID], error) {
	return hostPage(b, q, func(h v1.Host) v1.HostID { return v1.HostID{ID: h.ID} })
}

func hostPage[T any](b *Backend, q v1.HostQuery, show func(v1.Host) T) (*v1.List[T], error) {
	all, err := sorted(b, b.hosts, func(h v1.Host) string { return h.ID })
	if err != nil {
		return nil, err
	}
	if all, err = chosen(all, q.Selector, func(h *v1.Host) label.Set { return h.Labels }); err != nil {
		return nil, err
	}
	asked := func(want, has string) bool { return want == "" || want == has }
	all = slices.DeleteFunc(all, func(h v1.Host) bool {
		return !asked(q.Tenant, h.Tenant) || !asked(q.Cluster, h.Cluster) || !asked(string(q.Phase), string(h.Status.Phase)) ||
			!asked(q.Rack, h.Rack) || !strings.HasPrefix(h.ID, q.Prefix)
	})
	hosts, err := page.Cut("hosts", q.PageQuery, all, func(h *v1.Host) string { return h.ID })
	if err != nil {
		return nil, err
	}
	out := &v1.List[T]{Items: make([]T, len(hosts.Items)), Next: hosts.Next}
	for i := range hosts.Items {
		out.Items[i] = show(hosts.Items[i])
	}
	return out, nil
}

// RemoveHost implements api.Backend.
func (b *Backend) RemoveHost(ctx context.Context, _, id string, _ v1.HostRemoval) error {
	b.mu.Lock()
	h, there := b.hosts[id]
	b.mu.Unlock()
	if there && h.Cluster != "" {
		return conflict("host_assigned", "host "+id+" is assigned to cluster "+h.Cluster, "release the host first")
	}
	return remove(ctx, b, b.hosts, func(h v1.Host) string { return strconv.FormatInt(h.Epoch, 10) }, "host", id)
}

// ExportInventory implements api.Backend: a line for each host.
func (b *Backend) ExportInventory(ctx context.Context) ([]byte, error) {
	hosts, err := b.Hosts(ctx, v1.HostQuery{PageQuery: v1.PageQuery{Limit: v1.MaxPage}})
	if err != nil {
		return nil, err
	}
	var out []byte
	for i := range hosts.Items {
		out = append(out, hosts.Items[i].ID+"\n"...)
	}
	return out, nil
}

// Host implements api.Backend.
func (b *Backend) Host(_ context.Context, id string) (*v1.Host, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.host(id)
}

func (b *Backend) host(id string) (*v1.Host, error) {
	h, ok := b.hosts[id]
	if !ok {
		return nil, notFound("host", id)
	}
	return &h, nil
}

// Assign implements api.Backend.
func (b *Backend) Assign(ctx context.Context, _, id string, a v1.Assignment) (*v1.Host, error) {
	return b.change(ctx, id, &b.assigned, func(h *v1.Host) error {
		c, ok := b.clusters[a.Cluster]
		if !ok {
			return notFound("cluster", a.Cluster)
		}
		if h.Cluster != "" {
			return conflict("host_assigned", "host "+id+" is assigned to cluster "+h.Cluster, "release it first")
		}
		h.Epoch++
		h.Cluster, h.Tenant, h.Status.Phase = c.Name, c.Tenant, v1.PhaseAwaiting
		return nil
	})
}

// Release implements api.Backend.
func (b *Backend) Release(ctx context.Context, _, id string) (*v1.Host, error) {
	return b.change(ctx, id, &b.released, func(h *v1.Host) error {
		h.Status.Phase = v1.PhaseReleasing
		return nil
	})
}

// change applies f to a host, and then runs what follow points at.
func (b *Backend) change(ctx context.Context, id string, follow *func(*v1.Host), f func(*v1.Host) error) (*v1.Host, error) {
	b.mu.Lock()
	h, err := b.host(id)
	if err == nil && !ifmatch.Matches(ctx, strconv.FormatInt(h.Epoch, 10)) {
		err = changed("host", id)
	}
	if err == nil {
		err = f(h)
	}
	if err != nil {
		b.mu.Unlock()
		return nil, err
	}
	b.hosts[id] = *h
	b.tell(*h)
	next := *follow
	b.mu.Unlock()
	if next != nil {
		next(h)
	}
	return h, nil
}

// Watch implements api.Backend.
func (b *Backend) Watch(ctx context.Context, id string) (<-chan *v1.Host, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, err := b.host(id)
	if err != nil {
		return nil, err
	}
	ch := make(chan *v1.Host, 1)
	ch <- h
	b.watchers[ch] = id
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, ch)
		close(ch)
	})
	return ch, nil
}
