package found_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"portcullis/api/apitest"
	"portcullis/api/ifmatch"
	"portcullis/api/plan/found"
	"portcullis/api/refusal"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// site has cluster c1 of tenant acme with host n1, and cluster disk of tenant zeta with host n2, all made for set prod.
func site(t *testing.T) *apitest.Site {
	t.Helper()
	s := apitest.NewSite(t)
	s.Register("n1", "n2", "n3")
	ctx, svc := t.Context(), s.Service()
	for _, n := range []v1.NewTenant{{Name: "acme", Set: "prod"}, {Name: "zeta", Set: "prod"}} {
		if _, err := svc.Tenancy().CreateTenant(ctx, apitest.Importer, n); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []v1.NewCluster{{Name: "c1", Tenant: "acme", Set: "prod"}, {Name: "disk", Tenant: "zeta", Shared: true, Set: "prod"}} {
		if _, err := svc.Tenancy().CreateCluster(ctx, apitest.Importer, n); err != nil {
			t.Fatal(err)
		}
	}
	for host, cluster := range map[string]string{"n1": "c1", "n2": "disk"} {
		if _, err := svc.Assign(ctx, apitest.Importer, host, v1.Assignment{Cluster: cluster, Set: "prod"}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func objects(p *v1.Plan) (out []string) {
	for i := range p.Changes {
		out = append(out, p.Changes[i].Verb+" "+p.Changes[i].Object)
	}
	for _, n := range p.Conflicts {
		out = append(out, "conflict "+n.Object)
	}
	return out
}

func planOf(t *testing.T, ctx context.Context, s *apitest.Site, w v1.Wanted) []string {
	t.Helper()
	p, err := found.Planner{Store: s.Store}.Plan(ctx, &w)
	if err != nil {
		t.Fatal(err)
	}
	return objects(p)
}

// TestScope: for a credential of one tenant, what others have does not exist: it is neither pruned nor moved nor named.
func TestScope(t *testing.T) {
	s := site(t)
	acme := tenancy.Within(t.Context(), &tenancy.Scope{Tenants: []string{"acme"}})
	prune := v1.Wanted{Set: "prod", Prune: true}
	all := []string{"release host/n1", "release host/n2", "delete-cluster cluster/c1", "delete-cluster cluster/disk", "delete-tenant tenant/acme", "delete-tenant tenant/zeta"}
	if got := planOf(t, t.Context(), s, prune); !slices.Equal(got, all) {
		t.Errorf("an operator prunes %q, want %q", got, all)
	}
	if got, want := planOf(t, acme, s, prune), []string{"release host/n1", "delete-cluster cluster/c1", "delete-tenant tenant/acme"}; !slices.Equal(got, want) {
		t.Errorf("the tenant prunes %q, want %q", got, want)
	}
	take := v1.Wanted{TakeOver: true, Assignments: []v1.WantedAssignment{{Cluster: "c1", Hosts: []string{"n2", "n3", "n9"}}}}
	if got, want := planOf(t, acme, s, take), []string{"conflict host/n2", "conflict host/n3", "conflict host/n9"}; !slices.Equal(got, want) {
		t.Errorf("hosts of others: %q, want %q", got, want)
	}
	other := v1.Wanted{Clusters: []v1.WantedCluster{{Name: "c1", Tenant: "acme", Uses: []string{"disk"}}, {Name: "x", Tenant: "zeta"}}}
	if got, want := planOf(t, acme, s, other), []string{"conflict cluster/c1", "conflict cluster/x"}; !slices.Equal(got, want) {
		t.Errorf("clusters of others: %q, want %q", got, want)
	}
	p, err := found.Planner{Store: s.Store}.Plan(t.Context(), &v1.Wanted{Assignments: []v1.WantedAssignment{{Cluster: "c1", Hosts: make([]string, 40_001)}}})
	if no, ok := errors.AsType[*refusal.Error](err); !ok || no.Code != "too_many_hosts" {
		t.Errorf("40001 hosts: %v, %v", p, err)
	}
}

// TestUsesAreBounded: what fits into a request must not become an answer that fills the memory.
func TestUsesAreBounded(t *testing.T) {
	s := site(t)
	w := v1.Wanted{Clusters: make([]v1.WantedCluster, 313)}
	for i := range w.Clusters {
		w.Clusters[i] = v1.WantedCluster{Name: fmt.Sprint("x", i), Tenant: "acme", Uses: make([]string, 128)}
	}
	p, err := found.Planner{Store: s.Store}.Plan(t.Context(), &w)
	if no, ok := errors.AsType[*refusal.Error](err); !ok || no.Code != "too_many_uses" {
		t.Errorf("40064 uses: %v, %v", p, err)
	}
	w.Clusters = w.Clusters[:312]
	if _, err := (found.Planner{Store: s.Store}).Plan(t.Context(), &w); err != nil {
		t.Errorf("39936 uses: %v", err)
	}
}

// TestSetOfAnAssignment: to open the window again keeps the set, and a new assignment by others has none.
func TestSetOfAnAssignment(t *testing.T) {
	s := site(t)
	for _, set := range []string{"", "test"} {
		if h, err := s.Service().Assign(t.Context(), "olga", "n1", v1.Assignment{Cluster: "c1", Set: set}); err != nil || h.Set != "prod" {
			t.Errorf("opened again for %q: %+v, %v", set, h, err)
		}
	}
	if h, err := s.Service().Release(ifmatch.With(t.Context(), []string{"3"}), "olga", "n1"); err != nil || h.Set != "" {
		t.Fatalf("released: %+v, %v", h, err)
	}
	if h, err := s.Service().Assign(t.Context(), "olga", "n1", v1.Assignment{Cluster: "c1"}); err != nil || h.Set != "" {
		t.Errorf("assigned again: %+v, %v", h, err)
	}
	if got, want := planOf(t, t.Context(), s, v1.Wanted{Set: "prod", Prune: true}), []string{"release host/n2", "delete-cluster cluster/disk", "delete-tenant tenant/zeta"}; !slices.Equal(got, want) {
		t.Errorf("%q is pruned, want %q", got, want)
	}
}

// TestSetOfAUse: a use that began for a set keeps it, and one that others began has none.
func TestSetOfAUse(t *testing.T) {
	s := site(t)
	svc := s.Service().Tenancy()
	use := func(set string) *v1.Cluster {
		t.Helper()
		c, err := svc.Use(t.Context(), "olga", "c1", "disk", v1.ClusterUse{Set: set})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := use("prod"); c.UseSets["disk"] != "prod" {
		t.Errorf("%+v", c)
	}
	if c := use("test"); c.UseSets["disk"] != "prod" {
		t.Errorf("used again: %+v", c)
	}
	if c, err := svc.StopUse(t.Context(), "olga", "c1", "disk"); err != nil || len(c.UseSets) > 0 {
		t.Errorf("ended: %+v, %v", c, err)
	}
	if c := use(""); len(c.UseSets) > 0 {
		t.Errorf("by hand: %+v", c)
	}
}

// TestReleasing: a host that left is to be assigned only after the proof.
func TestReleasing(t *testing.T) {
	s := apitest.NewSite(t)
	s.Register("n1")
	s.Admit("n1")
	if _, err := s.Service().Release(t.Context(), "olga", "n1"); err != nil {
		t.Fatal(err)
	}
	w := v1.Wanted{Assignments: []v1.WantedAssignment{{Cluster: apitest.Cluster, Hosts: []string{"n1"}}}}
	for _, waits := range []bool{true, false} {
		p, err := found.Planner{Store: s.Store}.Plan(t.Context(), &w)
		if err != nil || len(p.Changes) != 1 || p.Changes[0].Waits != waits || p.Changes[0].Version != "1" {
			t.Errorf("plan %+v, %v; want one that waits: %v", p, err, waits)
		}
		s.Program()
	}
}
