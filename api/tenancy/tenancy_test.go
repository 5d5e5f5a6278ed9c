package tenancy

import (
	"context"
	"errors"
	"testing"
	"time"

	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// fixture is a service over a store in memory, at a time that stands still.
type fixture struct {
	*Service
	store *store.Store
	clock time.Time
	full  error // what Options.Room returns
}

func newFixture(t testing.TB, edit ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{clock: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return f.clock }
	f.store = store.New(memory.New(now), "")
	o := Options{
		Store: f.store, Log: storetest.Quiet(), Refusals: NewRefusals(f.store, storetest.Quiet(), now), Now: now,
		PKeyFirst: 1, PKeyLast: 4, PKeyMinAge: time.Minute,
		Room: func(context.Context, *store.Tx, *Cluster, *Cluster) error { return f.full },
	}
	for _, e := range edit {
		e(&o)
	}
	f.Service = New(o)
	return f
}

// create makes a tenant with clusters.
func (f *fixture) create(t *testing.T, tenant string, clusters ...string) {
	t.Helper()
	_, err := f.CreateTenant(t.Context(), "alice", v1.NewTenant{Name: tenant})
	for _, c := range clusters {
		_, failed := f.CreateCluster(t.Context(), "alice", v1.NewCluster{Name: c, Tenant: tenant, Shared: c == "store"})
		err = errors.Join(err, failed)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// code is that of a refusal, "" for none.
func code(err error) string {
	if no, ok := errors.AsType[*refusal.Error](err); ok {
		return no.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestListsInPages(t *testing.T) {
	f := newFixture(t)
	f.create(t, "acme", "c1", "c2", "c3")
	f.create(t, "zeta")
	first, err := f.Tenants(t.Context(), v1.TenantQuery{PageQuery: v1.PageQuery{Limit: 1}})
	if err != nil || len(first.Items) != 1 || first.Items[0].Name != "acme" {
		t.Fatalf("first tenant: %+v, %v", first, err)
	}
	rest, err := f.Tenants(t.Context(), v1.TenantQuery{PageQuery: v1.PageQuery{Limit: 1, After: first.Next}})
	if err != nil || len(rest.Items) != 1 || rest.Items[0].Name != "zeta" || rest.Next != "" {
		t.Errorf("second tenant: %+v, %v", rest, err)
	}
	clusters, err := f.Clusters(t.Context(), v1.ClusterQuery{Tenant: "acme", PageQuery: v1.PageQuery{Limit: 2}})
	if err != nil || len(clusters.Items) != 2 || clusters.Next == "" {
		t.Errorf("clusters: %+v, %v", clusters, err)
	}
	if none, err := f.Clusters(t.Context(), v1.ClusterQuery{Tenant: "zeta"}); err != nil || len(none.Items) != 0 {
		t.Errorf("clusters of zeta: %+v, %v", none, err)
	}
	if _, err := f.Clusters(t.Context(), v1.ClusterQuery{Tenant: "nobody"}); code(err) != "tenant_unknown" {
		t.Errorf("clusters of a tenant that is none: %v", err)
	}
}

// TestPKeyRests deletes a cluster whose P_Key no port holds. The P_Key is given to another one after its rest only.
func TestPKeyRests(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.PKeyLast = 1 })
	f.create(t, "acme", "c1")
	if err := f.DeleteCluster(t.Context(), "alice", "c1"); err != nil {
		t.Fatal(err)
	}
	q, err := f.QuarantinedPKeys(t.Context(), v1.PageQuery{})
	if err != nil || len(q.Items) != 1 || q.Items[0].PKey != 1 {
		t.Errorf("quarantined: %+v, %v", q, err)
	}
	again := v1.NewCluster{Name: "c2", Tenant: "acme"}
	if _, err := f.CreateCluster(t.Context(), "alice", again); code(err) != "pkeys_exhausted" {
		t.Errorf("a P_Key that rests: %q", code(err))
	}
	f.clock = f.clock.Add(time.Minute)
	if c, err := f.CreateCluster(t.Context(), "alice", again); err != nil || c.PKey != 1 {
		t.Errorf("after the rest: %+v, %v", c, err)
	}
}

// TestRoomDecides: a cluster uses another one only if Options.Room does not refuse.
func TestRoomDecides(t *testing.T) {
	f := newFixture(t)
	f.create(t, "acme", "red", "store")
	f.full = refusal.New(refusal.Conflict, "capacity", "", "no room")
	if _, err := f.Use(t.Context(), "alice", "red", "store", v1.ClusterUse{}); code(err) != "capacity" {
		t.Errorf("without room: %q", code(err))
	}
	f.full = nil
	if c, err := f.Use(t.Context(), "alice", "red", "store", v1.ClusterUse{}); err != nil || len(c.Uses) != 1 {
		t.Errorf("with room: %+v, %v", c, err)
	}
}

// TestRefusalsAreLimited: a credential that reaches for another's cluster is recorded once a minute.
func TestRefusalsAreLimited(t *testing.T) {
	f := newFixture(t)
	f.create(t, "acme", "c1")
	within := Within(t.Context(), &Scope{PKeys: Ranges{ib.PKeyRange{First: 3, Last: 4}}})
	for range 3 {
		if err := f.DeleteCluster(within, "slurm", "c1"); code(err) != codeOutOfScope {
			t.Fatalf("deletion out of scope: %q", code(err))
		}
	}
	l, err := audit.Book{Store: f.store}.List(t.Context(), v1.AuditQuery{Actor: "slurm"})
	if err != nil || len(l.Items) != 1 || l.Items[0].Code != codeOutOfScope || l.Items[0].Action != "cluster.delete" {
		t.Errorf("audit log: %+v, %v", l, err)
	}
}
