package admission

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// service is the actor of changes that no caller requested.
const service = "service"

// maxDetail bounds what is kept of a reason.
const maxDetail = 512

// settle makes the host's records agree with the decision about it: grants recorded or withdrawn, proven ones dropped, the
// phase reported. It reads what tx wrote before, so callers change the Record first and settle last.
func (s *Service) settle(ctx context.Context, tx *store.Tx, id string) (*facts, decision, error) {
	return s.settleBy(ctx, tx, id, nil)
}

// settleBy is settle of a host whose evidence is first judged by policy and references, unless these are nil. Before its
// first grant it always is.
func (s *Service) settleBy(ctx context.Context, tx *store.Tx, id string, refs attestation.Trust) (*facts, decision, error) {
	f, err := s.gather(ctx, tx, id)
	if err != nil {
		return nil, decision{}, err
	}
	before := f.rec
	d, err := s.judge(ctx, tx, f, refs)
	if err != nil {
		return nil, decision{}, err
	}
	stopped, err := s.brake(ctx, tx, f, &d)
	if err != nil {
		return nil, decision{}, err
	}
	if stopped {
		d = decide(f)
	}
	before.Grants = slices.Clone(f.rec.Grants)
	if len(f.grants) != len(f.rec.Grants) {
		s.o.Log.Warn("host's record names grants that are not its own in the ledger; they are left alone",
			"host", id, "recorded", len(f.rec.Grants), "own", len(f.grants))
	}
	if err := s.settleGrants(ctx, tx, f, d); err != nil {
		return nil, decision{}, err
	}
	if err := settleLeaving(tx, f); err != nil {
		return nil, decision{}, err
	}
	f.rec.Granted = f.rec.Granted || len(d.want) > 0
	if d.phase == v1.PhaseAdmitted {
		f.rec.Admitted = true
	}
	was := hostrecord.PhaseOf(before)
	if d.phase != was {
		f.rec.Phase, f.rec.Since = d.phase, f.now
		if err := s.tellPhase(ctx, tx, f, d, was); err != nil {
			return nil, decision{}, err
		}
	}
	if !reflect.DeepEqual(before, f.rec) {
		err = hostrecord.Records().Put(tx, id, f.rec)
	}
	return f, d, err
}

// judge decides about a host. It first compares the evidence with policy and references, unless these are nil. Before
// its first grant it always is.
func (s *Service) judge(ctx context.Context, tx *store.Tx, f *facts, refs attestation.Trust) (decision, error) {
	d := decide(f)
	if refs == nil && (len(d.want) == 0 || f.rec.Granted) {
		return d, nil
	}
	if err := s.evidence.Rejudge(ctx, tx, f.host.ID, &f.rec, refs); err != nil {
		return decision{}, err
	}
	return decide(f), nil
}

// judged gathers the facts about a host, and decides as settleIfStale does.
func (s *Service) judged(ctx context.Context, tx *store.Tx, id string, refs attestation.Trust) (*facts, decision, error) {
	f, err := s.gather(ctx, tx, id)
	if err != nil {
		return nil, decision{}, err
	}
	if refs, err = s.evidence.RejudgeBy(ctx, tx, f.rec.Evidence, refs); err != nil {
		return nil, decision{}, err
	}
	d, err := s.judge(ctx, tx, f, refs)
	return f, d, err
}

func (s *Service) settleGrants(ctx context.Context, tx *store.Tx, f *facts, d decision) error {
	var kept []string
	var freed []ib.PKey
	granted := false
	for _, k := range f.sortedGrants() {
		st := f.grants[k]
		wanted := slices.Contains(d.want, k)
		if !wanted && st.Proven() {
			records.Grants().Delete(tx, k.String())
			freed = append(freed, k.PKey)
			delete(f.grants, k)
			continue
		}
		kept = append(kept, k.String())
		if wanted == st.Grant.Withdrawn || wanted && st.Grant.Limited != f.limited(k) {
			st.Grant.Withdrawn, st.Grant.Since = !wanted, f.now
			if wanted {
				st.Grant.Limited, st.Grant.Epoch = f.limited(k), f.rec.Epoch
				granted = true
			}
			if err := records.Grants().Put(tx, k.String(), st.Grant); err != nil {
				return err
			}
		}
	}
	for _, k := range d.want {
		if _, known := f.grants[k]; known {
			continue
		}
		kept = append(kept, k.String())
		g := records.Grant{Host: f.host.ID, Cluster: f.rec.Cluster, Tenant: f.rec.Tenant, Limited: f.limited(k), Epoch: f.rec.Epoch, Since: f.now}
		if err := records.Grants().Put(tx, k.String(), g); err != nil {
			return err
		}
		granted = true
	}
	if granted && s.o.Clock != nil {
		if err := s.o.Clock.Raise(ctx, tx); err != nil {
			return err
		}
	}
	slices.Sort(kept)
	f.rec.Grants = kept
	for _, k := range slices.Compact(freed) {
		if err := s.tenancy.FreePKey(ctx, tx, k); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) tellPhase(ctx context.Context, tx *store.Tx, f *facts, d decision, was v1.Phase) error {
	detail := fmt.Sprintf("%s, was %s", d.phase, was)
	for _, g := range d.guards {
		if !g.Met && f.rec.Cluster != "" {
			detail += fmt.Sprintf("; %s: %s", g.Name, g.Detail)
			break
		}
	}
	if f.rec.Cluster != "" {
		detail += fmt.Sprintf(" (cluster %s, P_Key %v)", f.rec.Cluster, f.rec.PKey)
	}
	return s.log(ctx, tx, &audit.Change{Actor: service, Action: "host.phase", Object: "host/" + f.host.ID, Code: string(d.phase), Detail: detail})
}

// log appends a change to the audit chain in the transaction that makes it.
func (s *Service) log(ctx context.Context, tx *store.Tx, c *audit.Change) error {
	return audit.Log(ctx, tx, s.now(), c)
}

// update runs one transaction and translates the store's errors.
func (s *Service) update(ctx context.Context, fn func(tx *store.Tx) error) error {
	_, err := s.o.Store.Update(ctx, fn)
	return refusal.Explain(err)
}
