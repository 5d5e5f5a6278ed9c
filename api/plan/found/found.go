// Package found reads, in one snapshot of the store, what a plan is compared with, and has the plan made. It changes nothing.
package found

import (
	"context"
	"maps"
	"slices"

	"portcullis/api/hostlabel"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/label"
	"portcullis/api/plan"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// Bounds of what a plan names: each host and each use may become a change.
const (
	mostHosts = 40_000
	mostUses  = 40_000
)

// Planner makes plans for callers. Methods are safe for concurrent use. Refusals are *refusal.Error.
type Planner struct{ Store *store.Store }

// Plan says how what is there differs from what is wanted. A credential that is confined to tenants sees what is theirs alone.
func (p Planner) Plan(ctx context.Context, w *v1.Wanted) (*v1.Plan, error) {
	hosts, uses := 0, 0
	for i := range w.Assignments {
		hosts += len(w.Assignments[i].Hosts)
	}
	for i := range w.Clusters {
		uses += len(w.Clusters[i].Uses)
	}
	switch {
	case hosts > mostHosts:
		return nil, refusal.New(refusal.Invalid, "too_many_hosts", "make several plans", "the plan names %d hosts: at most %d", hosts, mostHosts)
	case uses > mostUses:
		return nil, refusal.New(refusal.Invalid, "too_many_uses", "make several plans", "the plan names %d uses of shared clusters: at most %d", uses, mostUses)
	}
	snap, err := p.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	own, err := tenancy.OwnedBy(ctx, snap)
	if err != nil {
		return nil, err
	}
	w = own.Wanted(w)
	f, err := read(ctx, snap, own, w)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	return plan.Make(w, f), nil
}

func read(ctx context.Context, n store.Snapshot, own *tenancy.Owned, w *v1.Wanted) (*plan.Found, error) {
	tenants, clusters, err := tenancy.All(ctx, n)
	if err != nil {
		return nil, err
	}
	hosts, err := hostsOf(ctx, n, own, hostIDs(w, clusters))
	if err != nil {
		return nil, err
	}
	return &plan.Found{Tenants: tenants, Clusters: clusters, Hosts: hosts, LabelVersions: labelVersions(w, tenants, clusters, hosts)}, nil
}

// labelVersions returns the versions of the labels of what is there and wanted, by object.
func labelVersions(w *v1.Wanted, tenants map[string]v1.Tenant, clusters map[string]v1.Cluster, hosts map[string]plan.Host) map[string]string {
	out := map[string]string{}
	for i := range w.Tenants {
		if t, there := tenants[w.Tenants[i].Name]; there {
			out["tenant/"+t.Name] = tenancy.TenantLabelsVersion(&t)
		}
	}
	for i := range w.Clusters {
		if c, there := clusters[w.Clusters[i].Name]; there {
			out["cluster/"+c.Name] = tenancy.ClusterLabelsVersion(&c)
		}
	}
	for i := range w.Assignments {
		if len(w.Assignments[i].Labels) == 0 {
			continue
		}
		for _, id := range w.Assignments[i].Hosts {
			out["host/"+id] = label.Set(hosts[id].Labels).Digest()
		}
	}
	return out
}

// hostIDs returns the hosts that a plan needs to know, each once: those that are named, and with prune those of all clusters.
func hostIDs(w *v1.Wanted, clusters map[string]v1.Cluster) []string {
	ids := map[string]bool{}
	for i := range w.Assignments {
		for _, id := range w.Assignments[i].Hosts {
			ids[id] = true
		}
	}
	if w.Prune {
		for _, c := range clusters {
			for _, id := range c.Hosts {
				ids[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// hostsOf reads hosts of the inventory. One that the credential does not have is as one that is not there.
func hostsOf(ctx context.Context, n store.Snapshot, own *tenancy.Owned, ids []string) (map[string]plan.Host, error) {
	ids = slices.DeleteFunc(ids, func(id string) bool { return !own.HasHost(id) })
	known, err := inventory.Hosts().Of(ctx, n, ids)
	if err != nil {
		return nil, err
	}
	recs, err := hostrecord.Records().Of(ctx, n, ids)
	if err != nil {
		return nil, err
	}
	labels, err := hostlabel.Of(ctx, n, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[string]plan.Host, len(known))
	for i := range known {
		out[known[i].Key] = plan.Host{Labels: labels[known[i].Key]}
	}
	for i := range recs {
		r := &recs[i].Value
		if _, there := out[recs[i].Key]; there {
			out[recs[i].Key] = plan.Host{Labels: labels[recs[i].Key], Cluster: r.Cluster, Set: r.Set, Epoch: r.Epoch, Releasing: hostrecord.PhaseOf(*r) == v1.PhaseReleasing}
		}
	}
	return out, nil
}
