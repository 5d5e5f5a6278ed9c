package tenancy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// of returns the context of a credential that is confined to tenants.
func of(ctx context.Context, tenants ...string) context.Context {
	return Within(ctx, &Scope{Tenants: tenants})
}

// owners makes tenants that may have n clusters.
func (f *fixture) owners(t *testing.T, n int, tenants ...string) {
	t.Helper()
	for _, name := range tenants {
		f.create(t, name)
		f.setQuota(t, name, v1.TenantQuota{Clusters: &n, PKeys: &n})
	}
}

// TestOwnNames: two tenants each have a "train". Each reaches its own by either name, and none reaches another's.
func TestOwnNames(t *testing.T) {
	f := newFixture(t)
	f.owners(t, 2, "physics", "chem")
	physics, chem, both := of(t.Context(), "physics"), of(t.Context(), "chem"), of(t.Context(), "chem", "physics")
	p, err := f.CreateCluster(physics, "pia", v1.NewCluster{Name: "train"})
	if err != nil || p.Name != "physics.train" || p.Tenant != "physics" {
		t.Fatalf("created: %+v, %v", p, err)
	}
	c, err := f.CreateCluster(chem, "cem", v1.NewCluster{Name: "chem.train", Tenant: "chem"})
	if err != nil || c.Name != "chem.train" || c.PKey == p.PKey {
		t.Fatalf("created: %+v, %v", c, err)
	}
	for _, r := range []struct {
		ctx  context.Context
		name string
		want string // "": there is none
	}{
		{physics, "train", "physics.train"},
		{physics, "physics.train", "physics.train"},
		{physics, "chem.train", ""},
		{chem, "train", "chem.train"},
		{chem, "physics.train", ""},
		{both, "train", ""},
		{both, "chem.train", "chem.train"},
		{both, "physics.train", "physics.train"},
		{t.Context(), "train", ""},
		{t.Context(), "chem.train", "chem.train"},
	} {
		got, err := f.Cluster(r.ctx, r.name)
		if r.want == "" && code(err) != codeNoCluster || r.want != "" && (err != nil || got.Name != r.want) {
			t.Errorf("%v asks for %s: %+v, %v, want %q", scopeOf(r.ctx), r.name, got, err, r.want)
		}
		labels, err := f.ClusterLabels().Labels(r.ctx, r.name)
		if (err == nil) != (r.want != "") || err == nil && !strings.HasPrefix(labels.Version, got.Version) {
			t.Errorf("%v asks for labels of %s: %+v, %v", scopeOf(r.ctx), r.name, labels, err)
		}
	}
	if l, err := f.Clusters(t.Context(), v1.ClusterQuery{}); err != nil || len(l.Items) != 2 || l.Items[0].Name != "chem.train" {
		t.Errorf("an operator lists %+v, %v", l, err)
	}
	if err := f.DeleteCluster(chem, "cem", "physics.train"); code(err) != codeNoCluster {
		t.Errorf("another's is deleted: %v", err)
	}
	if err := f.DeleteCluster(physics, "pia", "train"); err != nil {
		t.Error(err)
	}
	if _, err := f.Cluster(chem, "train"); err != nil {
		t.Errorf("the other one is gone, too: %v", err)
	}
	l, err := audit.Book{Store: f.store}.List(t.Context(), v1.AuditQuery{Action: "cluster.delete"})
	if err != nil || len(l.Items) != 2 || l.Items[0].Actor != "cem" || l.Items[0].Code != codeNoCluster || l.Items[1].Object != "cluster/physics.train" || l.Items[1].Actor != "pia" {
		t.Errorf("audit log: %+v, %v", l, err)
	}
}

// TestWhatATenantMayNotCreate: each refusal has its code, says what to do, and leaves nothing behind.
func TestWhatATenantMayNotCreate(t *testing.T) {
	f := newFixture(t)
	f.owners(t, 2, "physics", "chem")
	f.create(t, "free")
	f.create(t, "old", "legacy")
	f.setQuota(t, "old", v1.TenantQuota{Clusters: new(9), PKeys: new(9)})
	physics, k := of(t.Context(), "physics"), ib.PKey(2)
	for _, r := range []struct {
		ctx  context.Context
		n    v1.NewCluster
		want string
	}{
		{physics, v1.NewCluster{Name: "a", Tenant: "chem"}, codeNoTenant},
		{physics, v1.NewCluster{Name: "chem.a", Tenant: "chem"}, codeNoTenant},
		{physics, v1.NewCluster{Name: "chem.a"}, codeNoTenant},
		{physics, v1.NewCluster{Name: "nobody.a"}, codeNoTenant},
		{physics, v1.NewCluster{Name: "chem.a", Tenant: "physics"}, codeNamesTenant},
		{t.Context(), v1.NewCluster{Name: "chem.a", Tenant: "physics"}, codeNamesTenant},
		{t.Context(), v1.NewCluster{Name: "a"}, "tenant_missing"},
		{of(t.Context(), "physics", "chem"), v1.NewCluster{Name: "a"}, "tenant_missing"},
		{of(t.Context(), "physics", "chem"), v1.NewCluster{Name: "a", Tenant: "chem"}, "cluster_name_short"},
		{physics, v1.NewCluster{Name: "a.b.c"}, codeName},
		{physics, v1.NewCluster{Name: "a", Tenant: "a.b"}, codeName},
		{physics, v1.NewCluster{Name: "a", Shared: true}, codeOperators},
		{physics, v1.NewCluster{Name: "a", Labels: map[string]string{"env": "prod"}}, codeOperators},
		{physics, v1.NewCluster{Name: "a", Set: "prod"}, codeOperators},
		{physics, v1.NewCluster{Name: "a", PKey: &k}, codeOutOfScope},
		{of(t.Context(), "free"), v1.NewCluster{Name: "a"}, codeNoQuota},
		{of(t.Context(), "old"), v1.NewCluster{Name: "legacy"}, codeExists},
		{of(t.Context(), "old"), v1.NewCluster{Name: "old.legacy"}, codeExists},
	} {
		c, err := f.CreateCluster(r.ctx, "pia", r.n)
		if code(err) != r.want {
			t.Errorf("%+v: %+v, %v, want %s", r.n, c, err, r.want)
			continue
		}
		if no, _ := errors.AsType[*refusal.Error](err); no.Hint == "" || no.Detail == "" {
			t.Errorf("%+v: no cure: %+v", r.n, no)
		}
	}
	for _, q := range []v1.TenantQuota{{Clusters: new(1)}, {PKeys: new(1)}, {Hosts: new(1)}} {
		f.setQuota(t, "free", q)
		if _, err := f.CreateCluster(of(t.Context(), "free"), "pia", v1.NewCluster{Name: "a"}); code(err) != codeNoQuota {
			t.Errorf("with a quota of %s: %v", describe(&q), err)
		}
	}
	if l, err := f.Clusters(t.Context(), v1.ClusterQuery{}); err != nil || len(l.Items) != 1 {
		t.Errorf("clusters: %+v, %v", l, err)
	}
	if _, err := f.CreateCluster(t.Context(), "olga", v1.NewCluster{Name: "physics.big", Shared: true, Set: "prod", Labels: map[string]string{"a": "b"}}); err != nil {
		t.Errorf("an operator creates a name of a tenant: %v", err)
	}
	if _, err := f.CreateCluster(t.Context(), "olga", v1.NewCluster{Name: "big", Tenant: "physics"}); code(err) != codeExists {
		t.Errorf("an operator creates the twin: %v", err)
	}
	if _, err := f.CreateCluster(t.Context(), "olga", v1.NewCluster{Name: "big", Tenant: "chem"}); err != nil {
		t.Errorf("of another tenant it is no twin: %v", err)
	}
}

// TestWhatATenantMayNotDelete: a shared cluster, of which it would learn who uses it, and a common name.
func TestWhatATenantMayNotDelete(t *testing.T) {
	f := newFixture(t)
	f.create(t, "disks", "store")
	f.create(t, "secret", "hidden")
	if _, err := f.Use(t.Context(), "olga", "hidden", "store", v1.ClusterUse{}); err != nil {
		t.Fatal(err)
	}
	f.create(t, "physics", "legacy")
	f.create(t, "tapes")
	if _, err := f.CreateCluster(t.Context(), "olga", v1.NewCluster{Name: "tapes.store", Shared: true}); err != nil {
		t.Fatal(err)
	}
	for tenant, cluster := range map[string]string{"disks": "store", "physics": "legacy", "tapes": "tapes.store"} {
		err := f.DeleteCluster(of(t.Context(), tenant), "pia", cluster)
		if code(err) != codeOperators || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s of %s is deleted: %v", cluster, tenant, err)
		}
		if _, err := f.Cluster(of(t.Context(), tenant), cluster); err != nil {
			t.Errorf("%s is gone: %v", cluster, err)
		}
	}
}

// TestPKeysOfATenant: a credential of a tenant gets no P_Key out of the ranges of others, names one within its own ranges alone, and does not learn
// why one is not free.
func TestPKeysOfATenant(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.PKeyLast = 9 })
	f.owners(t, 9, "physics")
	for _, n := range []v1.NewTenant{{Name: "low", PKeys: []string{"0x0001-0x0004"}}, {Name: "high", PKeys: []string{"0x0006-0x0008"}}} {
		if _, err := f.CreateTenant(t.Context(), "olga", n); err != nil {
			t.Fatal(err)
		}
		f.setQuota(t, n.Name, v1.TenantQuota{Clusters: new(9), PKeys: new(9)})
	}
	for _, want := range []ib.PKey{5, 9} {
		if c, err := f.CreateCluster(of(t.Context(), "physics"), "pia", v1.NewCluster{Name: fmt.Sprint("c", want)}); err != nil || c.PKey.Base() != want {
			t.Errorf("P_Key: %+v, %v, want %v", c, err, want)
		}
	}
	_, err := f.CreateCluster(of(t.Context(), "physics"), "pia", v1.NewCluster{Name: "more"})
	if code(err) != codeNoPKeys || err.Error() != "no P_Key is left for tenant physics" {
		t.Errorf("the ranges of others: %v", err)
	}
	high := of(t.Context(), "high")
	for k, want := range map[ib.PKey]string{7: "", 1: codeOutOfScope, 5: codeOutOfScope, 9: codeOutOfScope, 10: codeReserved, 0: codeReserved, 0x7fff: codeReserved} {
		if _, err := f.CreateCluster(high, "hanna", v1.NewCluster{Name: fmt.Sprintf("k%d", k), PKey: &k}); code(err) != want {
			t.Errorf("P_Key %v: %v, want %q", k, err, want)
		}
	}
	if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
		return PKeys().Put(tx, "0x0008", PKeyRecord{State: PKeyAdopted})
	}); err != nil {
		t.Fatal(err)
	}
	for _, k := range []ib.PKey{7, 8} {
		if _, err := f.CreateCluster(high, "hanna", v1.NewCluster{Name: "again", PKey: &k}); code(err) != "p_key_not_free" || err.Error() != fmt.Sprintf("P_Key %v is not free now", k) {
			t.Errorf("P_Key %v: %v", k, err)
		}
	}
}

// TestRestingPKeysCount: one that makes and deletes clusters in turn takes no more P_Keys than its quota has, nor entries of the audit
// log without end, also where P_Keys have no rest.
func TestRestingPKeysCount(t *testing.T) {
	for _, rest := range []time.Duration{-1, 10 * time.Minute} {
		f := newFixture(t, func(o *Options) { o.PKeyLast, o.PKeyMinAge = 100, rest })
		f.owners(t, 2, "physics")
		f.owners(t, 1, "chem")
		physics := of(t.Context(), "physics")
		turn := func(ctx context.Context) error {
			if _, err := f.CreateCluster(ctx, "pia", v1.NewCluster{Name: "physics.a"}); err != nil {
				return err
			}
			return f.DeleteCluster(ctx, "pia", "physics.a")
		}
		for i := range 2 {
			if err := turn(physics); err != nil {
				t.Fatalf("turn %d: %v", i, err)
			}
		}
		err := turn(physics)
		if code(err) != codeQuota || !strings.Contains(err.Error(), "may have 2 P_Keys and has 2, 2 of them of deleted clusters and given out again only after a rest") {
			t.Errorf("rest %v, a third turn: %v", rest, err)
		}
		if _, err := f.CreateCluster(of(t.Context(), "chem"), "cem", v1.NewCluster{Name: "a"}); err != nil {
			t.Errorf("those of another tenant count: %v", err)
		}
		f.clock = f.clock.Add(max(rest, leastRest) - 1)
		if err := turn(physics); code(err) != codeQuota {
			t.Errorf("rest %v, just before it ends: %v", rest, err)
		}
		if err := turn(t.Context()); err != nil {
			t.Errorf("of an operator: %v", err)
		}
		f.clock = f.clock.Add(1)
		if _, err := f.CreateCluster(physics, "pia", v1.NewCluster{Name: "b"}); err != nil {
			t.Errorf("rest %v, after it: %v", rest, err)
		}
	}
}

// TestQuarantinedPKeysCountForATenant: P_Keys of its deleted clusters that a port may still hold.
func TestQuarantinedPKeysCountForATenant(t *testing.T) {
	f := newFixture(t)
	f.owners(t, 1, "physics")
	physics := of(t.Context(), "physics")
	if _, err := f.CreateCluster(physics, "pia", v1.NewCluster{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	k := records.Key{GUID: 1, PKey: 1, Place: ib.Place{Switch: 0x10, Port: 1}}
	if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
		return records.Grants().Put(tx, k.String(), records.Grant{Host: "h1", Cluster: "physics.a", Tenant: "physics", Withdrawn: true})
	}); err != nil {
		t.Fatal(err)
	}
	if err := f.DeleteCluster(physics, "pia", "a"); err != nil {
		t.Fatal(err)
	}
	f.clock = f.clock.Add(time.Hour)
	if _, err := f.CreateCluster(physics, "pia", v1.NewCluster{Name: "b"}); code(err) != codeQuota || !strings.Contains(err.Error(), "1 of them of deleted clusters and not proven absent") {
		t.Errorf("a P_Key that is quarantined: %v", err)
	}
}

// TestTenantsInTurn has several instances make clusters of one tenant at once, with names that are each other's twins too: just as
// many are made as it may have, and no two that a credential of it would call the same.
func TestTenantsInTurn(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.PKeyLast = 100 })
	f.owners(t, 3, "physics")
	const callers = 12
	errs := make(chan error, callers)
	for i := range callers {
		s := New(f.o)
		s.o.Store = f.store.Twin()
		ctx, n := of(t.Context(), "physics"), v1.NewCluster{Name: fmt.Sprint("c", i/2), Tenant: "physics"}
		if i%2 == 1 {
			ctx = t.Context()
		}
		go func() {
			_, err := s.CreateCluster(ctx, "pia", n)
			errs <- err
		}()
	}
	for range callers {
		if err := <-errs; code(err) != "" && code(err) != codeQuota && code(err) != codeExists {
			t.Error(err)
		}
	}
	l, err := f.Clusters(t.Context(), v1.ClusterQuery{})
	if err != nil || len(l.Items) != 3 {
		t.Fatalf("clusters: %+v, %v", l, err)
	}
	seen := map[string]bool{}
	for _, c := range l.Items {
		own := strings.TrimPrefix(c.Name, "physics.")
		if seen[own] {
			t.Errorf("two clusters are called %s", own)
		}
		seen[own] = true
	}
}

// nameModel is what there is, as a map, and how names are meant.
type nameModel map[string]string // tenant by full name

// meant returns the cluster that a credential means by a text; "": none.
func (m nameModel) meant(tenants []string, text string) string {
	names := []string{text}
	if len(tenants) == 1 {
		names = append(names, tenants[0]+"."+text)
	}
	for _, n := range names {
		for _, t := range tenants {
			if m[n] == t {
				return n
			}
		}
		if tenants == nil && m[n] != "" {
			return n
		}
	}
	return ""
}

// TestNamesAsInTheModel compares the service with the model over sequences of requests of credentials of all sorts.
func TestNamesAsInTheModel(outer *testing.T) {
	tenants := []string{"a", "b", "a-b"}
	rapid.Check(outer, func(t *rapid.T) {
		f := newFixture(outer, func(o *Options) { o.PKeyLast, o.PKeyMinAge = 0x7ffe, -1 })
		for _, name := range tenants {
			_, err := f.CreateTenant(context.Background(), "olga", v1.NewTenant{Name: name})
			_, failed := f.SetQuota(context.Background(), "olga", name, v1.TenantQuota{Clusters: new(1000), PKeys: new(1000)})
			if err := errors.Join(err, failed); err != nil {
				t.Fatal(err)
			}
		}
		m := nameModel{}
		text := rapid.OneOf(
			rapid.SampledFrom([]string{"x", "y", "a", "b"}),
			rapid.Custom(func(t *rapid.T) string {
				return rapid.SampledFrom(append(tenants, "none")).Draw(t, "prefix") + "." + rapid.SampledFrom([]string{"x", "y", "a", "b"}).Draw(t, "own")
			}))
		who := rapid.SampledFrom([][]string{nil, {"a"}, {"b"}, {"a-b"}, {"a", "b"}, {"none"}})
		for range rapid.IntRange(1, 40).Draw(t, "requests") {
			cred, name := who.Draw(t, "credential"), text.Draw(t, "name")
			ctx := context.Background()
			if cred != nil {
				ctx = of(ctx, cred...)
			}
			was := m.meant(cred, name)
			switch rapid.SampledFrom([]string{"get", "create", "delete", "list"}).Draw(t, "request") {
			case "get":
				c, err := f.Cluster(ctx, name)
				if was == "" && (code(err) != codeNoCluster || err.Error() != fmt.Sprintf("no cluster %q", name)) || was != "" && (err != nil || c.Name != was || c.Tenant != m[was]) {
					t.Fatalf("%v gets %s: %+v, %v, want %q", cred, name, c, err, was)
				}
			case "create":
				tenant := rapid.SampledFrom(tenants).Draw(t, "tenant")
				c, err := f.CreateCluster(ctx, "pia", v1.NewCluster{Name: name, Tenant: tenant})
				full, may := m.creates(cred, name, tenant)
				if may != (err == nil) || may && (c.Name != full || c.Tenant != tenant) {
					t.Fatalf("%v creates %s of %s: %+v, %v, want %q %v", cred, name, tenant, c, err, full, may)
				}
				if may {
					m[full] = tenant
				}
			case "delete":
				err := f.DeleteCluster(ctx, "pia", name)
				switch {
				case was == "" && code(err) == codeNoCluster:
				case was != "" && cred != nil && !strings.Contains(was, ".") && code(err) == codeOperators:
				case was != "" && err == nil:
					delete(m, was)
				default:
					t.Fatalf("%v deletes %s: %v, and it means %q", cred, name, err, was)
				}
			case "list":
				l, err := f.Clusters(ctx, v1.ClusterQuery{})
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range l.Items {
					if m[c.Name] != c.Tenant || m.meant(cred, c.Name) != c.Name {
						t.Fatalf("%v lists %s of %s, which it does not have or cannot ask for", cred, c.Name, c.Tenant)
					}
				}
				have := 0
				for n := range m {
					if m.meant(cred, n) == n {
						have++
					}
				}
				if len(l.Items) != have {
					t.Fatalf("%v lists %d clusters of %v", cred, len(l.Items), m)
				}
			}
		}
	})
}

// creates returns the full name that a request makes, and whether it may.
func (m nameModel) creates(cred []string, name, tenant string) (string, bool) {
	prefix, own, dotted := strings.Cut(name, ".")
	if !dotted {
		own = name
	}
	full := name
	switch {
	case dotted && prefix != tenant:
		return "", false
	case len(cred) == 1 && cred[0] == tenant:
		full = tenant + "." + own
	case len(cred) == 2 && dotted && (cred[0] == tenant || cred[1] == tenant):
	case cred != nil:
		return "", false
	}
	return full, m[full] == "" && (full != own || m[tenant+"."+own] == "") && m[own] != tenant
}
