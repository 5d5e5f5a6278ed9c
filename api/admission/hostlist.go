package admission

import (
	"context"
	"slices"
	"strings"

	"portcullis/api/inventory"
	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// hostList names the list of hosts in cursors.
const hostList = "hosts"

// Hosts lists the hosts of the inventory that q asks for, a page at a time, sorted by id.
func (s *Service) Hosts(ctx context.Context, q v1.HostQuery) (*v1.List[v1.Host], error) {
	return listHosts(ctx, s, q, func(h *v1.Host) *v1.Host { return h })
}

// HostSummaries is Hosts with each host in one line.
func (s *Service) HostSummaries(ctx context.Context, q v1.HostQuery) (*v1.List[v1.HostSummary], error) {
	return listHosts(ctx, s, q, func(h *v1.Host) *v1.HostSummary {
		line := h.Summary()
		return &line
	})
}

// HostIDs is Hosts with ids alone. Unless hosts of a phase are asked for, it reads inventory and nothing else
// of a host.
func (s *Service) HostIDs(ctx context.Context, q v1.HostQuery) (*v1.List[v1.HostID], error) {
	if q.Phase != "" {
		return listHosts(ctx, s, q, func(h *v1.Host) *v1.HostID { return &v1.HostID{ID: h.ID} })
	}
	selector, err := tenancy.ParseSelector(q.Selector)
	if err != nil {
		return nil, err
	}
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	from, err := s.hostsFrom(ctx, snap, q)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	out, err := page.Walk(ctx, selector.Among(hostList), q.PageQuery, from, func(recs []store.Record[inventory.Host]) ([]*v1.HostID, error) {
		out := make([]*v1.HostID, len(recs))
		var are []bool
		if !selector.Empty() {
			if are, _, err = chosen(ctx, snap, selector, recs); err != nil {
				return nil, err
			}
		}
		for i := range recs {
			if (q.Rack == "" || recs[i].Value.Rack == q.Rack) && (are == nil || are[i]) {
				out[i] = &v1.HostID{ID: recs[i].Key}
			}
		}
		return out, nil
	})
	return out, refusal.Explain(err)
}

func listHosts[T any](ctx context.Context, s *Service, q v1.HostQuery, show func(*v1.Host) *T) (*v1.List[T], error) {
	selector, err := tenancy.ParseSelector(q.Selector)
	if err != nil {
		return nil, err
	}
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	from, err := s.hostsFrom(ctx, snap, q)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	out, err := page.Walk(ctx, selector.Among(hostList), q.PageQuery, from, func(recs []store.Record[inventory.Host]) ([]*T, error) {
		out := make([]*T, len(recs))
		are, labels, err := chosen(ctx, snap, selector, recs)
		if err != nil {
			return nil, err
		}
		var asked []int // positions of those that neither inventory nor labels rule out
		for i := range recs {
			if are[i] && (q.Rack == "" || recs[i].Value.Rack == q.Rack) {
				asked = append(asked, i)
			}
		}
		some := make([]store.Record[inventory.Host], len(asked))
		for j, i := range asked {
			some[j] = recs[i]
		}
		all, err := s.gatherSome(ctx, snap, some)
		if err != nil {
			return nil, err
		}
		for j, f := range all {
			if h := shown(ctx, f, decide(f)); q.Phase == "" || h.Status.Phase == q.Phase {
				h.Labels = labels[h.ID]
				out[asked[j]] = show(h)
			}
		}
		return out, nil
	})
	return out, refusal.Explain(err)
}

// hostsFrom is where the hosts of a list come from: inventory in its order, or what clusters name.
func (s *Service) hostsFrom(ctx context.Context, n store.Snapshot, q v1.HostQuery) (page.Source[inventory.Host], error) {
	own, err := tenancy.OwnedBy(ctx, n)
	if err != nil {
		return nil, err
	}
	if own == nil && q.Tenant == "" && q.Cluster == "" {
		return page.Of(n, inventory.Hosts(), q.Prefix), nil
	}
	ids, err := s.assignedTo(ctx, n, own, q)
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, q.Prefix) })
	return page.Among(n, inventory.Hosts(), ids), nil
}

// assignedTo returns the ids of the hosts of a tenant, of a cluster, or of a cluster if it is that tenant's, sorted. A credential
// that is confined to tenants has no others.
func (s *Service) assignedTo(ctx context.Context, n store.Snapshot, own *tenancy.Owned, q v1.HostQuery) ([]string, error) {
	names := []string{q.Cluster}
	switch {
	case q.Cluster != "":
		var err error
		if q.Cluster, err = own.Cluster(q.Cluster); err != nil {
			return nil, err
		}
		names = []string{q.Cluster}
	case q.Tenant == "":
		names = own.Clusters("")
	}
	if q.Tenant != "" {
		t, err := tenancy.FindTenant(ctx, n, q.Tenant)
		if err != nil {
			return nil, err
		}
		names = t.Clusters
		if q.Cluster != "" {
			names = slices.DeleteFunc(slices.Clone(t.Clusters), func(name string) bool { return name != q.Cluster })
		}
	}
	var ids []string
	if len(names) == 0 && q.Cluster != "" { // one of another tenant, or none
		_, err := tenancy.FindCluster(ctx, n, q.Cluster)
		return nil, err
	}
	for _, name := range names {
		c, err := tenancy.FindCluster(ctx, n, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, c.Hosts...)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
