package apply

import (
	"slices"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/audit"
	"portcullis/api/rules"
	v1 "portcullis/api/v1"
)

// TestReasonOfPlan: each change of a plan has the reason of the plan, and a service that demands one makes none without it.
func TestReasonOfPlan(t *testing.T) {
	s := newSite(t, func(o *api.Options) { o.RequireReason = []string{rules.Change} })
	s.write("a.yaml", "kind: Tenant\nname: acme\n---\nkind: Cluster\nname: train\ntenant: acme\n---\nkind: Assignment\ncluster: train\nhosts: [n1, n2]\n")
	entries := func() (all []string) {
		page, err := audit.Book{Store: s.Store}.List(t.Context(), v1.AuditQuery{Actor: "olga", Limit: v1.MaxPage})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			all = append(all, e.Action+" "+e.Reason)
		}
		return all
	}
	if _, errs := s.apply(1); !strings.Contains(errs, "--reason TEXT") {
		t.Errorf("without a reason: %s", errs)
	}
	if got := entries(); len(got) > 0 {
		t.Fatalf("changes without a reason: %q", got)
	}
	s.apply(0, "--reason", "Auftrag 7: größer")
	want := []string{"tenant.create Auftrag 7: größer", "cluster.create Auftrag 7: größer", "host.assign Auftrag 7: größer", "host.assign Auftrag 7: größer"}
	if got := entries(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, bad := range []string{"", " ", "a\nb", strings.Repeat("x", 257)} {
		if _, errs := s.apply(2, "--reason", bad); !strings.Contains(errs, "--reason: it ") || strings.Count(errs, "\n") != 2 {
			t.Errorf("%q: %s", bad, errs)
		}
	}
}
