package tenancy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"portcullis/api/audit"
	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/review"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Clusters lists clusters, a page at a time, sorted by name.
func (s *Service) Clusters(ctx context.Context, q v1.ClusterQuery) (*v1.List[v1.Cluster], error) {
	chosen, err := ParseSelector(q.Selector)
	if err != nil {
		return nil, err
	}
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	if q.Tenant != "" {
		if _, err := FindTenant(ctx, snap, q.Tenant); err != nil {
			return nil, refusal.Explain(err)
		}
	}
	own, err := OwnedBy(ctx, snap)
	if err != nil {
		return nil, err
	}
	from := page.Of(snap, Clusters(), "")
	if own != nil {
		from = page.Among(snap, Clusters(), own.Clusters(q.Tenant))
	}
	out, err := page.Walk(ctx, chosen.Among("clusters"), q.PageQuery, from, page.Each(func(r *store.Record[Cluster]) (*v1.Cluster, error) {
		if q.Tenant != "" && r.Value.Tenant != q.Tenant || !chosen.Matches(r.Value.Labels) {
			return nil, nil
		}
		return own.view(&r.Value), nil
	}))
	return out, refusal.Explain(err)
}

// Cluster returns one cluster.
func (s *Service) Cluster(ctx context.Context, cluster string) (*v1.Cluster, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	own, err := OwnedBy(ctx, snap)
	if err != nil {
		return nil, err
	}
	if cluster, err = own.Cluster(cluster); err != nil {
		return nil, err
	}
	c, err := FindCluster(ctx, snap, cluster)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	return own.view(&c), nil
}

// view shows a cluster. Of the clusters that use it, it names those of tenants of the credential.
func (o *Owned) view(c *Cluster) *v1.Cluster {
	out := clusterView(*c)
	if o != nil {
		out.Users = slices.DeleteFunc(slices.Clone(c.Users), func(name string) bool { return o.clusters[name] == "" })
	}
	return out
}

func clusterView(c Cluster) *v1.Cluster {
	return &v1.Cluster{
		Name: c.Name, Tenant: c.Tenant, PKey: c.PKey, Hosts: append([]string{}, c.Hosts...), Created: c.Created,
		Shared: c.Shared, Uses: c.Uses, Users: c.Users, Version: c.version(),
		Set: c.Set, UseSets: c.UseSets, Labels: c.Labels,
	}
}

// CreateCluster records a new cluster and assigns it a P_Key of its own.
func (s *Service) CreateCluster(ctx context.Context, actor string, n v1.NewCluster) (*v1.Cluster, error) {
	what := audit.Change{Actor: actor, Action: "cluster.create", Object: clusterObject(&n)}
	n, err := fullNew(ctx, &n)
	if err == nil {
		err = checkLabels(n.Labels)
	}
	if err != nil {
		return nil, s.o.Refusals.Note(ctx, what, err)
	}
	what.Object = clusterObject(&n)
	if n.PKey != nil {
		if err := s.mayName(ctx, *n.PKey); err != nil {
			return nil, s.o.Refusals.Note(ctx, what, err)
		}
	}
	var c Cluster
	err = s.update(ctx, func(tx *store.Tx) error {
		if err := review.Forbid(ctx, tx, "no cluster is made"); err != nil {
			return err
		}
		t, err := FindTenant(ctx, tx, n.Tenant)
		if err != nil {
			return err
		}
		own, err := parseRanges(t.PKeys)
		if err := errors.Join(err, tenantInScope(ctx, tx, &t)); err != nil {
			return err
		}
		_, err = Clusters().Get(ctx, tx, n.Name)
		if err == nil {
			return refusal.New(refusal.Conflict, codeExists, "use the one that exists, or another name", "cluster %s exists", n.Name)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := errors.Join(unambiguous(&t, n.Name), s.roomForCluster(ctx, tx, &t)); err != nil {
			return err
		}
		key, err := s.allocatePKey(ctx, tx, n.Name, t.Name, n.PKey, own)
		if err != nil {
			return err
		}
		c = Cluster{Name: n.Name, Tenant: t.Name, PKey: key, Shared: n.Shared, Created: s.now(), Set: n.Set, Labels: n.Labels}
		i, _ := slices.BinarySearch(t.Clusters, c.Name)
		t.Clusters = slices.Insert(t.Clusters, i, c.Name)
		return errors.Join(
			Tenants().Put(tx, t.Name, t),
			Clusters().Put(tx, c.Name, c),
			s.log(ctx, tx, &audit.Change{
				Actor: actor, Action: "cluster.create", Object: "cluster/" + c.Name, After: c,
				Detail: fmt.Sprintf("of tenant %s, P_Key %v", c.Tenant, c.PKey),
			}),
		)
	})
	if err != nil {
		return nil, s.o.Refusals.Note(ctx, what, err)
	}
	return clusterView(c), nil
}

// DeleteCluster removes a cluster that has no host; its P_Key is quarantined.
func (s *Service) DeleteCluster(ctx context.Context, actor, cluster string) error {
	what := audit.Change{Actor: actor, Action: "cluster.delete", Object: "cluster/" + refusal.Clip(cluster)}
	return s.o.Refusals.Note(ctx, what, s.update(ctx, func(tx *store.Tx) error {
		name, err := ownIn(ctx, tx, cluster)
		if err != nil {
			return err
		}
		c, err := FindCluster(ctx, tx, name)
		if err != nil {
			return err
		}
		if err := errors.Join(CheckCluster(ctx, &c), mayDelete(ctx, &c), c.same(ctx)); err != nil {
			return err
		}
		if !s.o.Policy.Deletes(len(c.Hosts)) {
			return refusal.New(refusal.Conflict, codeInUse, "release its hosts first", "cluster %s has hosts: %s", c.Name, refusal.Some(c.Hosts))
		}
		if len(c.Users) > 0 {
			return refusal.New(refusal.Conflict, codeInUse, "have them stop to use it first", "cluster %s is used by: %s", c.Name, refusal.Some(c.Users))
		}
		if err := s.stopUses(ctx, tx, &c); err != nil {
			return err
		}
		t, err := FindTenant(ctx, tx, c.Tenant)
		if err != nil {
			return err
		}
		t.Clusters = slices.DeleteFunc(t.Clusters, func(n string) bool { return n == c.Name })
		Clusters().Delete(tx, c.Name)
		return errors.Join(
			Tenants().Put(tx, t.Name, t),
			s.quarantinePKey(ctx, tx, c),
			s.log(ctx, tx, &audit.Change{
				Actor: actor, Action: "cluster.delete", Object: "cluster/" + c.Name, Before: c,
				Detail: fmt.Sprintf("of tenant %s, P_Key %v", c.Tenant, c.PKey),
			}),
		)
	}))
}

// ownIn returns the full name of the cluster that the credential means by a text, as of the transaction.
func ownIn(ctx context.Context, tx *store.Tx, text string) (string, error) {
	if !Confined(ctx) {
		return text, nil
	}
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	own, err := OwnedBy(ctx, snap)
	if err != nil {
		return "", err
	}
	return own.Cluster(text)
}

// clusterObject is how the audit log names a cluster that may not exist.
func clusterObject(n *v1.NewCluster) string { return fmt.Sprintf("cluster/%s", refusal.Clip(n.Name)) }
