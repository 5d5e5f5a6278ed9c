package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "portcullis/api/v1"
)

// add plans all that is created: tenants with their quotas, clusters, uses, then labels and hosts.
func (m *maker) add() {
	for _, name := range slices.Sorted(maps.Keys(m.tenants)) {
		m.addTenant(m.tenants[name])
	}
	for _, shared := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(m.clusters)) {
			if c := m.clusters[name]; c.Shared == shared {
				m.addCluster(c)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.clusters)) {
		m.addUses(m.clusters[name])
	}
	m.addLabels()
	m.addHosts()
}

func (m *maker) addTenant(t *v1.WantedTenant) {
	found, there := m.f.Tenants[t.Name]
	if !there {
		m.creates[tenantKey(t.Name)] = true
		m.change(v1.PlannedChange{
			Verb: v1.PlanCreateTenant, Object: tenantKey(t.Name), Name: t.Name, Detail: fmt.Sprintf("tenant %s is created", t.Name),
			Keys: []string{tenantKey(t.Name)}, Tenant: &v1.NewTenant{Name: t.Name, PKeys: t.PKeys, Set: m.w.Set, Labels: t.Labels},
		})
	}
	quota, differs := merged(found.Quota, t.Quota)
	if !differs {
		return
	}
	var after []string
	if !there {
		after = []string{tenantKey(t.Name)}
	}
	m.creates[quotaKey(t.Name)] = true
	m.change(v1.PlannedChange{
		Verb: v1.PlanSetQuota, Object: tenantKey(t.Name), Name: t.Name, Version: found.Version, Quota: &quota,
		Detail: fmt.Sprintf("tenant %s may have %s; before: %s", t.Name, bounds(&quota), bounds(found.Quota)),
		Keys:   []string{quotaKey(t.Name)}, After: after,
	})
}

// merged returns the quota that a tenant is to have, and whether it has another one.
func merged(has *v1.TenantQuota, want *v1.WantedQuota) (out v1.TenantQuota, differs bool) {
	if has != nil {
		out = *has
	}
	if want == nil {
		return out, false
	}
	for _, b := range []struct {
		to   **int
		want *int
	}{{&out.Hosts, want.Hosts}, {&out.Clusters, want.Clusters}, {&out.PKeys, want.PKeys}} {
		switch {
		case b.want == nil:
		case *b.want == v1.Unlimited:
			differs = differs || *b.to != nil
			*b.to = nil
		case *b.to == nil || **b.to != *b.want:
			*b.to, differs = b.want, true
		}
	}
	return out, differs
}

// bounds says what a quota is.
func bounds(q *v1.TenantQuota) string {
	if q == nil {
		q = &v1.TenantQuota{}
	}
	word := func(n *int, what string) string {
		if n == nil {
			return "any number of " + what
		}
		return fmt.Sprintf("%d %s", *n, what)
	}
	return strings.Join([]string{word(q.Hosts, "hosts"), word(q.Clusters, "clusters"), word(q.PKeys, "P_Keys")}, ", ")
}

func (m *maker) addCluster(c *v1.WantedCluster) {
	if _, there := m.f.Clusters[c.Name]; there {
		return
	}
	key := clusterKey(c.Name)
	m.creates[key] = true
	kind := "cluster"
	if c.Shared {
		kind = "shared cluster"
	}
	m.change(v1.PlannedChange{
		Verb: v1.PlanCreateCluster, Object: key, Name: c.Name, Detail: fmt.Sprintf("%s %s of tenant %s is created", kind, c.Name, c.Tenant),
		Keys: []string{key}, After: m.created(tenantKey(c.Tenant), quotaKey(c.Tenant)),
		Cluster: &v1.NewCluster{Name: c.Name, Tenant: c.Tenant, Shared: c.Shared, PKey: c.PKey, Set: m.w.Set, Labels: c.Labels},
	})
}

// created returns those keys that the plan creates.
func (m *maker) created(keys ...string) []string {
	return slices.DeleteFunc(keys, func(k string) bool { return !m.creates[k] })
}

// cleared returns the keys of what is taken from clusters, each once.
func (m *maker) cleared(clusters ...string) (keys []string) {
	slices.Sort(clusters)
	for _, c := range slices.Compact(clusters) {
		if m.takenFrom[c] {
			keys = append(keys, leaveKey(c))
		}
	}
	return keys
}

func (m *maker) addUses(c *v1.WantedCluster) {
	found := m.f.Clusters[c.Name]
	for _, s := range slices.Sorted(slices.Values(c.Uses)) {
		if slices.Contains(found.Uses, s) {
			continue
		}
		m.change(v1.PlannedChange{
			Verb: v1.PlanUse, Object: clusterKey(c.Name), Name: c.Name, Shared: s, Version: found.Version, Use: &v1.ClusterUse{Set: m.w.Set},
			Detail: fmt.Sprintf("cluster %s uses shared cluster %s: its hosts are limited members", c.Name, s),
			Keys:   []string{clusterKey(c.Name)}, After: append(m.created(clusterKey(c.Name), clusterKey(s)), m.cleared(c.Name, s)...),
		})
	}
}

// addHosts plans the assignments. Hosts that nothing keeps come first; those that leave another cluster wait until that is proven.
func (m *maker) addHosts() {
	after := map[string][]string{}
	var waiting []v1.PlannedChange
	for _, id := range slices.Sorted(maps.Keys(m.hosts)) {
		a, h := m.hosts[id], m.f.Hosts[id]
		if h.Cluster == a.Cluster {
			continue
		}
		if _, known := after[a.Cluster]; !known {
			after[a.Cluster] = append(m.clusterAfter(a.Cluster), m.cleared(slices.Concat(m.ties[a.Cluster], []string{a.Cluster})...)...)
			if m.takenNear[a.Cluster] {
				after[a.Cluster] = append(after[a.Cluster], nearKey(a.Cluster))
			}
		}
		c := v1.PlannedChange{
			Verb: v1.PlanAssign, Object: hostKey(id), Name: id, Version: fmt.Sprint(h.Epoch), Keys: []string{hostKey(id)}, After: slices.Clone(after[a.Cluster]),
			Detail:     fmt.Sprintf("host %s is assigned to cluster %s, and its provisioning window opens", id, a.Cluster),
			Assignment: &v1.Assignment{Cluster: a.Cluster, Window: a.Window, Set: m.w.Set},
		}
		if found, there := m.f.Clusters[a.Cluster]; there {
			c.Assignment.PKey = &found.PKey
		}
		_, leaves := m.releases[id]
		if c.Waits = leaves || h.Releasing; !c.Waits {
			m.change(c)
			continue
		}
		if leaves {
			c.After = append(c.After, hostKey(id))
		}
		c.Detail += ", once it is proven that it left its last one"
		waiting = append(waiting, c)
	}
	m.plan.Changes = append(m.plan.Changes, waiting...)
}

// clusterAfter returns the keys of what must be there before a host is assigned to a cluster.
func (m *maker) clusterAfter(name string) []string {
	tenant := m.f.Clusters[name].Tenant
	if c := m.clusters[name]; c != nil {
		tenant = c.Tenant
	}
	return m.created(clusterKey(name), quotaKey(tenant))
}
