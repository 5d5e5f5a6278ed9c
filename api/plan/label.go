package plan

import (
	"fmt"
	"maps"
	"slices"

	"portcullis/api/label"
	v1 "portcullis/api/v1"
)

// checkLabels finds labels that an object cannot have: what is malformed, and more than fit beside those that it has.
func (m *maker) checkLabels(object string, has, want map[string]string) {
	both := label.Set(maps.Clone(has))
	if both == nil {
		both = label.Set{}
	}
	maps.Copy(both, want)
	if err := both.Check(); err != nil {
		m.conflict(object, "labels of %s: %v", object, err)
	}
}

// chosenToGo reports whether prune may take from a cluster or tenant with these labels.
func (m *maker) chosenToGo(labels map[string]string) bool { return m.selector.Matches(labels) }

// keptByLabels notes that something is not removed because of the labels of an object.
func (m *maker) keptByLabels(object, of string) {
	m.plan.Kept = append(m.plan.Kept, v1.PlanNote{Object: object, Detail: "the labels of " + of + " do not meet the selector " + m.selector.String()})
}

// addLabels plans the labels that tenants, clusters and hosts are to have and have not. What is created has its labels from the start.
func (m *maker) addLabels() {
	for _, name := range slices.Sorted(maps.Keys(m.tenants)) {
		if found, there := m.f.Tenants[name]; there {
			m.label(tenantKey(name), name, found.Labels, m.tenants[name].Labels)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.clusters)) {
		if found, there := m.f.Clusters[name]; there {
			m.label(clusterKey(name), name, found.Labels, m.clusters[name].Labels)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.hosts)) {
		m.label(hostKey(id), id, m.f.Hosts[id].Labels, m.hosts[id].Labels)
	}
}

// label plans the labels of one object. It has them whatever becomes of other changes, and no other change waits for them.
func (m *maker) label(object, name string, has, want map[string]string) {
	sets := label.Set{}
	for key, value := range want {
		if is, there := has[key]; !there || is != value {
			sets[key] = value
		}
	}
	if len(sets) == 0 {
		return
	}
	m.change(v1.PlannedChange{
		Verb: v1.PlanLabel, Object: object, Name: name, Version: m.f.LabelVersions[object], Keys: []string{"label/" + object}, Labels: sets,
		Detail: fmt.Sprintf("%s is labelled %s", object, sets),
	})
}
