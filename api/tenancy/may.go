package tenancy

import (
	"context"
	"fmt"
	"slices"

	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// tenantInScope refuses a tenant that the credential has nothing to do with. A tenant is in the scope if its own ranges
// are; without ranges, if it has clusters and the P_Keys of all of them are.
func tenantInScope(ctx context.Context, r store.Reader, t *Tenant) error {
	scope := scopeOf(ctx)
	if scope == nil || scope.confined() && slices.Contains(scope.Tenants, t.Name) {
		return nil
	}
	own, err := parseRanges(t.PKeys)
	if err != nil {
		return fmt.Errorf("tenant %s: %w", t.Name, err)
	}
	if scope.PKeys.cover(own) {
		return nil
	}
	has := "no range of P_Keys"
	switch {
	case len(own) > 0:
		has = "the P_Keys of " + own.String()
	case len(t.Clusters) > 0:
		for _, name := range t.Clusters {
			c, err := FindCluster(ctx, r, name)
			if err != nil {
				return err
			}
			if !scope.PKeys.contains(c.PKey) {
				return refusal.New(refusal.Refused, codeTenantScope, "use a credential for all of that tenant's clusters",
					"tenant %s has cluster %s with P_Key %v, and this credential only those of %v", t.Name, c.Name, c.PKey, scope.PKeys)
			}
		}
		return nil
	}
	return refusal.New(refusal.Refused, codeTenantScope, "use a tenant that this credential created, or that was created with p_keys out of its ranges",
		"tenant %s has %s, and this credential those of %v", t.Name, has, scope.PKeys)
}

// mayName refuses a P_Key that a caller has named and may not.
func (s *Service) mayName(ctx context.Context, k ib.PKey) error {
	scope := scopeOf(ctx)
	switch {
	case !k.Valid() || k.Base() == ib.DefaultPKeyLimited:
		return refusal.New(refusal.Invalid, codeReserved, "leave it out, and the service chooses one", "P_Key %v is reserved", k)
	case scope.confined(): // the ranges of the tenant say which
	case scope == nil:
		return refusal.New(refusal.Refused, codeOutOfScope, "leave it out, and the service chooses one; or add p_keys to the credential",
			"P_Key %v is named, and this credential has no range of them", k)
	case !scope.PKeys.contains(k):
		return refusal.New(refusal.Refused, codeOutOfScope, "name one of these, or none",
			"P_Key %v is named, and this credential has only those of %v", k, scope.PKeys)
	}
	if k.Base() < s.o.PKeyFirst.Base() || k.Base() > s.o.PKeyLast.Base() || slices.Contains(s.o.PKeyReserved, k.Base()) {
		return refusal.New(refusal.Invalid, codeReserved, "name another one, or none", "P_Key %v is not one that this service assigns", k)
	}
	return nil
}
