package admission

import (
	"context"
	"slices"

	"portcullis/api/hostrecord"
	"portcullis/api/store"
	"portcullis/api/tenancy"
)

// A host that was released counts in the quota of its tenant until every switch port was read back without its P_Key: until then it
// may still be in the partition.

// leaving returns the tenant for which a host counts though it is in no cluster, "" for none.
func (f *facts) leaving() string {
	if f.rec.Cluster != "" {
		return ""
	}
	for _, k := range f.sortedGrants() {
		if st := f.grants[k]; !st.Absent() {
			return st.Grant.Tenant
		}
	}
	return ""
}

// settleLeaving records for which tenant the host counts. A host that was released before there were quotas gets its record
// too, when it is settled next.
func settleLeaving(tx *store.Tx, f *facts) error {
	tenant := f.leaving()
	if tenant == f.leaves {
		return nil
	}
	f.leaves = tenant
	if tenant == "" {
		tenancy.LeavingHosts().Delete(tx, f.host.ID)
		return nil
	}
	return tenancy.LeavingHosts().Put(tx, f.host.ID, tenancy.Leaving{Tenant: tenant})
}

// leavingOf reads the records of hosts that may be leaving: those in no cluster that have grants.
func leavingOf(ctx context.Context, n store.Snapshot, hosts map[string]store.Record[hostrecord.Record]) (map[string]store.Record[tenancy.Leaving], error) {
	var ids []string
	for id := range hosts {
		if r := hosts[id]; r.Value.Cluster == "" && len(r.Value.Grants) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return byKey(tenancy.LeavingHosts().Of(ctx, n, ids))
}
