package tenancy

import (
	"context"
	"fmt"

	"portcullis/api/fabric/records"
	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

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
	grants, _, err := records.Grants().List(ctx, snap, records.PKeyPrefix(k))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, g := range grants {
		key, err := records.ParseKey(g.Key)
		if err != nil {
			return nil, err
		}
		st, err := records.StandingOf(ctx, snap, key)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("switch port %v", key.Place)
		if st.Absent() {
			what = "its HCA"
		}
		whose := "of host " + g.Value.Host
		if g.Value.Adopted != "" {
			whose = "of " + g.Value.Adopted
		}
		out = append(out, fmt.Sprintf("port %v %s: not proven absent from %s", key.GUID, whose, what))
	}
	return out, nil
}
