package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"portcullis/api/fabric/ledger"
	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// allocatePKey assigns the cluster a P_Key that no port holds: the lowest that was never used, otherwise the one whose
// absence was proven longest ago. A P_Key that the caller named, and may use, must be free in the same way. own are the
// ranges of the tenant; nil: it has none.
func (s *Service) allocatePKey(ctx context.Context, tx *store.Tx, cluster string, named *ib.PKey, own Ranges) (ib.PKey, error) {
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	known, err := index(PKeys().List(ctx, snap, ""))
	if err != nil {
		return 0, err
	}
	var key ib.PKey
	var why string
	switch {
	case named != nil && own != nil && !own.contains(*named):
		err = refusal.New(refusal.Refused, codeOutOfScope, "name one of these, or none", "P_Key %v is named, and the tenant has only those of %v", *named, own)
	case named != nil:
		key = named.Base()
		err = s.chooseNamed(key, known)
	default:
		within := []Ranges{own}
		if scope := scopeOf(ctx); scope != nil {
			within = append(within, scope.PKeys)
		}
		key, why = s.choosePKey(within, known)
	}
	if err != nil {
		return 0, err
	}
	if key == 0 {
		return 0, refusal.New(refusal.Conflict, "pkeys_exhausted", "delete clusters that are not needed, or see the quarantined P_Keys for what they wait for", "no P_Key to give out: %s", why)
	}
	// Reading through tx makes the commit fail if another writer takes it meanwhile.
	was, err := optional(PKeys().Get(ctx, tx, key.String()))
	if err != nil {
		return 0, err
	}
	if was.State != "" && was.State != PKeyAbsent {
		return 0, fmt.Errorf("%w: P_Key %v was taken", store.ErrConflict, key)
	}
	return key, PKeys().Put(tx, key.String(), PKeyRecord{State: PKeyUsed, Cluster: cluster, Since: s.now()})
}

// choosePKey is pure except for the clock. It returns a P_Key that is in each of within, which are those of tenant and
// credential, unless they are nil; 0 and why if there is none.
func (s *Service) choosePKey(within []Ranges, known map[string]store.Record[PKeyRecord]) (ib.PKey, string) {
	var oldest ib.PKey
	var since PKeyRecord
	counts := map[PKeyState]int{}
	for k := max(s.o.PKeyFirst.Base(), 1); k <= s.o.PKeyLast.Base() && k < ib.DefaultPKeyLimited; k++ {
		if slices.Contains(s.o.PKeyReserved, k) || slices.ContainsFunc(within, func(r Ranges) bool { return r != nil && !r.contains(k) }) {
			continue
		}
		r, used := known[k.String()]
		if !used {
			return k, ""
		}
		counts[r.Value.State]++
		if r.Value.State != PKeyAbsent || s.now().Sub(r.Value.Since) < s.o.PKeyMinAge {
			continue
		}
		if oldest == 0 || r.Value.Since.Before(since.Since) {
			oldest, since = k, r.Value
		}
	}
	limits := ""
	for i, whose := range []string{"tenant", "credential"} {
		if i < len(within) && within[i] != nil {
			limits += fmt.Sprintf(" and those of this %s, %v,", whose, within[i])
		}
	}
	return oldest, fmt.Sprintf("of %v to %v%s %d are used, %d quarantined, and %d proven absent less than %v ago",
		s.o.PKeyFirst, s.o.PKeyLast, limits, counts[PKeyUsed], counts[PKeyQuarantined], counts[PKeyAbsent], s.o.PKeyMinAge)
}

// quarantinePKey takes the P_Key of a deleted cluster out of use until it is
// proven absent.
func (s *Service) quarantinePKey(ctx context.Context, tx *store.Tx, c Cluster) error {
	rec := PKeyRecord{State: PKeyQuarantined, Cluster: c.Name, Since: s.now()}
	if s.o.Weakness.FreesAtOnce {
		rec.State = PKeyAbsent
	}
	if err := PKeys().Put(tx, c.PKey.String(), rec); err != nil {
		return err
	}
	return s.freePKey(ctx, tx, c.PKey)
}

// freePKey ends the quarantine of a P_Key if no grant of it is left. Its
// cluster is gone, so none can come.
func (s *Service) freePKey(ctx context.Context, tx *store.Tx, k ib.PKey) error {
	rec, err := PKeys().Get(ctx, tx, k.String())
	if errors.Is(err, store.ErrNotFound) || err == nil && rec.Value.State != PKeyQuarantined {
		return nil
	}
	if err != nil {
		return err
	}
	left, _, err := ledger.Grants().List(ctx, tx, ledger.PKeyPrefix(k))
	if err != nil || len(left) > 0 {
		return err
	}
	was := rec.Value
	rec.Value.State, rec.Value.Since = PKeyAbsent, s.now()
	return errors.Join(
		PKeys().Put(tx, k.String(), rec.Value),
		s.log(ctx, tx, change{
			actor: service, action: "p_key.absent", object: "p_key/" + k.String(), before: was, after: rec.Value,
			detail: fmt.Sprintf("last of cluster %s, proven absent everywhere", was.Cluster),
		}),
	)
}

// QuarantinedPKeys lists the P_Keys that must not be given out yet, and what
// each of them waits for.
func (s *Service) QuarantinedPKeys(ctx context.Context, q v1.PageQuery) (*v1.List[v1.QuarantinedPKey], error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	out, err := page.Walk(ctx, "quarantined", q, page.Of(snap, PKeys(), ""), page.Each(func(r *store.Record[PKeyRecord]) (*v1.QuarantinedPKey, error) {
		k, err := ib.ParsePKey(r.Key)
		if err != nil {
			return nil, err
		}
		waiting, err := s.waiting(ctx, snap, k, r.Value)
		if err != nil || len(waiting) == 0 {
			return nil, err
		}
		return &v1.QuarantinedPKey{PKey: k, Since: r.Value.Since, Waiting: waiting}, nil
	}))
	return out, refusal.Explain(err)
}

// waiting says what keeps a P_Key from being given out, one sentence each.
func (s *Service) waiting(ctx context.Context, snap store.Snapshot, k ib.PKey, rec PKeyRecord) ([]string, error) {
	if rec.State == PKeyAbsent {
		if age := s.now().Sub(rec.Since); age < s.o.PKeyMinAge {
			return []string{fmt.Sprintf("proven absent; rests for another %v", (s.o.PKeyMinAge - age).Round(1e9))}, nil
		}
		return nil, nil
	}
	if rec.State != PKeyQuarantined {
		return nil, nil
	}
	grants, _, err := ledger.Grants().List(ctx, snap, ledger.PKeyPrefix(k))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, g := range grants {
		key, err := ledger.ParseKey(g.Key)
		if err != nil {
			return nil, err
		}
		st, err := gatherGrant(ctx, snap, key)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("switch port %v", key.Place)
		if st.absent() {
			what = "its HCA"
		}
		out = append(out, fmt.Sprintf("port %v of host %s: not proven absent from %s", key.GUID, g.Value.Host, what))
	}
	return out, nil
}
