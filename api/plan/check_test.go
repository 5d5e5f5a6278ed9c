package plan

import (
	"strings"
	"testing"

	v1 "portcullis/api/v1"
)

// TestConflicts: what cannot be had is named, and a plan with conflicts has no changes.
func TestConflicts(t *testing.T) {
	f := &Found{
		Tenants:  map[string]v1.Tenant{"acme": {Name: "acme", PKeys: []string{"0x0100-0x01ff"}}, "zeta": {Name: "zeta"}},
		Clusters: map[string]v1.Cluster{"c1": {Name: "c1", Tenant: "acme", PKey: 0x101}, "disk": {Name: "disk", Tenant: "zeta", Shared: true}},
		Hosts:    map[string]Host{"n1": {}, "n2": {Cluster: "c1", Epoch: 1}, "n3": {Cluster: "c1", Epoch: 1, Set: "prod"}, "n4": {Cluster: "c1", Epoch: 1, Set: "test"}},
	}
	for _, tt := range []struct {
		wanted v1.Wanted
		want   string
	}{
		{v1.Wanted{Prune: true}, "prune needs the name of a set"},
		{v1.Wanted{Tenants: []v1.WantedTenant{{Name: "a"}, {Name: "a"}}}, "tenant a is wanted twice"},
		{v1.Wanted{Tenants: []v1.WantedTenant{{Name: "acme", PKeys: []string{"0x0100-0x01fe"}}}}, "cannot be changed to"},
		{v1.Wanted{Tenants: []v1.WantedTenant{{Name: "acme", PKeys: []string{"x"}}}}, "ranges of P_Keys of tenant acme"},
		{v1.Wanted{Clusters: []v1.WantedCluster{{Name: "x", Tenant: "nobody"}}}, "is of tenant nobody, which is neither there nor wanted"},
		{v1.Wanted{Clusters: []v1.WantedCluster{{Name: "x", Tenant: "acme"}, {Name: "x", Tenant: "acme"}}}, "cluster x is wanted twice"},
		{v1.Wanted{Clusters: []v1.WantedCluster{{Name: "c1", Tenant: "zeta"}}}, "which cannot be changed to zeta"},
		{v1.Wanted{Clusters: []v1.WantedCluster{{Name: "disk", Tenant: "zeta"}}}, "was created with shared true"},
		{v1.Wanted{Clusters: []v1.WantedCluster{{Name: "c1", Tenant: "acme", PKey: new(f.Clusters["c1"].PKey + 1)}}}, "has P_Key 0x0101"},
		{v1.Wanted{Clusters: []v1.WantedCluster{{Name: "c1", Tenant: "acme", Uses: []string{"gone"}}}}, "is to use gone, which is neither"},
		{v1.Wanted{Clusters: []v1.WantedCluster{{Name: "x", Tenant: "acme", Uses: []string{"c1"}}}}, "which is not shared"},
		{v1.Wanted{Clusters: []v1.WantedCluster{{Name: "disk", Tenant: "zeta", Shared: true, Uses: []string{"disk"}}}}, "a shared cluster uses none"},
		{v1.Wanted{Clusters: []v1.WantedCluster{{Name: "c1", Tenant: "acme", Uses: []string{"disk", "disk"}}}}, "is to use disk twice"},
		{v1.Wanted{Assignments: []v1.WantedAssignment{{Cluster: "gone", Hosts: []string{"n1"}}}}, "cluster gone, which is neither"},
		{v1.Wanted{Assignments: []v1.WantedAssignment{{Cluster: "c1", Hosts: []string{"n9"}}}}, "host n9 is not in the inventory"},
		{v1.Wanted{Assignments: []v1.WantedAssignment{{Cluster: "c1", Hosts: []string{"n1"}}, {Cluster: "disk", Hosts: []string{"n1"}}}}, "wanted twice: in cluster c1 and in cluster disk"},
		{v1.Wanted{Set: "prod", Assignments: []v1.WantedAssignment{{Cluster: "disk", Hosts: []string{"n2"}}}}, "assigned for no set: it is not moved"},
		{v1.Wanted{Set: "prod", Assignments: []v1.WantedAssignment{{Cluster: "disk", Hosts: []string{"n4"}}}}, "assigned for set test: it is not moved"},
		{v1.Wanted{Assignments: []v1.WantedAssignment{{Cluster: "disk", Hosts: []string{"n2"}}}}, "assigned for no set: it is not moved"},
		{v1.Wanted{Set: "prod", Assignments: []v1.WantedAssignment{{Cluster: "disk", Hosts: []string{"n3"}}}}, ""},
		{v1.Wanted{TakeOver: true, Assignments: []v1.WantedAssignment{{Cluster: "disk", Hosts: []string{"n2", "n4"}}}}, ""},
		{v1.Wanted{Tenants: []v1.WantedTenant{{Name: "acme"}}, Assignments: []v1.WantedAssignment{{Cluster: "c1", Hosts: []string{"n2"}}}}, ""},
	} {
		p := Make(&tt.wanted, f)
		var said []string
		for _, c := range p.Conflicts {
			said = append(said, c.Detail)
		}
		switch all := strings.Join(said, "; "); {
		case tt.want == "" && all != "", !strings.Contains(all, tt.want):
			t.Errorf("%+v: conflicts %q, want %q", tt.wanted, all, tt.want)
		case all != "" && len(p.Changes) > 0:
			t.Errorf("%+v: changes beside conflicts", tt.wanted)
		}
	}
}
