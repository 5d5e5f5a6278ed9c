package admission

import (
	"context"
	"maps"
	"slices"

	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	"portcullis/fabricsm/ib"
)

// stock is what facts about several hosts are made of, as of one revision: of all hosts (takeStock), or of
// some (stockOf).
type stock struct {
	hosts     []store.Record[inventory.Host]
	records   map[string]store.Record[hostrecord.Record]
	ports     map[string]store.Record[records.Port]
	grants    map[string]store.Record[records.Grant]
	found     map[string]store.Record[records.Membership]
	clusters  map[string]store.Record[tenancy.Cluster]
	decisions map[string]store.Record[review.Decision]
	leaving   map[string]store.Record[tenancy.Leaving]
	mark      *review.Mark
	braking   func(host string) braking
}

// gatherAll reads the facts about every host as of one revision, sorted by id.
func (s *Service) gatherAll(ctx context.Context, n store.Snapshot) ([]*facts, error) {
	st, err := takeStock(ctx, n)
	if err != nil {
		return nil, err
	}
	return s.allFacts(st)
}

// gatherSome reads the facts about some hosts as of one revision, in their order. The amount read is in proportion to them,
// not to what the store holds.
func (s *Service) gatherSome(ctx context.Context, n store.Snapshot, hosts []store.Record[inventory.Host]) ([]*facts, error) {
	st, err := s.stockOf(ctx, n, hosts)
	if err != nil {
		return nil, err
	}
	return s.allFacts(st)
}

// takeStock reads whole collections.
func takeStock(ctx context.Context, n store.Snapshot) (*stock, error) {
	var st stock
	var err error
	if st.hosts, _, err = inventory.Hosts().List(ctx, n, ""); err != nil {
		return nil, err
	}
	if st.records, err = index(hostrecord.Records().List(ctx, n, "")); err != nil {
		return nil, err
	}
	if st.ports, err = index(records.Ports().List(ctx, n, "")); err != nil {
		return nil, err
	}
	if st.grants, err = index(records.Grants().List(ctx, n, "")); err != nil {
		return nil, err
	}
	if st.found, err = index(records.Memberships().List(ctx, n, "")); err != nil {
		return nil, err
	}
	if st.clusters, err = index(tenancy.Clusters().List(ctx, n, "")); err != nil {
		return nil, err
	}
	if st.leaving, err = index(tenancy.LeavingHosts().List(ctx, n, "")); err != nil {
		return nil, err
	}
	if st.mark, err = review.Current(ctx, n); err != nil {
		return nil, err
	}
	if st.decisions, err = index(review.Decisions().List(ctx, n, "")); err != nil {
		return nil, err
	}
	st.braking, err = gatherAllBraking(ctx, n)
	return &st, err
}

// stockOf reads the records that concern some hosts, by their keys.
func (s *Service) stockOf(ctx context.Context, n store.Snapshot, hosts []store.Record[inventory.Host]) (*stock, error) {
	st := &stock{hosts: hosts}
	ids, guids := make([]string, len(hosts)), []string{}
	for i := range hosts {
		ids[i] = hosts[i].Key
		for _, p := range hosts[i].Value.Ports() {
			guids = append(guids, p.GUID.String())
		}
	}
	var err error
	if st.records, err = byKey(hostrecord.Records().Of(ctx, n, ids)); err != nil {
		return nil, err
	}
	if st.ports, err = byKey(records.Ports().Of(ctx, n, guids)); err != nil {
		return nil, err
	}
	if st.clusters, err = clustersOf(ctx, n, st.records); err != nil {
		return nil, err
	}
	if st.leaving, err = leavingOf(ctx, n, st.records); err != nil {
		return nil, err
	}
	if st.mark, err = review.Current(ctx, n); err != nil {
		return nil, err
	}
	if st.mark != nil {
		if st.decisions, err = byKey(review.Decisions().Of(ctx, n, ids)); err != nil {
			return nil, err
		}
	}
	if st.braking, err = gatherSomeBraking(ctx, n, ids); err != nil {
		return nil, err
	}
	keys, err := s.grantKeys(st)
	if err != nil {
		return nil, err
	}
	if st.grants, err = byKey(records.Grants().Of(ctx, n, keys)); err != nil {
		return nil, err
	}
	st.found, err = byKey(records.Memberships().Of(ctx, n, slices.Sorted(maps.Keys(st.grants))))
	return st, err
}

// clustersOf reads the clusters that hosts are in, and those that these use.
func clustersOf(ctx context.Context, n store.Snapshot, records map[string]store.Record[hostrecord.Record]) (map[string]store.Record[tenancy.Cluster], error) {
	own := map[string]bool{}
	for _, r := range records {
		if r.Value.Cluster != "" {
			own[r.Value.Cluster] = true
		}
	}
	out, err := byKey(tenancy.Clusters().Of(ctx, n, slices.Sorted(maps.Keys(own))))
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, c := range out {
		for _, name := range c.Value.Uses {
			used[name] = !own[name]
		}
	}
	maps.DeleteFunc(used, func(_ string, missing bool) bool { return !missing })
	others, err := byKey(tenancy.Clusters().Of(ctx, n, slices.Sorted(maps.Keys(used))))
	maps.Copy(out, others)
	return out, err
}

// grantKeys names every grant that a host of the stock has or would get.
func (s *Service) grantKeys(st *stock) ([]string, error) {
	keys := map[string]bool{}
	for i := range st.hosts {
		f, err := s.ungranted(st, &st.hosts[i])
		if err != nil {
			return nil, err
		}
		for _, k := range f.rec.Grants {
			keys[k] = true
		}
		for _, k := range f.unknown() {
			keys[k.String()] = true
		}
	}
	return slices.Sorted(maps.Keys(keys)), nil
}

// allFacts makes the facts about each host of the stock.
func (s *Service) allFacts(st *stock) ([]*facts, error) {
	out := make([]*facts, 0, len(st.hosts))
	for i := range st.hosts {
		f, err := s.ungranted(st, &st.hosts[i])
		if err != nil {
			return nil, err
		}
		keys, err := f.rec.Keys()
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			g := st.grants[k.String()]
			f.addGrant(k, records.Standing{Grant: g.Value, Modified: g.Modified, Found: st.found[k.String()].Value})
		}
		for _, k := range f.unknown() {
			f.addForeign(k, st.grants[k.String()].Value)
		}
		out = append(out, f)
	}
	return out, nil
}

// ungranted is the facts about a host without its grants.
func (s *Service) ungranted(st *stock, h *store.Record[inventory.Host]) (*facts, error) {
	f := s.newFacts(h.Value, st.records[h.Key].Value)
	f.braking = st.braking(h.Key)
	f.review, f.approved = st.mark, st.decisions[h.Key].Value.Approved
	if f.rec.Cluster == "" {
		f.leaves = st.leaving[h.Key].Value.Tenant
	}
	own := st.clusters[f.rec.Cluster].Value
	var err error
	f.uses, err = tenancy.UsesOf(&own, func(name string) (tenancy.Cluster, error) {
		c, there := st.clusters[name]
		if !there {
			return tenancy.Cluster{}, store.ErrNotFound
		}
		return c.Value, nil
	})
	if err != nil {
		return nil, err
	}
	f.ports = make(map[ib.GUID]records.Port, len(h.Value.HCAs))
	for _, p := range h.Value.Ports() {
		f.ports[p.GUID] = st.ports[p.GUID.String()].Value
	}
	return f, nil
}

// index has records by their keys.
func index[T any](list []store.Record[T], _ int64, err error) (map[string]store.Record[T], error) {
	return byKey(list, err)
}

// byKey is index without a revision.
func byKey[T any](list []store.Record[T], err error) (map[string]store.Record[T], error) {
	m := make(map[string]store.Record[T], len(list))
	for _, r := range list {
		m[r.Key] = r
	}
	return m, err
}
