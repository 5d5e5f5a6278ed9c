package tenancy

import (
	"context"
	"errors"
	"slices"

	"portcullis/api/audit"
	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Tenants lists tenants, a page at a time, sorted by name.
func (s *Service) Tenants(ctx context.Context, q v1.TenantQuery) (*v1.List[v1.Tenant], error) {
	chosen, err := ParseSelector(q.Selector)
	if err != nil {
		return nil, err
	}
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	from := page.Of(snap, Tenants(), "")
	if s := scopeOf(ctx); s.confined() {
		from = page.Among(snap, Tenants(), slices.Compact(slices.Sorted(slices.Values(s.Tenants))))
	}
	out, err := page.Walk(ctx, chosen.Among("tenants"), q.PageQuery, from, func(recs []store.Record[Tenant]) ([]*v1.Tenant, error) {
		var list []*Tenant
		var at []int // positions of those that are chosen
		for i := range recs {
			if chosen.Matches(recs[i].Value.Labels) {
				list, at = append(list, &recs[i].Value), append(at, i)
			}
		}
		out := make([]*v1.Tenant, len(recs))
		shown, err := tenantsShown(ctx, snap, list)
		for j := range shown {
			out[at[j]] = shown[j]
		}
		return out, err
	})
	return out, refusal.Explain(err)
}

// Tenant returns one tenant.
func (s *Service) Tenant(ctx context.Context, tenant string) (*v1.Tenant, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	t, err := FindTenant(ctx, snap, tenant)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	out, err := tenantShown(ctx, snap, &t)
	return out, refusal.Explain(err)
}

// CreateTenant records a new tenant.
func (s *Service) CreateTenant(ctx context.Context, actor string, n v1.NewTenant) (*v1.Tenant, error) {
	if err := errors.Join(ValidName("tenant", n.Name), checkLabels(n.Labels)); err != nil {
		return nil, err
	}
	ranges, err := tenantRanges(ctx, &n)
	if err != nil {
		return nil, s.o.Refusals.Note(ctx, audit.Change{Actor: actor, Action: "tenant.create", Object: "tenant/" + n.Name}, err)
	}
	var out *v1.Tenant
	err = s.update(ctx, func(tx *store.Tx) error {
		_, err := Tenants().Get(ctx, tx, n.Name)
		if err == nil {
			return refusal.New(refusal.Conflict, "tenant_exists", "use the one that exists, or another name", "tenant %s exists", n.Name)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		t := Tenant{Name: n.Name, Created: s.now(), PKeys: ranges.texts(), Set: n.Set, Labels: n.Labels}
		snap, err := tx.Snapshot(ctx)
		if err != nil {
			return err
		}
		if out, err = tenantShown(ctx, snap, &t); err != nil { // an earlier one of the name may have left something
			return err
		}
		return errors.Join(
			Tenants().Put(tx, t.Name, t),
			s.log(ctx, tx, &audit.Change{Actor: actor, Action: "tenant.create", Object: "tenant/" + t.Name, After: t}),
		)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
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
	what := audit.Change{Actor: actor, Action: "tenant.delete", Object: "tenant/" + refusal.Clip(tenant)}
	return s.o.Refusals.Note(ctx, what, s.update(ctx, func(tx *store.Tx) error {
		t, err := FindTenant(ctx, tx, tenant)
		if err != nil {
			return err
		}
		if err := errors.Join(tenantInScope(ctx, tx, &t), t.same(ctx)); err != nil {
			return err
		}
		if len(t.Clusters) > 0 {
			return refusal.New(refusal.Conflict, "tenant_in_use", "delete its clusters first", "tenant %s has clusters: %s", t.Name, refusal.Some(t.Clusters))
		}
		Tenants().Delete(tx, t.Name)
		return s.log(ctx, tx, &audit.Change{Actor: actor, Action: "tenant.delete", Object: "tenant/" + t.Name, Before: t})
	}))
}
