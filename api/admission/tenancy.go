package admission

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func validName(what, s string) error {
	if name.MatchString(s) {
		return nil
	}
	return refusal.New(refusal.Invalid, "name_invalid", "use 1 to 63 lower-case letters, digits and hyphens", "%s name %q", what, refusal.Clip(s))
}

// Tenants lists tenants, a page at a time, sorted by name.
func (s *Service) Tenants(ctx context.Context, q v1.PageQuery) (*v1.List[v1.Tenant], error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	out, err := page.Walk(ctx, "tenants", q, page.Of(snap, Tenants(), ""), page.Each(func(r *store.Record[Tenant]) (*v1.Tenant, error) {
		return tenantView(r.Value), nil
	}))
	return out, refusal.Explain(err)
}

// Tenant returns one tenant.
func (s *Service) Tenant(ctx context.Context, tenant string) (*v1.Tenant, error) {
	t, err := s.tenant(ctx, s.o.Store, tenant)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	return tenantView(t), nil
}

func tenantView(t Tenant) *v1.Tenant {
	return &v1.Tenant{Name: t.Name, Created: t.Created, Version: t.version(), PKeys: t.PKeys}
}

// CreateTenant records a new tenant.
func (s *Service) CreateTenant(ctx context.Context, actor string, n v1.NewTenant) (*v1.Tenant, error) {
	if err := validName("tenant", n.Name); err != nil {
		return nil, err
	}
	ranges, err := tenantRanges(ctx, &n)
	if err != nil {
		return nil, s.noteRefusal(ctx, change{actor: actor, action: "tenant.create", object: "tenant/" + n.Name}, err)
	}
	var t Tenant
	err = s.update(ctx, func(tx *store.Tx) error {
		_, err := Tenants().Get(ctx, tx, n.Name)
		if err == nil {
			return refusal.New(refusal.Conflict, "tenant_exists", "", "tenant %s exists", n.Name)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		t = Tenant{Name: n.Name, Created: s.now(), PKeys: ranges.texts()}
		return errors.Join(
			Tenants().Put(tx, t.Name, t),
			s.log(ctx, tx, change{actor: actor, action: "tenant.create", object: "tenant/" + t.Name, after: t}),
		)
	})
	if err != nil {
		return nil, err
	}
	return tenantView(t), nil
}

// tenantRanges returns the ranges of P_Keys of a tenant to be created: those that were named, else those of the
// credential.
func tenantRanges(ctx context.Context, n *v1.NewTenant) (Ranges, error) {
	ranges, err := parseRanges(n.PKeys)
	if err != nil {
		return nil, refusal.New(refusal.Invalid, "p_keys_invalid", "for example 0x0100-0x01ff", "%v", err)
	}
	scope := scopeOf(ctx)
	switch {
	case scope == nil:
		return ranges, nil
	case len(ranges) == 0:
		return scope.PKeys, nil
	case !scope.PKeys.cover(ranges):
		return nil, refusal.New(refusal.Refused, codeOutOfScope, "name ranges within these, or none",
			"the P_Keys %v are named, and this credential has only those of %v", ranges, scope.PKeys)
	default:
		return ranges, nil
	}
}

// DeleteTenant removes a tenant that has no cluster.
func (s *Service) DeleteTenant(ctx context.Context, actor, tenant string) error {
	what := change{actor: actor, action: "tenant.delete", object: "tenant/" + refusal.Clip(tenant)}
	return s.noteRefusal(ctx, what, s.update(ctx, func(tx *store.Tx) error {
		t, err := s.tenant(ctx, tx, tenant)
		if err != nil {
			return err
		}
		if err := errors.Join(s.tenantInScope(ctx, tx, &t), t.same(ctx)); err != nil {
			return err
		}
		if len(t.Clusters) > 0 {
			return refusal.New(refusal.Conflict, "tenant_in_use", "delete its clusters first", "tenant %s has clusters: %s", t.Name, refusal.Some(t.Clusters))
		}
		Tenants().Delete(tx, t.Name)
		return s.log(ctx, tx, change{actor: actor, action: "tenant.delete", object: "tenant/" + t.Name, before: t})
	}))
}

func (s *Service) tenant(ctx context.Context, r store.Reader, tenant string) (Tenant, error) {
	if err := validName("tenant", tenant); err != nil {
		return Tenant{}, err
	}
	rec, err := Tenants().Get(ctx, r, tenant)
	if errors.Is(err, store.ErrNotFound) {
		return Tenant{}, refusal.New(refusal.NotFound, "tenant_unknown", "create it first", "no tenant %q", tenant)
	}
	return rec.Value, err
}

// Clusters lists clusters, a page at a time, sorted by name.
func (s *Service) Clusters(ctx context.Context, q v1.ClusterQuery) (*v1.List[v1.Cluster], error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	if q.Tenant != "" {
		if _, err := s.tenant(ctx, snap, q.Tenant); err != nil {
			return nil, refusal.Explain(err)
		}
	}
	out, err := page.Walk(ctx, "clusters", q.PageQuery, page.Of(snap, Clusters(), ""), page.Each(func(r *store.Record[Cluster]) (*v1.Cluster, error) {
		if q.Tenant != "" && r.Value.Tenant != q.Tenant {
			return nil, nil
		}
		return clusterView(r.Value), nil
	}))
	return out, refusal.Explain(err)
}

// Cluster returns one cluster.
func (s *Service) Cluster(ctx context.Context, cluster string) (*v1.Cluster, error) {
	c, err := s.cluster(ctx, s.o.Store, cluster)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	return clusterView(c), nil
}

func clusterView(c Cluster) *v1.Cluster {
	return &v1.Cluster{
		Name: c.Name, Tenant: c.Tenant, PKey: c.PKey, Hosts: append([]string{}, c.Hosts...), Created: c.Created,
		Shared: c.Shared, Uses: c.Uses, Users: c.Users, Version: c.version(),
	}
}

func (s *Service) cluster(ctx context.Context, r store.Reader, cluster string) (Cluster, error) {
	if err := validName("cluster", cluster); err != nil {
		return Cluster{}, err
	}
	rec, err := Clusters().Get(ctx, r, cluster)
	if errors.Is(err, store.ErrNotFound) {
		return Cluster{}, refusal.New(refusal.NotFound, "cluster_unknown", "list clusters to see their names, or create it first", "no cluster %q", cluster)
	}
	return rec.Value, err
}

// CreateCluster records a new cluster and assigns it a P_Key of its own.
func (s *Service) CreateCluster(ctx context.Context, actor string, n v1.NewCluster) (*v1.Cluster, error) {
	if err := errors.Join(validName("cluster", n.Name), validName("tenant", n.Tenant)); err != nil {
		return nil, err
	}
	what := change{actor: actor, action: "cluster.create", object: clusterObject(&n)}
	if n.PKey != nil {
		if err := s.mayName(ctx, *n.PKey); err != nil {
			return nil, s.noteRefusal(ctx, what, err)
		}
	}
	var c Cluster
	err := s.update(ctx, func(tx *store.Tx) error {
		if err := noReview(ctx, tx, "no cluster is made"); err != nil {
			return err
		}
		t, err := s.tenant(ctx, tx, n.Tenant)
		if err != nil {
			return err
		}
		own, err := parseRanges(t.PKeys)
		if err := errors.Join(err, s.tenantInScope(ctx, tx, &t)); err != nil {
			return err
		}
		_, err = Clusters().Get(ctx, tx, n.Name)
		if err == nil {
			return refusal.New(refusal.Conflict, "cluster_exists", "", "cluster %s exists", n.Name)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		key, err := s.allocatePKey(ctx, tx, n.Name, n.PKey, own)
		if err != nil {
			return err
		}
		c = Cluster{Name: n.Name, Tenant: t.Name, PKey: key, Shared: n.Shared, Created: s.now()}
		i, _ := slices.BinarySearch(t.Clusters, c.Name)
		t.Clusters = slices.Insert(t.Clusters, i, c.Name)
		return errors.Join(
			Tenants().Put(tx, t.Name, t),
			Clusters().Put(tx, c.Name, c),
			s.log(ctx, tx, change{
				actor: actor, action: "cluster.create", object: "cluster/" + c.Name, after: c,
				detail: fmt.Sprintf("of tenant %s, P_Key %v", c.Tenant, c.PKey),
			}),
		)
	})
	if err != nil {
		return nil, s.noteRefusal(ctx, what, err)
	}
	return clusterView(c), nil
}

// DeleteCluster removes a cluster that has no host; its P_Key is quarantined.
func (s *Service) DeleteCluster(ctx context.Context, actor, cluster string) error {
	what := change{actor: actor, action: "cluster.delete", object: "cluster/" + refusal.Clip(cluster)}
	return s.noteRefusal(ctx, what, s.update(ctx, func(tx *store.Tx) error {
		c, err := s.cluster(ctx, tx, cluster)
		if err != nil {
			return err
		}
		if err := errors.Join(inScope(ctx, &c), c.same(ctx)); err != nil {
			return err
		}
		if len(c.Hosts) > 0 && !s.o.Weakness.DeletesUsed {
			return refusal.New(refusal.Conflict, codeInUse, "release its hosts first", "cluster %s has hosts: %s", c.Name, refusal.Some(c.Hosts))
		}
		if len(c.Users) > 0 {
			return refusal.New(refusal.Conflict, codeInUse, "have them stop to use it first", "cluster %s is used by: %s", c.Name, refusal.Some(c.Users))
		}
		if err := s.stopUses(ctx, tx, &c); err != nil {
			return err
		}
		t, err := s.tenant(ctx, tx, c.Tenant)
		if err != nil {
			return err
		}
		t.Clusters = slices.DeleteFunc(t.Clusters, func(n string) bool { return n == c.Name })
		Clusters().Delete(tx, c.Name)
		return errors.Join(
			Tenants().Put(tx, t.Name, t),
			s.quarantinePKey(ctx, tx, c),
			s.log(ctx, tx, change{
				actor: actor, action: "cluster.delete", object: "cluster/" + c.Name, before: c,
				detail: fmt.Sprintf("of tenant %s, P_Key %v", c.Tenant, c.PKey),
			}),
		)
	}))
}
