package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// quota sets how many hosts tenant acme may have.
func (l *lab) quota(hosts int) {
	l.t.Helper()
	if _, err := l.svc.Tenancy().SetQuota(l.ctx(), "alice", "acme", v1.TenantQuota{Hosts: &hosts}); err != nil {
		l.t.Fatal(err)
	}
}

// wantUse compares what tenant acme has.
func (l *lab) wantUse(hosts, releasing int) {
	l.t.Helper()
	got, err := l.svc.Tenancy().Tenant(l.ctx(), "acme")
	if err != nil || got.Use.Hosts != hosts || got.Use.Releasing != releasing {
		l.t.Errorf("acme has %+v, %v, want %d hosts, %d of them being released", got, err, hosts, releasing)
	}
}

// refusedBy returns the refusal to assign a host, "" if it was assigned.
func refusedBy(l *lab, host, cluster string) (code, detail string) {
	_, err := l.svc.Assign(l.ctx(), "alice", host, v1.Assignment{Cluster: cluster})
	if no, ok := errors.AsType[*refusal.Error](err); ok {
		return no.Code, no.Detail
	}
	return fmt.Sprint(err), ""
}

// TestQuotaHoldsUntilReleaseIsProven: a host that was released counts until its switch ports were read back. One that never had a
// grant counts no longer at once, and to open the window of a host that is assigned takes no room.
func TestQuotaHoldsUntilReleaseIsProven(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(3)
	l.tenantWithClusters("c1", "c2")
	l.quota(1)
	l.assign("host-2", "c2")
	l.wantUse(1, 0)
	l.assign("host-2", "c2")
	if code, _ := refusedBy(l, "host-1", "c1"); code != "quota_exceeded" {
		t.Fatalf("a second host in another cluster: %s", code)
	}
	l.release("host-2")
	l.wantUse(0, 0)

	l.admit("host-1", "c1")
	l.quota(0) // takes nothing away
	if p := l.host("host-1").Status.Phase; p != v1.PhaseAdmitted {
		t.Errorf("with a quota of none host-1 is %s", p)
	}
	l.quota(1)
	l.release("host-1")
	l.wantUse(1, 1)
	code, detail := refusedBy(l, "host-3", "c2")
	if code != "quota_exceeded" || !strings.Contains(detail, "1 of them released and not proven absent") {
		t.Errorf("while a host is being released: %s, %s", code, detail)
	}
	l.fabric.silent[l.ports("host-1")[0].GUID] = true // the switch port is what counts
	l.fabric.program(t)
	l.settle()
	l.wantUse(0, 0)
	l.assign("host-3", "c2")
	l.wantUse(1, 0)
}

// TestLeavingIsDerived: a state of an earlier release does not have which hosts are being released. They are counted once the
// service has begun, and what is left over of a host that has nothing is dropped.
func TestLeavingIsDerived(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(3)
	l.tenantWithClusters("c1")
	l.admit("host-1", "c1")
	l.release("host-1")
	l.change(func(tx *store.Tx) error {
		tenancy.LeavingHosts().Delete(tx, "host-1")
		return errors.Join(
			tenancy.LeavingHosts().Put(tx, "host-2", tenancy.Leaving{Tenant: "acme"}),
			tenancy.LeavingHosts().Put(tx, "host-3", tenancy.Leaving{Tenant: "acme"}))
	})
	l.assign("host-3", "c1")
	l.wantUse(2, 1) // host-2, which has nothing, instead of host-1
	l.restart()
	l.settle()
	l.wantUse(2, 1)
	all, _, err := tenancy.LeavingHosts().List(t.Context(), l.store, "")
	if err != nil || len(all) != 1 || all[0].Key != "host-1" || all[0].Value.Tenant != "acme" {
		t.Errorf("recorded are %+v, %v, want host-1", all, err)
	}
	l.fabric.program(t)
	l.settle()
	l.wantUse(1, 0)
}

// TestAssignedAtOnce has several instances assign hosts to clusters of one tenant at the same time: just as many are as it may have.
func TestAssignedAtOnce(t *testing.T) {
	const hosts, most = 8, 3
	l := newLab(t, member.Open(t))
	l.addHosts(hosts)
	l.tenantWithClusters("c1", "c2", "c3")
	l.quota(most)
	errs := make(chan error, hosts)
	for i := range hosts {
		o := l.svc.o
		o.Store = l.store.Twin()
		s := New(o)
		go func() {
			_, err := s.Assign(l.ctx(), "alice", fmt.Sprint("host-", i+1), v1.Assignment{Cluster: fmt.Sprint("c", i%3+1)})
			errs <- err
		}()
	}
	assigned := 0
	for range hosts {
		err := <-errs
		no, refused := errors.AsType[*refusal.Error](err)
		switch {
		case err == nil:
			assigned++
		case !refused || no.Code != "quota_exceeded":
			t.Error(err)
		}
	}
	if assigned != most {
		t.Errorf("%d hosts were assigned, want %d", assigned, most)
	}
	l.wantUse(most, 0)
}

func (l *lab) release(host string) {
	l.t.Helper()
	if _, err := l.svc.Release(l.ctx(), "alice", host); err != nil {
		l.t.Fatal(err)
	}
}

// change writes past the service.
func (l *lab) change(fn func(tx *store.Tx) error) {
	l.t.Helper()
	if _, err := l.store.Update(l.ctx(), fn); err != nil {
		l.t.Fatal(err)
	}
}

// BenchmarkQuota asks for room for a host, and shows all tenants, at a site of 10,368 hosts: all of one tenant, and those of 1,000.
func BenchmarkQuota(b *testing.B) {
	const hosts = 10368
	for _, tenants := range []int{1, 1000} {
		s := member.Open(b)
		if _, err := s.Update(b.Context(), func(tx *store.Tx) (err error) {
			for i := range tenants {
				name := fmt.Sprint("tenant-", i)
				c := tenancy.Cluster{Name: "of-" + name, Tenant: name}
				for j := i; j < hosts; j += tenants {
					c.Hosts = append(c.Hosts, fmt.Sprintf("compute-%05d", j))
				}
				err = errors.Join(err, tenancy.Clusters().Put(tx, c.Name, c), tenancy.PKeys().Put(tx, fmt.Sprintf("0x%04x", i+1), tenancy.PKeyRecord{State: tenancy.PKeyUsed, Cluster: c.Name, Tenant: name}),
					tenancy.Tenants().Put(tx, name, tenancy.Tenant{Name: name, Clusters: []string{c.Name}, Quota: &v1.TenantQuota{Hosts: new(hosts + 1)}}))
			}
			return err
		}); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint("room/", tenants), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Update(b.Context(), func(tx *store.Tx) error { return tenancy.RoomForHost(b.Context(), tx, "tenant-0") }); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint("list/", tenants), func(b *testing.B) {
			svc := newLab(b, s).svc.Tenancy()
			for b.Loop() {
				if l, err := svc.Tenants(b.Context(), v1.TenantQuery{}); err != nil || len(l.Items) != tenants {
					b.Fatal(err)
				}
			}
		})
	}
}
