package tenancy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// A quota bounds what a tenant may have. It is compared in the transaction that adds something, and what the tenant has is
// counted from the records of its clusters, so that no counter can be wrong. What the count rests on is a condition of the
// commit. A quota takes nothing away, and nothing that takes away asks for one.

// Codes of refusals because of a quota.
const (
	codeQuota   = "quota_exceeded"
	codeNoQuota = "quota_missing" // of a credential of tenants, which needs one
)

// leastRest is how long a P_Key counts for a credential of tenants after it was proven absent, at least. It bounds how fast one
// that makes and deletes clusters in turn fills the audit log.
const leastRest = time.Minute

// SetQuota replaces the quota of a tenant. One below what the tenant has takes nothing away: it refuses more.
func (s *Service) SetQuota(ctx context.Context, actor, tenant string, q v1.TenantQuota) (*v1.Tenant, error) {
	for _, b := range boundsOf(&q) {
		if *b.most != nil && **b.most < 0 {
			return nil, refusal.New(refusal.Invalid, "quota_invalid", "0 means none; leave it out for no bound", "a quota of %d %s", **b.most, b.what)
		}
	}
	what := audit.Change{Actor: actor, Action: "tenant.quota", Object: "tenant/" + refusal.Clip(tenant)}
	var out *v1.Tenant
	err := s.update(ctx, func(tx *store.Tx) error {
		t, err := FindTenant(ctx, tx, tenant)
		if err != nil {
			return err
		}
		if err := errors.Join(tenantInScope(ctx, tx, &t), t.same(ctx)); err != nil {
			return err
		}
		before := t
		if describe(t.Quota) != describe(&q) {
			t.Quota, t.Changes = &q, t.Changes+1
			if q == (v1.TenantQuota{}) {
				t.Quota = nil
			}
			what.Before, what.After, what.Detail = before, t, describe(&q)+"; before: "+describe(before.Quota)
			if err := errors.Join(Tenants().Put(tx, t.Name, t), s.log(ctx, tx, &what)); err != nil {
				return err
			}
		}
		snap, err := tx.Snapshot(ctx)
		if err != nil {
			return err
		}
		out, err = tenantShown(ctx, snap, &t)
		return err
	})
	return out, s.o.Refusals.Note(ctx, what, err)
}

// RoomForHost refuses one host more for a tenant whose quota has no room for it. The clusters of the tenant become conditions
// of tx, so that no other transaction adds a host to one of them meanwhile.
func RoomForHost(ctx context.Context, tx *store.Tx, tenant string) error {
	t, err := store.Optional(Tenants().Get(ctx, tx, tenant))
	if err != nil || t.Quota == nil || t.Quota.Hosts == nil {
		return err
	}
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return err
	}
	clusters, err := Clusters().Of(ctx, snap, t.Clusters)
	if err != nil {
		return err
	}
	for i := range clusters {
		Clusters().Expect(tx, clusters[i].Key, clusters[i].Modified)
	}
	// A host begins to leave in a transaction that changes its cluster, so that these need no condition.
	leaving, _, err := LeavingHosts().List(ctx, snap, "")
	if err != nil {
		return err
	}
	use := hostsOf(&t, clusters, leaving)
	if use.Hosts < *t.Quota.Hosts {
		return nil
	}
	released := ""
	if use.Releasing > 0 {
		released = fmt.Sprintf(", %d of them released and not proven absent from their switch ports yet", use.Releasing)
	}
	return overQuota(tenant, "hosts", *t.Quota.Hosts, use.Hosts, released, "release hosts of the tenant")
}

// roomForCluster refuses one cluster more, and its P_Key, for a tenant whose quota has no room for it. tx has read the tenant,
// which each transaction changes that makes or deletes a cluster of it.
//
// P_Keys are the fabric's, and other tenants need them, too. So a credential of tenants makes clusters only where a quota bounds
// them and their P_Keys, and for it a P_Key counts until it may be given out again.
func (s *Service) roomForCluster(ctx context.Context, tx *store.Tx, t *Tenant) error {
	q := t.Quota
	if Confined(ctx) && (q == nil || q.Clusters == nil || q.PKeys == nil) {
		return refusal.New(refusal.Refused, codeNoQuota, fmt.Sprintf("have an operator set it: portcullis tenant quota %s --clusters N --p-keys N", t.Name),
			"tenant %s has no quota of clusters and P_Keys: without one, a credential with the role tenant creates no cluster", t.Name)
	}
	if q == nil || q.Clusters == nil && q.PKeys == nil {
		return nil
	}
	if q.Clusters != nil && len(t.Clusters) >= *q.Clusters {
		return overQuota(t.Name, "clusters", *q.Clusters, len(t.Clusters), "", "delete clusters of the tenant")
	}
	if q.PKeys == nil {
		return nil
	}
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return err
	}
	quarantined, err := quarantinedOf(ctx, snap)
	if err != nil {
		return err
	}
	waiting, rests := quarantined[t.Name], ""
	if waiting > 0 {
		rests = fmt.Sprintf(", %d of them of deleted clusters and not proven absent everywhere yet", waiting)
	}
	use := len(t.Clusters) + waiting
	if Confined(ctx) {
		resting, err := s.restingOf(ctx, snap, t.Name)
		if err != nil {
			return err
		}
		if use += resting; resting > 0 {
			rests += fmt.Sprintf(", %d of them of deleted clusters and given out again only after a rest", resting)
		}
	}
	if use >= *q.PKeys {
		return overQuota(t.Name, "p_keys", *q.PKeys, use, rests, "delete clusters of the tenant, and see the quarantined P_Keys for what they wait for")
	}
	return nil
}

// restingOf counts the P_Keys of a tenant's deleted clusters that are proven absent and not given out again yet.
func (s *Service) restingOf(ctx context.Context, n store.Snapshot, tenant string) (resting int, err error) {
	all, _, err := PKeys().List(ctx, n, "")
	if err != nil {
		return 0, err
	}
	for i := range all {
		if r := &all[i].Value; r.State == PKeyAbsent && r.Tenant == tenant && s.now().Sub(r.Since) < max(s.o.PKeyMinAge, leastRest) {
			resting++
		}
	}
	return resting, nil
}

func overQuota(tenant, what string, most, use int, of, cure string) error {
	return refusal.New(refusal.Conflict, codeQuota,
		fmt.Sprintf("%s, or have an operator raise the quota: portcullis tenant quota %s --%s N", cure, tenant, strings.ReplaceAll(what, "_", "-")),
		"tenant %s may have %d %s and has %d%s: one more is refused", tenant, most, nameOf(what), use, of)
}

func nameOf(what string) string {
	if what == "p_keys" {
		return "P_Keys"
	}
	return what
}

// bound is one number of a quota.
type bound struct {
	what string
	most **int
}

func boundsOf(q *v1.TenantQuota) []bound {
	return []bound{{"hosts", &q.Hosts}, {"clusters", &q.Clusters}, {"p_keys", &q.PKeys}}
}

// describe says what a quota is, in a form that is equal for equal quotas.
func describe(q *v1.TenantQuota) string {
	if q == nil {
		q = &v1.TenantQuota{}
	}
	var says []string
	for _, b := range boundsOf(q) {
		if *b.most != nil {
			says = append(says, fmt.Sprintf("at most %d %s", **b.most, nameOf(b.what)))
		}
	}
	if len(says) == 0 {
		return "no bounds"
	}
	return strings.Join(says, ", ")
}

// exceeded names what a tenant has more of than its quota says, in the order of boundsOf.
func exceeded(q *v1.TenantQuota, use *v1.TenantUse) []string {
	if q == nil {
		return nil
	}
	has := []int{use.Hosts, use.Clusters, use.PKeys}
	var out []string
	for i, b := range boundsOf(q) {
		if *b.most != nil && has[i] > **b.most {
			out = append(out, b.what)
		}
	}
	return slices.Clip(out)
}
