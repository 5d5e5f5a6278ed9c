package plan

import (
	"slices"

	"portcullis/api/clustername"
	"portcullis/api/label"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// check reads what is wanted, and finds what cannot be had.
func (m *maker) check() {
	if m.w.Prune && m.w.Set == "" {
		m.conflict("set", "prune needs the name of a set: only what was created for it is removed")
	}
	if m.w.Selector != "" && !m.w.Prune {
		m.conflict("selector", "a selector needs prune: it chooses what is removed")
	}
	var err error
	if m.selector, err = label.Parse(m.w.Selector); err != nil {
		m.conflict("selector", "%v", err)
	}
	for i := range m.w.Tenants {
		t := &m.w.Tenants[i]
		if m.tenants[t.Name] != nil {
			m.conflict(tenantKey(t.Name), "tenant %s is wanted twice", t.Name)
		}
		m.tenants[t.Name] = t
		m.checkTenant(t)
	}
	for i := range m.w.Clusters {
		c := &m.w.Clusters[i]
		if m.clusters[c.Name] != nil {
			m.conflict(clusterKey(c.Name), "cluster %s is wanted twice", c.Name)
		}
		m.clusters[c.Name] = c
	}
	for i := range m.w.Clusters {
		m.checkCluster(&m.w.Clusters[i])
	}
	for i := range m.w.Assignments {
		m.checkHosts(&m.w.Assignments[i])
	}
}

func (m *maker) checkTenant(t *v1.WantedTenant) {
	wanted, err := rangesOf(t.PKeys)
	if err != nil {
		m.conflict(tenantKey(t.Name), "ranges of P_Keys of tenant %s: %v", t.Name, err)
		return
	}
	found, there := m.f.Tenants[t.Name]
	m.checkLabels(tenantKey(t.Name), found.Labels, t.Labels)
	if !there || len(t.PKeys) == 0 {
		return
	}
	if has, err := rangesOf(found.PKeys); err != nil || !slices.Equal(has, wanted) {
		m.conflict(tenantKey(t.Name), "tenant %s has the ranges of P_Keys %v, which cannot be changed to %v", t.Name, found.PKeys, t.PKeys)
	}
}

func rangesOf(texts []string) (out []ib.PKeyRange, err error) {
	for _, text := range texts {
		r, err := ib.ParsePKeyRange(text)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func (m *maker) checkCluster(c *v1.WantedCluster) {
	object := clusterKey(c.Name)
	m.checkName(c)
	if _, there := m.f.Tenants[c.Tenant]; !there && m.tenants[c.Tenant] == nil {
		m.conflict(object, "cluster %s is of tenant %s, which is neither there nor wanted", c.Name, c.Tenant)
	}
	m.checkLabels(object, m.f.Clusters[c.Name].Labels, c.Labels)
	if has, there := m.f.Clusters[c.Name]; there {
		if has.Tenant != c.Tenant {
			m.conflict(object, "cluster %s is of tenant %s, which cannot be changed to %s", c.Name, has.Tenant, c.Tenant)
		}
		if has.Shared != c.Shared {
			m.conflict(object, "cluster %s was created with shared %v, which cannot be changed", c.Name, has.Shared)
		}
		if c.PKey != nil && has.PKey.Base() != c.PKey.Base() {
			m.conflict(object, "cluster %s has P_Key %v, which cannot be changed to %v", c.Name, has.PKey.Base(), c.PKey.Base())
		}
	}
	for i, s := range c.Uses {
		shared, there := m.shared(s)
		switch {
		case slices.Contains(c.Uses[:i], s):
			m.conflict(object, "cluster %s is to use %s twice", c.Name, s)
		case c.Shared:
			m.conflict(object, "cluster %s is shared, and is to use %s: a shared cluster uses none", c.Name, s)
		case !there:
			m.conflict(object, "cluster %s is to use %s, which is neither there nor wanted", c.Name, s)
		case !shared:
			m.conflict(object, "cluster %s is to use %s, which is not shared", c.Name, s)
		}
	}
}

// checkName finds what the service refuses because of a name: a cluster that begins with another tenant, and a second one of its
// tenant that a credential of that tenant would call the same.
func (m *maker) checkName(c *v1.WantedCluster) {
	name, err := clustername.Parse(c.Name)
	if err != nil {
		m.conflict(clusterKey(c.Name), "cluster %s: %v", c.Name, err)
		return
	}
	if name.Tenant != "" && name.Tenant != c.Tenant {
		m.conflict(clusterKey(c.Name), "cluster %s is of tenant %s by its name, and is to be of tenant %s", c.Name, name.Tenant, c.Tenant)
		return
	}
	if _, there := m.f.Clusters[c.Name]; there {
		return
	}
	twin := name.Twin(c.Tenant).String()
	has := m.f.Clusters[twin].Tenant
	if w := m.clusters[twin]; w != nil && name.Tenant != "" { // once for the two
		has = w.Tenant
	}
	if has == c.Tenant {
		m.conflict(clusterKey(c.Name), "tenant %s has or is to have cluster %s, and its credentials would call both %s", c.Tenant, twin, name.Own)
	}
}

// shared reports whether a cluster is there or wanted, and whether it is a shared one.
func (m *maker) shared(name string) (shared, there bool) {
	if c := m.clusters[name]; c != nil {
		return c.Shared, true
	}
	c, there := m.f.Clusters[name]
	return c.Shared, there
}

func (m *maker) checkHosts(a *v1.WantedAssignment) {
	if _, there := m.shared(a.Cluster); !there {
		m.conflict(clusterKey(a.Cluster), "hosts are to be in cluster %s, which is neither there nor wanted", a.Cluster)
	}
	for _, id := range a.Hosts {
		object := hostKey(id)
		if other := m.hosts[id]; other != nil {
			m.conflict(object, "host %s is wanted twice: in cluster %s and in cluster %s", id, other.Cluster, a.Cluster)
			continue
		}
		m.hosts[id] = a
		h, there := m.f.Hosts[id]
		switch {
		case !there:
			m.conflict(object, "host %s is not in the inventory", id)
			continue
		case h.Cluster == "" || h.Cluster == a.Cluster || m.w.TakeOver || m.w.Set != "" && h.Set == m.w.Set:
		default:
			m.conflict(object, "host %s is in cluster %s, and was assigned %s: it is not moved to cluster %s", id, h.Cluster, assignedFor(h.Set), a.Cluster)
		}
		m.checkLabels(object, h.Labels, a.Labels)
	}
}

func assignedFor(set string) string {
	if set == "" {
		return "for no set"
	}
	return "for set " + set
}
