package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
)

func labelled(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("k%02d", i)] = ""
	}
	return out
}

// TestLabels: labels that differ are set, for the version of the labels that was found. Of what is created they are part.
func TestLabels(t *testing.T) {
	t.Parallel()
	f := &Found{
		Tenants:       map[string]v1.Tenant{"acme": {Name: "acme", Version: "1", Labels: map[string]string{"a": "1", "b": "2"}}},
		Clusters:      map[string]v1.Cluster{"train": {Name: "train", Tenant: "acme", Version: "2"}},
		Hosts:         map[string]Host{"n1": {Cluster: "train", Labels: map[string]string{"gpu": "h100"}}, "n2": {Cluster: "train"}},
		LabelVersions: map[string]string{"tenant/acme": "t1", "cluster/train": "c1", "host/n1": "n1", "host/n2": "n2"},
	}
	p := Make(&v1.Wanted{
		Tenants:     []v1.WantedTenant{{Name: "acme", Labels: map[string]string{"a": "1", "b": "3"}}, {Name: "new", Labels: map[string]string{"x": "y"}}},
		Clusters:    []v1.WantedCluster{{Name: "train", Tenant: "acme", Labels: map[string]string{"env": ""}}, {Name: "more", Tenant: "new", Labels: map[string]string{"e": "f"}}},
		Assignments: []v1.WantedAssignment{{Cluster: "train", Hosts: []string{"n1", "n2"}, Labels: map[string]string{"gpu": "h100"}}},
	}, f)
	var got []string
	for i := range p.Changes {
		c := &p.Changes[i]
		switch {
		case c.Verb == v1.PlanLabel:
			got = append(got, fmt.Sprint(c.Object, " ", c.Version, " ", c.Labels, " ", c.After))
		case c.Tenant != nil:
			got = append(got, fmt.Sprint("new ", c.Object, " ", c.Tenant.Labels))
		case c.Cluster != nil:
			got = append(got, fmt.Sprint("new ", c.Object, " ", c.Cluster.Labels))
		}
	}
	if d := cmp.Diff([]string{
		"new tenant/new map[x:y]", "new cluster/more map[e:f]",
		"tenant/acme t1 map[b:3] []", "cluster/train c1 map[env:] []", "host/n2 n2 map[gpu:h100] []",
	}, got); d != "" || len(p.Conflicts) > 0 || p.Removals != 0 {
		t.Errorf("changes (-want +got), conflicts %v:\n%s", p.Conflicts, d)
	}
}

// TestLabelConflicts: labels that an object cannot have beside those that it has are a conflict, as is a selector that is none.
func TestLabelConflicts(t *testing.T) {
	t.Parallel()
	f := &Found{
		Tenants:  map[string]v1.Tenant{"acme": {Name: "acme", Labels: labelled(32)}},
		Clusters: map[string]v1.Cluster{"train": {Name: "train", Tenant: "acme", Labels: labelled(32)}},
		Hosts:    map[string]Host{"n1": {Labels: labelled(32)}},
	}
	for says, w := range map[string]*v1.Wanted{
		"labels of tenant/acme: 33 labels":   {Tenants: []v1.WantedTenant{{Name: "acme", Labels: map[string]string{"x": ""}}}},
		"labels of cluster/train: 33 labels": {Clusters: []v1.WantedCluster{{Name: "train", Tenant: "acme", Labels: map[string]string{"x": ""}}}},
		"labels of host/n1: 33 labels":       {Assignments: []v1.WantedAssignment{{Cluster: "train", Hosts: []string{"n1"}, Labels: map[string]string{"x": ""}}}},
		"label x: value":                     {Tenants: []v1.WantedTenant{{Name: "new", Labels: map[string]string{"x": "y!"}}}},
		"a selector needs prune":             {Selector: "a"},
		"selector, byte 2":                   {Set: "s", Prune: true, Selector: "a<b"},
	} {
		p := Make(w, f)
		if len(p.Conflicts) != 1 || !strings.Contains(p.Conflicts[0].Detail, says) || len(p.Changes) > 0 {
			t.Errorf("%s: conflicts %+v, changes %+v", says, p.Conflicts, p.Changes)
		}
	}
	if p := Make(&v1.Wanted{Tenants: []v1.WantedTenant{{Name: "acme", Labels: labelled(32)}}}, f); len(p.Conflicts)+len(p.Changes) > 0 {
		t.Errorf("labels that are there: %+v", p)
	}
}

// TestPruneChosen: with a selector, uses and hosts are taken only from clusters that it chooses.
func TestPruneChosen(t *testing.T) {
	t.Parallel()
	dev := map[string]string{"env": "dev"}
	f := &Found{
		Tenants: map[string]v1.Tenant{"acme": {Name: "acme", Set: set, Labels: dev}, "idle": {Name: "idle", Set: set}},
		Clusters: map[string]v1.Cluster{
			"a":    {Name: "a", Tenant: "acme", Set: set, Labels: dev, Hosts: []string{"n1"}, Uses: []string{"disk"}, UseSets: map[string]string{"disk": set}},
			"b":    {Name: "b", Tenant: "acme", Set: set, Hosts: []string{"n2"}, Uses: []string{"disk"}, UseSets: map[string]string{"disk": set}},
			"disk": {Name: "disk", Tenant: "acme", Set: set, Labels: dev, Shared: true, Users: []string{"a", "b"}},
		},
		Hosts: map[string]Host{"n1": {Cluster: "a", Set: set}, "n2": {Cluster: "b", Set: set, Labels: dev}},
	}
	p := Make(&v1.Wanted{Set: set, Prune: true, Selector: "env=dev"}, f)
	var gone, kept []string
	for i := range p.Changes {
		gone = append(gone, p.Changes[i].Verb+" "+p.Changes[i].Object)
	}
	for _, k := range p.Kept {
		kept = append(kept, k.Object+": "+k.Detail)
	}
	if d := cmp.Diff([]string{"release host/n1", "delete-cluster cluster/a"}, gone); d != "" {
		t.Errorf("removed (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{
		"host/n2: the labels of cluster/b do not meet the selector env=dev",
		"cluster/b: the labels of it do not meet the selector env=dev",
		"cluster/disk: cluster b uses it, and the labels of that do not meet the selector env=dev",
		"tenant/acme: it has cluster b",
		"tenant/idle: the labels of it do not meet the selector env=dev",
	}, kept); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
}
