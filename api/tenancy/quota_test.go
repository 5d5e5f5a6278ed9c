package tenancy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/ifmatch"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// setQuota sets a quota and returns the tenant with it.
func (f *fixture) setQuota(t *testing.T, tenant string, q v1.TenantQuota) *v1.Tenant {
	t.Helper()
	out, err := f.SetQuota(t.Context(), "alice", tenant, q)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// fill puts hosts into a cluster, as admission does, without asking for room.
func (f *fixture) fill(t *testing.T, cluster string, hosts ...string) {
	t.Helper()
	if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error { return put(t.Context(), tx, cluster, hosts...) }); err != nil {
		t.Fatal(err)
	}
}

// put adds hosts to a cluster.
func put(ctx context.Context, tx *store.Tx, cluster string, hosts ...string) error {
	c, err := FindCluster(ctx, tx, cluster)
	if err != nil {
		return err
	}
	c.Hosts = append(slices.Clone(c.Hosts), hosts...)
	return Clusters().Put(tx, cluster, c)
}

// room asks for room for a host of a tenant, and changes nothing.
func (f *fixture) room(t *testing.T, tenant string) error {
	t.Helper()
	_, err := f.store.Update(t.Context(), func(tx *store.Tx) error { return RoomForHost(t.Context(), tx, tenant) })
	return err
}

// addsHost reports the refusal of a host that is added to a cluster, in a transaction as admission has it.
func addsHost(ctx context.Context, s *store.Store, cluster, host string, between func()) error {
	_, err := s.Update(ctx, func(tx *store.Tx) error {
		c, err := FindCluster(ctx, tx, cluster)
		if err != nil {
			return err
		}
		if err := RoomForHost(ctx, tx, c.Tenant); err != nil {
			return err
		}
		between()
		return put(ctx, tx, cluster, host)
	})
	return err
}

// TestHostsAreBounded: hosts of all clusters of a tenant count, those that are being released too, and those of others do not.
func TestHostsAreBounded(t *testing.T) {
	f := newFixture(t)
	f.create(t, "acme", "c1", "store")
	f.create(t, "zeta", "z1")
	f.fill(t, "c1", "h1")
	f.fill(t, "store", "h2")
	f.fill(t, "z1", "h3", "h4", "h5")
	if err := f.room(t, "acme"); err != nil {
		t.Errorf("without a quota: %v", err)
	}
	f.setQuota(t, "acme", v1.TenantQuota{Hosts: new(3)})
	if err := f.room(t, "acme"); err != nil {
		t.Errorf("2 of 3: %v", err)
	}
	if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
		return errors.Join(LeavingHosts().Put(tx, "h6", Leaving{Tenant: "acme"}), LeavingHosts().Put(tx, "h7", Leaving{Tenant: "zeta"}))
	}); err != nil {
		t.Fatal(err)
	}
	no, ok := errors.AsType[*refusal.Error](f.room(t, "acme"))
	if !ok || no.Code != codeQuota || no.Status != refusal.Conflict {
		t.Fatalf("2 and one that is being released, of 3: %v", no)
	}
	if want := "tenant acme may have 3 hosts and has 3, 1 of them released and not proven absent from their switch ports yet: one more is refused"; no.Detail != want {
		t.Errorf("the refusal says %q, want %q", no.Detail, want)
	}
	if !strings.Contains(no.Hint, "portcullis tenant quota acme --hosts N") {
		t.Errorf("the cure is %q", no.Hint)
	}
	if err := f.room(t, "zeta"); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	got, err := f.Tenant(t.Context(), "acme")
	if want := (v1.TenantUse{Hosts: 3, Releasing: 1, Clusters: 2, PKeys: 2}); err != nil || got.Use != want {
		t.Errorf("acme has %+v, %v, want %+v", got.Use, err, want)
	}
	all, err := f.Tenants(t.Context(), v1.TenantQuery{})
	if err != nil || len(all.Items) != 2 || all.Items[0].Use != got.Use || all.Items[1].Use != (v1.TenantUse{Hosts: 4, Releasing: 1, Clusters: 1, PKeys: 1}) {
		t.Errorf("listed: %+v, %v", all, err)
	}
}

// TestHostsInTurn lets two instances add a host to two clusters of a tenant at the same time, where there is room for one: the
// second reads before the first has committed, and is refused when it tries again. Nothing but the clusters is changed.
func TestHostsInTurn(t *testing.T) {
	f := newFixture(t)
	f.create(t, "acme", "c1", "c2")
	f.setQuota(t, "acme", v1.TenantQuota{Hosts: new(1)})
	var meanwhile sync.Once
	err := addsHost(t.Context(), f.store, "c1", "h1", func() {
		meanwhile.Do(func() {
			if err := addsHost(t.Context(), f.store.Twin(), "c2", "h2", func() {}); err != nil {
				t.Error(err)
			}
		})
	})
	if code(err) != codeQuota {
		t.Errorf("a second host: %v", err)
	}
	if got, err := f.Tenant(t.Context(), "acme"); err != nil || got.Use.Hosts != 1 {
		t.Errorf("acme has %+v, %v, want 1 host", got.Use, err)
	}
}

// TestLoweredMeanwhile: a quota that is lowered after it was read refuses the host that was on its way.
func TestLoweredMeanwhile(t *testing.T) {
	f := newFixture(t)
	f.create(t, "acme", "c1")
	var meanwhile sync.Once
	other := New(f.o)
	other.o.Store = f.store.Twin()
	err := addsHost(t.Context(), f.store, "c1", "h1", func() {
		meanwhile.Do(func() {
			if _, err := other.SetQuota(t.Context(), "alice", "acme", v1.TenantQuota{Hosts: new(0)}); err != nil {
				t.Error(err)
			}
		})
	})
	if code(err) != codeQuota {
		t.Errorf("with a quota of none: %v", err)
	}
}

// TestClustersAtOnce has several instances make clusters of one tenant at the same time: just as many are made as it may have.
func TestClustersAtOnce(t *testing.T) {
	for name, q := range map[string]v1.TenantQuota{"clusters": {Clusters: new(3)}, "P_Keys": {PKeys: new(3)}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *Options) { o.PKeyLast = 100 })
			f.create(t, "acme")
			f.setQuota(t, "acme", q)
			const callers = 12
			errs := make(chan error, callers)
			for i := range callers {
				s := New(f.o)
				s.o.Store = f.store.Twin()
				go func() {
					_, err := s.CreateCluster(t.Context(), "alice", v1.NewCluster{Name: fmt.Sprint("c", i), Tenant: "acme"})
					errs <- err
				}()
			}
			made := 0
			for range callers {
				switch err := <-errs; code(err) {
				case "":
					made++
				case codeQuota:
				default:
					t.Error(err)
				}
			}
			got, err := f.Tenant(t.Context(), "acme")
			if err != nil || made != 3 || got.Use.Clusters != 3 || got.Use.PKeys != 3 {
				t.Errorf("%d clusters were made, acme has %+v, %v", made, got.Use, err)
			}
		})
	}
}

// TestQuarantinedPKeysCount: the P_Key of a deleted cluster counts until it is proven absent, also where an earlier release wrote
// its record, which names no tenant.
func TestQuarantinedPKeysCount(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		f := newFixture(t)
		f.create(t, "acme", "c1")
		f.setQuota(t, "acme", v1.TenantQuota{PKeys: new(1), Clusters: new(1)})
		if _, err := f.CreateCluster(t.Context(), "alice", v1.NewCluster{Name: "c2", Tenant: "acme"}); code(err) != codeQuota || !strings.Contains(err.Error(), "may have 1 clusters") {
			t.Errorf("a second cluster: %v", err)
		}
		k := records.Key{GUID: 1, PKey: 1, Place: ib.Place{Switch: 0x10, Port: 1}}
		if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
			return records.Grants().Put(tx, k.String(), records.Grant{Host: "h1", Cluster: "c1", Tenant: "acme", Withdrawn: true})
		}); err != nil {
			t.Fatal(err)
		}
		if err := f.DeleteCluster(t.Context(), "alice", "c1"); err != nil {
			t.Fatalf("a deletion asks for no quota: %v", err)
		}
		if earlier {
			if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
				rec, err := PKeys().Get(t.Context(), tx, ib.PKey(1).String())
				rec.Value.Tenant = ""
				return errors.Join(err, PKeys().Put(tx, rec.Key, rec.Value))
			}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := f.CreateCluster(t.Context(), "alice", v1.NewCluster{Name: "c2", Tenant: "acme"})
		if code(err) != codeQuota || !strings.Contains(err.Error(), "may have 1 P_Keys and has 1, 1 of them of deleted clusters") {
			t.Errorf("earlier %v, while the P_Key is quarantined: %v", earlier, err)
		}
		if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
			records.Grants().Delete(tx, k.String())
			return f.FreePKey(t.Context(), tx, 1)
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.CreateCluster(t.Context(), "alice", v1.NewCluster{Name: "c2", Tenant: "acme"}); err != nil {
			t.Errorf("earlier %v, once it is proven absent: %v", earlier, err)
		}
	}
}

// TestLoweredQuota: a quota below what a tenant has takes nothing away, and says what exceeds it.
func TestLoweredQuota(t *testing.T) {
	f := newFixture(t)
	f.create(t, "acme", "c1", "c2")
	f.fill(t, "c1", "h1", "h2")
	got := f.setQuota(t, "acme", v1.TenantQuota{Hosts: new(1), Clusters: new(2), PKeys: new(0)})
	if want := []string{"hosts", "p_keys"}; !slices.Equal(got.Exceeded, want) || got.Use.Hosts != 2 || got.Use.Clusters != 2 {
		t.Errorf("the answer has %+v exceeded %v, want %v", got.Use, got.Exceeded, want)
	}
	if shown, err := f.Tenant(t.Context(), "acme"); err != nil || !slices.Equal(shown.Exceeded, got.Exceeded) || *shown.Quota.Hosts != 1 {
		t.Errorf("shown: %+v, %v", shown, err)
	}
	if code(f.room(t, "acme")) != codeQuota {
		t.Error("there is room for a third host")
	}
	if got = f.setQuota(t, "acme", v1.TenantQuota{}); got.Quota != nil || got.Exceeded != nil {
		t.Errorf("without bounds: %+v", got)
	}
	if err := f.room(t, "acme"); err != nil {
		t.Error(err)
	}
}

// TestQuotaIsAudited: the log has the quota before and after. The version of the tenant changes with it, and a request that names
// an earlier one does nothing. The same quota again is no change.
func TestQuotaIsAudited(t *testing.T) {
	f := newFixture(t)
	f.create(t, "acme")
	first, err := f.Tenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	second := f.setQuota(t, "acme", v1.TenantQuota{Hosts: new(4)})
	again := f.setQuota(t, "acme", v1.TenantQuota{Hosts: new(4)})
	if first.Version == second.Version || second.Version != again.Version {
		t.Errorf("versions %s, %s, %s", first.Version, second.Version, again.Version)
	}
	late := ifmatch.With(t.Context(), []string{first.Version})
	if _, err := f.SetQuota(late, "bob", "acme", v1.TenantQuota{}); !refusal.IsKind(err, refusal.Changed) {
		t.Errorf("a version that is past: %v", err)
	}
	if _, err := f.SetQuota(ifmatch.With(t.Context(), []string{second.Version}), "bob", "acme", v1.TenantQuota{Hosts: new(2), PKeys: new(8)}); err != nil {
		t.Error(err)
	}
	if _, err := f.SetQuota(t.Context(), "bob", "acme", v1.TenantQuota{Clusters: new(-1)}); code(err) != "quota_invalid" {
		t.Errorf("a negative number: %v", err)
	}
	if _, err := f.SetQuota(t.Context(), "bob", "nobody", v1.TenantQuota{}); code(err) != codeNoTenant {
		t.Errorf("no such tenant: %v", err)
	}
	l, err := audit.Book{Store: f.store}.List(t.Context(), v1.AuditQuery{Action: "tenant.quota"})
	if err != nil || len(l.Items) != 2 {
		t.Fatalf("%d entries, %v", len(l.Items), err)
	}
	says := []string{l.Items[0].Detail, l.Items[1].Detail}
	slices.Sort(says)
	if want := []string{"at most 2 hosts, at most 8 P_Keys; before: at most 4 hosts", "at most 4 hosts; before: no bounds"}; !slices.Equal(says, want) {
		t.Errorf("the log says %q, want %q", says, want)
	}
	for i := range l.Items {
		if len(l.Items[i].Before) == 0 || len(l.Items[i].After) == 0 {
			t.Errorf("entry without before or after: %+v", l.Items[i])
		}
	}
}
