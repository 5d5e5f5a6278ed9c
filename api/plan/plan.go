// Package plan compares what a caller wants there to be with what is there, and says which changes make up the difference, in
// an order that is safe. It is pure, and decides nothing: each change is a request to the service, which its guards may refuse.
//
// What takes away comes before what adds. A change that adds names the removals of the clusters that it touches: when one of
// them failed, it is not made. So no two hosts share a partition, at any moment and whatever is refused, that neither did before
// nor are wanted to.
package plan

import (
	"fmt"
	"maps"
	"slices"

	"portcullis/api/label"
	v1 "portcullis/api/v1"
)

// Found is what is there, as of one moment. Clusters has all clusters that the caller may know of. Without Prune, Tenants and
// Hosts need only those that the caller names; with Prune, also all tenants, and the hosts of all clusters.
type Found struct {
	Tenants  map[string]v1.Tenant  // by name; Use is not read
	Clusters map[string]v1.Cluster // by name
	Hosts    map[string]Host       // by id; those of the inventory
	// LabelVersions are the versions of the labels of tenants, clusters and hosts, by object.
	LabelVersions map[string]string
}

// Host is where a host of the inventory stands.
type Host struct {
	Cluster   string // "": none
	Set       string // that it was assigned for; "": none
	Epoch     int64  // number of the last assignment
	Labels    map[string]string
	Releasing bool // it left a cluster, and that is not proven yet
}

// Make returns the plan. It has changes or conflicts, and neither when what is there is what is wanted.
func Make(w *v1.Wanted, f *Found) *v1.Plan {
	m := &maker{w: w, f: f, tenants: map[string]*v1.WantedTenant{}, clusters: map[string]*v1.WantedCluster{}, hosts: map[string]*v1.WantedAssignment{}}
	m.check()
	if len(m.plan.Conflicts) == 0 {
		m.decide()
		m.takeAway()
		m.add()
	}
	for i := range m.plan.Changes {
		if m.plan.Changes[i].Removes {
			m.plan.Removals++
		}
	}
	if m.plan.Changes == nil {
		m.plan.Changes = []v1.PlannedChange{}
	}
	if m.plan.Conflicts == nil {
		m.plan.Conflicts = []v1.PlanNote{}
	}
	return &m.plan
}

// maker makes one plan.
type maker struct {
	w    *v1.Wanted
	f    *Found
	plan v1.Plan

	tenants  map[string]*v1.WantedTenant
	clusters map[string]*v1.WantedCluster
	hosts    map[string]*v1.WantedAssignment // by host
	named    map[string]bool                 // clusters that something wanted needs

	selector label.Selector // of Wanted

	stops     map[string][]string // by cluster: shared ones whose use ends
	releases  map[string]string   // by host: the cluster that it leaves
	deletes   map[string]bool     // clusters
	creates   map[string]bool     // keys of tenants and clusters that are created
	ties      map[string][]string // by cluster: shared ones that it uses, now or as wanted; sorted
	takenFrom map[string]bool     // clusters from which something is taken
	takenNear map[string]bool     // shared clusters of which a user is in takenFrom
}

func tenantKey(name string) string  { return "tenant/" + name }
func quotaKey(name string) string   { return "quota/" + name }
func clusterKey(name string) string { return "cluster/" + name }
func hostKey(id string) string      { return "host/" + id }

// leaveKey names all removals from a cluster.
func leaveKey(cluster string) string { return "leave/" + cluster }

// nearKey names all removals from the clusters that use a shared one.
func nearKey(shared string) string { return "near/" + shared }

// leaveKeys returns what a removal from a cluster completes.
func (m *maker) leaveKeys(cluster string) []string {
	keys := []string{leaveKey(cluster)}
	for _, s := range m.ties[cluster] {
		keys = append(keys, nearKey(s))
	}
	return keys
}

func (m *maker) conflict(object, format string, args ...any) {
	m.plan.Conflicts = append(m.plan.Conflicts, v1.PlanNote{Object: object, Detail: fmt.Sprintf(format, args...)})
}

func (m *maker) change(c v1.PlannedChange) { m.plan.Changes = append(m.plan.Changes, c) }

// decide finds out what is taken away.
func (m *maker) decide() {
	m.stops, m.releases, m.deletes = map[string][]string{}, map[string]string{}, map[string]bool{}
	m.creates, m.takenFrom, m.named = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for host, a := range m.hosts {
		if h := m.f.Hosts[host]; h.Cluster != "" && h.Cluster != a.Cluster {
			m.releases[host] = h.Cluster
		}
	}
	if m.w.Prune {
		m.prune()
	}
	m.tie()
	for _, cluster := range m.releases {
		m.takenFrom[cluster] = true
	}
	for cluster, shared := range m.stops {
		m.takenFrom[cluster] = true
		for _, s := range shared {
			m.takenFrom[s] = true
		}
	}
	for cluster := range m.deletes { // with it the uses that it has
		for _, s := range m.f.Clusters[cluster].Uses {
			m.takenFrom[s] = true
		}
	}
	for cluster := range m.takenFrom {
		for _, s := range m.ties[cluster] {
			m.takenNear[s] = true
		}
	}
}

// tie finds out which clusters use which, now or as wanted.
func (m *maker) tie() {
	m.ties, m.takenNear = map[string][]string{}, map[string]bool{}
	for name, c := range m.f.Clusters {
		m.ties[name] = append(m.ties[name], c.Uses...)
	}
	for name, c := range m.clusters {
		m.ties[name] = append(m.ties[name], c.Uses...)
	}
	for name, uses := range m.ties {
		slices.Sort(uses)
		m.ties[name] = slices.Compact(uses)
	}
}

// prune finds out what was created for the set and is not wanted.
func (m *maker) prune() {
	for _, a := range m.w.Assignments {
		m.named[a.Cluster] = true
	}
	for name, c := range m.clusters {
		m.named[name] = true
		for _, s := range c.Uses {
			m.named[s] = true
		}
	}
	var unchosen []string
	for id, h := range m.f.Hosts {
		if _, wanted := m.hosts[id]; !wanted && h.Cluster != "" && h.Set == m.w.Set {
			if !m.chosenToGo(m.f.Clusters[h.Cluster].Labels) {
				unchosen = append(unchosen, id)
				continue
			}
			m.releases[id] = h.Cluster
		}
	}
	slices.Sort(unchosen)
	for _, id := range unchosen {
		m.keptByLabels(hostKey(id), clusterKey(m.f.Hosts[id].Cluster))
	}
	m.pruneUses()
	m.pruneClusters()
}

// pruneUses ends the uses that began for the set and are not wanted.
func (m *maker) pruneUses() {
	for name, c := range m.f.Clusters {
		want := m.clusters[name]
		if !m.chosenToGo(c.Labels) {
			continue // that it stays with what it uses is said of the cluster, unless that is wanted
		}
		for _, s := range c.Uses {
			if c.UseSets[s] == m.w.Set && (want == nil || !slices.Contains(want.Uses, s)) {
				m.stops[name] = append(m.stops[name], s)
			}
		}
	}
}

// pruneClusters finds the clusters that go: those of the set that nothing wanted needs, and that keep neither host nor user. A
// cluster that uses others goes before them.
func (m *maker) pruneClusters() {
	for _, shared := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(m.f.Clusters)) {
			c := m.f.Clusters[name]
			if c.Shared != shared || c.Set != m.w.Set || m.named[name] {
				continue
			}
			if !m.chosenToGo(c.Labels) {
				m.keptByLabels(clusterKey(name), "it")
				continue
			}
			if why := m.needed(&c); why != "" {
				m.plan.Kept = append(m.plan.Kept, v1.PlanNote{Object: clusterKey(name), Detail: why})
				continue
			}
			m.deletes[name] = true
			delete(m.stops, name) // they end with it
		}
	}
}

// needed says why a cluster stays; "" if nothing is left in it.
func (m *maker) needed(c *v1.Cluster) string {
	for _, h := range c.Hosts {
		if m.releases[h] != c.Name {
			return "host " + h + " is in it, and was not assigned for set " + m.w.Set
		}
	}
	for _, u := range c.Users {
		if m.deletes[u] || slices.Contains(m.stops[u], c.Name) {
			continue
		}
		if user := m.f.Clusters[u]; user.UseSets[c.Name] == m.w.Set && !m.chosenToGo(user.Labels) {
			return "cluster " + u + " uses it, and the labels of that do not meet the selector " + m.selector.String()
		}
		return "cluster " + u + " uses it, and not for set " + m.w.Set
	}
	return ""
}

// takeAway plans all removals: uses, then hosts, then what is empty by then.
func (m *maker) takeAway() {
	for _, name := range slices.Sorted(maps.Keys(m.stops)) {
		for _, s := range slices.Sorted(slices.Values(m.stops[name])) {
			m.change(v1.PlannedChange{
				Verb: v1.PlanStopUse, Object: clusterKey(name), Name: name, Shared: s, Version: m.f.Clusters[name].Version, Removes: true,
				Detail: fmt.Sprintf("cluster %s uses shared cluster %s no longer", name, s),
				Keys:   append(m.leaveKeys(name), leaveKey(s)),
			})
		}
	}
	for _, host := range slices.Sorted(maps.Keys(m.releases)) {
		from := m.releases[host]
		c := m.f.Clusters[from]
		m.change(v1.PlannedChange{
			Verb: v1.PlanRelease, Object: hostKey(host), Name: host, Version: fmt.Sprint(m.f.Hosts[host].Epoch), Removes: true,
			Detail: fmt.Sprintf("host %s leaves cluster %s of tenant %s, P_Key %v", host, from, c.Tenant, c.PKey),
			Keys:   append(m.leaveKeys(from), hostKey(host)),
		})
	}
	for _, shared := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(m.deletes)) {
			if c := m.f.Clusters[name]; c.Shared == shared {
				m.deleteCluster(&c)
			}
		}
	}
	if m.w.Prune {
		m.pruneTenants()
	}
}

func (m *maker) deleteCluster(c *v1.Cluster) {
	keys := []string{clusterKey(c.Name)}
	for _, s := range c.Uses {
		keys = append(keys, leaveKey(s))
	}
	m.change(v1.PlannedChange{
		Verb: v1.PlanDeleteCluster, Object: clusterKey(c.Name), Name: c.Name, Version: c.Version, Removes: true,
		Detail: fmt.Sprintf("cluster %s of tenant %s is deleted, and P_Key %v is quarantined until it is proven absent everywhere", c.Name, c.Tenant, c.PKey),
		Keys:   keys, After: []string{leaveKey(c.Name)},
	})
}

func (m *maker) pruneTenants() {
	left := map[string]string{} // by tenant: a cluster that stays or comes
	for name, c := range m.f.Clusters {
		if !m.deletes[name] && (left[c.Tenant] == "" || name < left[c.Tenant]) {
			left[c.Tenant] = name
		}
	}
	for _, c := range m.clusters {
		left[c.Tenant] = c.Name
	}
	for _, name := range slices.Sorted(maps.Keys(m.f.Tenants)) {
		t := m.f.Tenants[name]
		if _, wanted := m.tenants[name]; wanted || t.Set != m.w.Set {
			continue
		}
		if !m.chosenToGo(t.Labels) {
			m.keptByLabels(tenantKey(name), "it")
			continue
		}
		if c := left[name]; c != "" {
			m.plan.Kept = append(m.plan.Kept, v1.PlanNote{Object: tenantKey(name), Detail: "it has cluster " + c})
			continue
		}
		var after []string
		for _, c := range slices.Sorted(maps.Keys(m.deletes)) {
			if m.f.Clusters[c].Tenant == name {
				after = append(after, clusterKey(c))
			}
		}
		m.change(v1.PlannedChange{
			Verb: v1.PlanDeleteTenant, Object: tenantKey(name), Name: name, Version: t.Version, Removes: true,
			Detail: fmt.Sprintf("tenant %s is deleted", name), Keys: []string{tenantKey(name)}, After: after,
		})
	}
}
