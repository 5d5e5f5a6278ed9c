package admission

import (
	"context"
	"errors"
	"slices"

	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	"portcullis/fabricsm/ib"
)

// gather reads the facts about one host through r. With a transaction each of
// them becomes a condition of its commit.
func (s *Service) gather(ctx context.Context, r store.Reader, id string) (*facts, error) {
	host, _, err := inventory.Find(ctx, r, id)
	if err != nil {
		return nil, err
	}
	rec, err := store.Optional(hostrecord.Records().Get(ctx, r, id))
	if err != nil {
		return nil, err
	}
	f := s.newFacts(host, rec)
	if f.braking, err = gatherBraking(ctx, r, id); err != nil {
		return nil, err
	}
	if err := f.gatherReview(ctx, r); err != nil {
		return nil, err
	}
	if f.uses, err = s.gatherUses(ctx, r, rec.Cluster); err != nil {
		return nil, err
	}
	if rec.Cluster == "" {
		left, err := store.Optional(tenancy.LeavingHosts().Get(ctx, r, id))
		if err != nil {
			return nil, err
		}
		f.leaves = left.Tenant
	}
	for _, p := range host.Ports() {
		port, err := store.Optional(records.Ports().Get(ctx, r, p.GUID.String()))
		if err != nil {
			return nil, err
		}
		f.ports[p.GUID] = port
	}
	keys, err := rec.Keys()
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		st, err := records.StandingOf(ctx, r, k)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f.addGrant(k, st)
	}
	for _, k := range f.unknown() {
		g, err := store.Optional(records.Grants().Get(ctx, r, k.String()))
		if err != nil {
			return nil, err
		}
		f.addForeign(k, g)
	}
	return f, nil
}

// gatherUses reads which shared clusters a host uses, by the cluster it is in.
func (s *Service) gatherUses(ctx context.Context, r store.Reader, cluster string) ([]ib.PKey, error) {
	if cluster == "" {
		return nil, nil
	}
	c, err := store.Optional(tenancy.Clusters().Get(ctx, r, cluster))
	if err != nil {
		return nil, err
	}
	return tenancy.UsesOf(&c, func(name string) (tenancy.Cluster, error) { return tenancy.FindCluster(ctx, r, name) })
}

// addGrant notes a grant of the record, unless the ledger has it for another host: a grant that is not in the ledger as
// ours is not ours to change.
func (f *facts) addGrant(k records.Key, st records.Standing) {
	if st.Grant.Host == f.host.ID {
		f.grants[k] = st
	}
}

func (f *facts) addForeign(k records.Key, g records.Grant) {
	if g.Host != "" && g.Host != f.host.ID {
		f.foreign[k] = g.Host
	}
}

// unknown lists the memberships the host would get that are not among its
// grants.
func (f *facts) unknown() []records.Key {
	if f.rec.Cluster == "" {
		return nil
	}
	return slices.DeleteFunc(f.memberships(), func(k records.Key) bool { _, ours := f.grants[k]; return ours })
}

func (s *Service) newFacts(h inventory.Host, rec hostrecord.Record) *facts {
	short := ""
	if err := s.o.Store.Room(); err != nil {
		short = err.Error()
	}
	halted := ""
	if s.o.Clock != nil {
		if err := s.o.Clock.Halted(); err != nil {
			halted = err.Error()
		}
	}
	return &facts{
		short: short, halted: halted,
		now: s.now(), evidenceAge: s.o.EvidenceAge, withdraw: s.withdraw, needsSeal: s.o.Judge.NeedsSeal(), keepsUnseen: s.o.Judge.KeepsUnseen(),
		cutOff: s.o.GUIDConflict == WithdrawAdmitted, unseenFor: s.o.UnseenFor, host: h, rec: rec,
		ports: map[ib.GUID]records.Port{}, grants: map[records.Key]records.Standing{}, foreign: map[records.Key]string{},
	}
}
