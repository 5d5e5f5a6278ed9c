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
	held, err := outsiders.Held(ctx, snap)
	if err != nil {
		return 0, err
	}
	var key ib.PKey
	var why string
	scope := scopeOf(ctx)
	adopted := named != nil && scope != nil && scope.Adopted
	switch {
	case named != nil && own != nil && !own.contains(*named):
		err = refusal.New(refusal.Refused, codeOutOfScope, "name one of these, or none", "P_Key %v is named, and the tenant has only those of %v", *named, own)
	case named != nil:
		key = named.Base()
		err = s.chooseNamed(key, known, adopted)
	default:
		within := []Ranges{own}
		if scope != nil {
			within = append(within, scope.PKeys)
		}
		key, why = s.choosePKey(within, known, held)
	}
	if err != nil {
		return 0, err
	}
	if key == 0 {
		return 0, refusal.New(refusal.Conflict, "pkeys_exhausted", "delete clusters that are not needed, or see the quarantined P_Keys for what they wait for", "no P_Key is left: %s", why)
	}
	// Reading through tx makes the commit fail if another writer takes it meanwhile.
	was, err := PKeys().Get(ctx, tx, key.String())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, err
	}
	if st := was.Value.State; err == nil && st != "" && st != PKeyAbsent && (st != PKeyAdopted || !adopted) {
		return 0, fmt.Errorf("%w: P_Key %v was taken", store.ErrConflict, key)
	}
	return key, PKeys().Put(tx, key.String(), PKeyRecord{State: PKeyUsed, Cluster: cluster, Tenant: tenant, Since: s.now()})
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
