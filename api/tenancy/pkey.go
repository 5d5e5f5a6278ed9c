package tenancy

import (
	"context"
	"errors"
	"fmt"

	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/isolation/outsiders"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// allocatePKey assigns the cluster a P_Key that no port holds: the lowest that was never used, otherwise the one whose
// absence was proven longest ago. A P_Key that the caller named, and may use, must be free in the same way. own are the
// ranges of the tenant; nil: it has none.
func (s *Service) allocatePKey(ctx context.Context, tx *store.Tx, cluster, tenant string, named *ib.PKey, own Ranges) (ib.PKey, error) {
	key, err := s.freePKey(ctx, tx, tenant, named, own)
	if err != nil {
		return 0, err
	}
	// Reading through tx makes the commit fail if another writer takes it meanwhile.
	was, err := PKeys().Get(ctx, tx, key.String())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, err
	}
	if st := was.Value.State; err == nil && st != "" && st != PKeyAbsent && (st != PKeyAdopted || !mayAdopt(ctx, named)) {
		return 0, fmt.Errorf("%w: P_Key %v was taken", store.ErrConflict, key)
	}
	return key, PKeys().Put(tx, key.String(), PKeyRecord{State: PKeyUsed, Cluster: cluster, Tenant: tenant, Since: s.now()})
}

// mayAdopt reports whether the credential may take the P_Key that it named also if it is adopted.
func mayAdopt(ctx context.Context, named *ib.PKey) bool {
	scope := scopeOf(ctx)
	return named != nil && scope != nil && scope.Adopted
}

// freePKey returns the P_Key that allocatePKey assigns, as of the moment at which tx began. A credential of tenants learns nothing
// of those that others have.
func (s *Service) freePKey(ctx context.Context, tx *store.Tx, tenant string, named *ib.PKey, own Ranges) (ib.PKey, error) {
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	all, _, err := PKeys().List(ctx, snap, "")
	if err != nil {
		return 0, err
	}
	known := make(map[string]store.Record[PKeyRecord], len(all))
	for _, r := range all {
		known[r.Key] = r
	}
	scope := scopeOf(ctx)
	switch {
	case named != nil && own == nil && scope.confined():
		return 0, refusal.New(refusal.Refused, codeOutOfScope, "leave it out, and the service chooses one; or have an operator create the tenant with p_keys",
			"P_Key %v is named, and tenant %s has no range of them", *named, tenant)
	case named != nil && own != nil && !own.contains(*named):
		return 0, refusal.New(refusal.Refused, codeOutOfScope, "name one of these, or none", "P_Key %v is named, and the tenant has only those of %v", *named, own)
	case named != nil:
		if err = s.chooseNamed(*named, known, mayAdopt(ctx, named)); err != nil && scope.confined() { // the cause may be another's
			err = refusal.New(refusal.Conflict, "p_key_not_free", "name another one, or none", "P_Key %v is not free now", *named)
		}
		return named.Base(), err
	}
	within, others := []Ranges{own}, Ranges(nil)
	if scope != nil {
		within = append(within, scope.PKeys)
	}
	if own == nil && scope.confined() {
		if others, err = rangesOfTenants(ctx, snap); err != nil {
			return 0, err
		}
	}
	held, err := outsiders.Held(ctx, snap)
	if err != nil {
		return 0, err
	}
	key, why := s.choosePKey(within, others, known, held)
	switch {
	case key != 0:
		return key, nil
	case scope.confined(): // why counts those of all tenants
		return 0, refusal.New(refusal.Conflict, codeNoPKeys, "delete clusters that are not needed, or ask again later", "no P_Key is left for tenant %s", tenant)
	default:
		return 0, refusal.New(refusal.Conflict, codeNoPKeys, "delete clusters that are not needed, or see the quarantined P_Keys for what they wait for", "no P_Key is left: %s", why)
	}
}

// rangesOfTenants returns the ranges of P_Keys of all tenants.
func rangesOfTenants(ctx context.Context, n store.Snapshot) (out Ranges, err error) {
	all, _, err := Tenants().List(ctx, n, "")
	if err != nil {
		return nil, err
	}
	for i := range all {
		of, err := parseRanges(all[i].Value.PKeys)
		if err != nil {
			return nil, fmt.Errorf("tenant %s: %w", all[i].Key, err)
		}
		out = append(out, of...)
	}
	return out, nil
}

// quarantinePKey takes the P_Key of a deleted cluster out of use until it is
// proven absent.
func (s *Service) quarantinePKey(ctx context.Context, tx *store.Tx, c Cluster) error {
	rec := PKeyRecord{State: PKeyQuarantined, Cluster: c.Name, Tenant: c.Tenant, Since: s.now()}
	if !s.o.Policy.Quarantines() {
		rec.State = PKeyAbsent
	}
	if err := PKeys().Put(tx, c.PKey.String(), rec); err != nil {
		return err
	}
	return s.FreePKey(ctx, tx, c.PKey)
}

// AdoptPKey records that ports have a P_Key which no cluster has. No cluster gets it unless it is named.
func (s *Service) AdoptPKey(ctx context.Context, tx *store.Tx, k ib.PKey) error {
	rec, err := store.Optional(PKeys().Get(ctx, tx, k.Base().String()))
	switch {
	case err != nil:
		return err
	case rec.State == PKeyAdopted:
		return nil
	case rec.State != "" && rec.State != PKeyAbsent:
		return refusal.New(refusal.Conflict, "p_key_used", "portcullis adopt plan shows what can be adopted", "P_Key %v is that of cluster %s", k.Base(), rec.Cluster)
	}
	return PKeys().Put(tx, k.Base().String(), PKeyRecord{State: PKeyAdopted, Cluster: rec.Cluster, Tenant: rec.Tenant, Since: s.now()})
}

// FreePKey ends the quarantine of a P_Key, or that it is adopted, if no grant of it is left. It has
// no cluster, so none can come.
func (s *Service) FreePKey(ctx context.Context, tx *store.Tx, k ib.PKey) error {
	rec, err := PKeys().Get(ctx, tx, k.String())
	if errors.Is(err, store.ErrNotFound) || err == nil && rec.Value.State != PKeyQuarantined && rec.Value.State != PKeyAdopted {
		return nil
	}
	if err != nil {
		return err
	}
	left, _, err := records.Grants().List(ctx, tx, records.PKeyPrefix(k))
	if err != nil || len(left) > 0 {
		return err
	}
	was := rec.Value
	rec.Value.State, rec.Value.Since = PKeyAbsent, s.now()
	last := "last of cluster " + was.Cluster
	if was.State == PKeyAdopted {
		last = "last of ports that were adopted"
	}
	return errors.Join(
		PKeys().Put(tx, k.String(), rec.Value),
		s.log(ctx, tx, &audit.Change{
			Actor: "service", Action: "p_key.absent", Object: "p_key/" + k.String(), Before: was, After: rec.Value,
			Detail: last + ", proven absent everywhere",
		}),
	)
}
