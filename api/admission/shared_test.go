package admission

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/refusal"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// code is that of a refusal, "" for none.
func code(err error) string {
	var e *refusal.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// limitedKeys lists the P_Keys of which a host's grants in force make limited members.
func (l *lab) limitedKeys(host string) (out []ib.PKey) {
	l.t.Helper()
	grants, _, err := records.Grants().List(l.ctx(), l.fabric.store, "")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, g := range grants {
		k, err := records.ParseKey(g.Key)
		if err != nil {
			l.t.Fatal(err)
		}
		if g.Value.Host == host && g.Value.Limited && !g.Value.Withdrawn && !slices.Contains(out, k.PKey) {
			out = append(out, k.PKey)
		}
	}
	return out
}

// TestSharedCluster: hosts of a cluster become limited members of one that it uses, its
// own hosts full ones, and all of it ends when it is used no longer.
func TestSharedCluster(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(3)
	l.tenantWithClusters("red", "blue")
	shared, err := l.svc.Tenancy().CreateCluster(l.ctx(), "alice", v1.NewCluster{Name: "store", Tenant: "acme", Shared: true})
	if err != nil || !shared.Shared {
		t.Fatalf("%+v, %v", shared, err)
	}
	l.admit("host-1", "red")
	l.admit("host-2", "store")
	use := func(cluster, with string, how v1.ClusterUse) string {
		_, err := l.svc.Tenancy().Use(l.ctx(), "alice", cluster, with, how)
		return code(err)
	}
	for _, tt := range []struct {
		cluster, with, membership, want string
	}{
		{"red", "blue", "", "cluster_not_shared"},
		{"store", "store", "", "cluster_shared"},
		{"red", "store", v1.MembershipFull, "full_membership_refused"},
		{"red", "none", "", "cluster_unknown"},
		{"red", "store", v1.MembershipLimited, ""},
		{"red", "store", "", ""},
	} {
		if got := use(tt.cluster, tt.with, v1.ClusterUse{Membership: tt.membership}); got != tt.want {
			t.Errorf("%s uses %s as %q: %q, want %q", tt.cluster, tt.with, tt.membership, got, tt.want)
		}
	}
	l.settle()
	l.fabric.program(t)
	l.settle()
	if got := l.limitedKeys("host-1"); len(got) != 1 || got[0] != shared.PKey.Base() {
		t.Errorf("host-1 is a limited member of %v, want %v", got, shared.PKey)
	}
	if got := l.limitedKeys("host-2"); len(got) != 0 {
		t.Errorf("the server is a limited member of %v", got)
	}
	if p := l.host("host-1").Status.Phase; p != v1.PhaseAdmitted {
		t.Errorf("host-1 is %s", p)
	}
	if got := code(l.svc.Tenancy().DeleteCluster(l.ctx(), "alice", "store")); got != "cluster_in_use" {
		t.Errorf("a cluster that is used is deleted: %q", got)
	}
	if _, err := l.svc.Tenancy().StopUse(l.ctx(), "alice", "red", "store"); err != nil {
		t.Fatal(err)
	}
	l.settle()
	l.fabric.program(t)
	l.settle()
	if got := l.limitedKeys("host-1"); len(got) != 0 || l.host("host-1").Status.Phase != v1.PhaseAdmitted {
		t.Errorf("host-1 is %s, and a limited member of %v that it does not use", l.host("host-1").Status.Phase, got)
	}
}

// TestNoRoomForShared: a cluster does not come to use another one if that would cost one
// of its hosts what it has.
func TestNoRoomForShared(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(1)
	l.tenantWithClusters("red")
	if _, err := l.svc.Tenancy().CreateCluster(l.ctx(), "alice", v1.NewCluster{Name: "store", Tenant: "acme", Shared: true}); err != nil {
		t.Fatal(err)
	}
	l.admit("host-1", "red")
	for _, p := range l.ports("host-1") {
		l.fabric.show(t, p.GUID, records.Port{Place: p.Cable, HCACap: 32, SwitchCap: 2})
	}
	_, err := l.svc.Tenancy().Use(l.ctx(), "alice", "red", "store", v1.ClusterUse{})
	if code(err) != "capacity" || !strings.Contains(err.Error(), "host-1") {
		t.Errorf("refused as %q: %v", code(err), err)
	}
}

// TestScope: a credential with ranges of P_Keys gets one of those, may name one that is
// free, and changes nothing elsewhere; reaching for more is in the audit log.
func TestScope(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(2)
	l.tenantWithClusters("red")
	l.admit("host-1", "red")
	within := tenancy.Within(l.ctx(), &tenancy.Scope{PKeys: tenancy.Ranges{{First: 0x100, Last: 0x101}}, Hosts: []string{"host-2"}})
	key := func(k ib.PKey) *ib.PKey { return &k }
	if _, err := l.svc.Tenancy().CreateTenant(within, "slurm", v1.NewTenant{Name: "jobs"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		key  *ib.PKey
		want string
	}{
		{"a", nil, ""},
		{"b", key(0x101), ""},
		{"c", key(0x8101), "p_key_used"},
		{"c", key(0x0001), "p_key_out_of_scope"},
		{"c", key(0x7FFF), "p_key_reserved"},
		{"c", nil, "pkeys_exhausted"},
	} {
		c, err := l.svc.Tenancy().CreateCluster(within, "slurm", v1.NewCluster{Name: tt.name, Tenant: "jobs", PKey: tt.key})
		if code(err) != tt.want || err == nil && (c.PKey < 0x100 || c.PKey > 0x101) {
			t.Errorf("cluster %s with P_Key %v: %+v, %q, want %q", tt.name, tt.key, c, code(err), tt.want)
		}
	}
	if _, err := l.svc.Tenancy().CreateCluster(l.ctx(), "bob", v1.NewCluster{Name: "d", Tenant: "acme", PKey: key(0x200)}); code(err) != "p_key_out_of_scope" {
		t.Errorf("a credential without a range names a P_Key: %q", code(err))
	}
	_, assigned := l.svc.Assign(within, "slurm", "host-2", v1.Assignment{Cluster: "red"})
	_, released := l.svc.Release(within, "slurm", "host-1")
	for what, err := range map[string]error{"assign": assigned, "release": released, "delete": l.svc.Tenancy().DeleteCluster(within, "slurm", "red")} {
		if code(err) != "p_key_out_of_scope" {
			t.Errorf("%s elsewhere: %q", what, code(err))
		}
	}
	if _, err := l.svc.Assign(l.ctx(), "bob", "host-2", v1.Assignment{Cluster: "red", PKey: key(0x101)}); code(err) != "cluster_changed" {
		t.Errorf("assigned to a cluster that has another P_Key than was meant: %q", code(err))
	}
	entries, _, err := audit.Entries().List(l.ctx(), l.store, "")
	if err != nil {
		t.Fatal(err)
	}
	noted := map[string]bool{}
	for _, e := range entries {
		if e.Value.Actor == "slurm" && e.Value.Code == "p_key_out_of_scope" {
			noted[e.Value.Action] = true
		}
	}
	for _, action := range []string{"cluster.create", "host.assign", "host.release", "cluster.delete"} {
		if !noted[action] {
			t.Errorf("the audit log has no refused %s of slurm", action)
		}
	}
}
