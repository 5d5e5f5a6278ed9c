package admission

import (
	"errors"
	"strings"
	"testing"

	"portcullis/api/isolation/outsiders"
	"portcullis/api/refusal"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// passes has the newest examination find a port at which packets of P_Keys pass.
func (l *lab) passes(place ib.Place, keys ...ib.PKey) {
	l.t.Helper()
	f := &outsiders.Found{Begun: l.clock}
	if len(keys) > 0 {
		f.Outsiders = []outsiders.Outsider{{Port: outsiders.Port{Place: place, GUID: 0x77, Name: "h9", Party: "undeclared"}, PKeys: keys}}
	}
	if err := outsiders.Record(l.ctx(), l.store, f); err != nil {
		l.t.Fatal(err)
	}
}

// TestOpensPath: a host does not become a member, nor a cluster the user of a shared one, where a port that is no member passes
// the packets. Hosts that are members stay.
func TestOpensPath(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(3)
	l.tenantWithClusters("red", "blue")
	shared, err := l.svc.Tenancy().CreateCluster(l.ctx(), "alice", v1.NewCluster{Name: "store", Tenant: "acme", Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	red, err := l.svc.Tenancy().Cluster(l.ctx(), "red")
	if err != nil {
		t.Fatal(err)
	}
	l.admit("host-1", "red")
	far := ib.Place{Switch: 0xFA, Port: 9}
	l.passes(far, red.PKey.Full())
	code2, detail := refusedBy(l, "host-2", "red")
	if code2 != v1.CodeOpensPath || !strings.Contains(detail, "host host-2") {
		t.Errorf("host-2 to red: %s: %s", code2, detail)
	}
	if p := l.host("host-2").Status.Phase; p == v1.PhaseAdmitted || l.host("host-2").Cluster != "" {
		t.Errorf("host-2 is %s, in cluster %q", p, l.host("host-2").Cluster)
	}
	l.settle()
	if p := l.host("host-1").Status.Phase; p != v1.PhaseAdmitted {
		t.Errorf("host-1 is %s", p)
	}
	if c, d := refusedBy(l, "host-2", "blue"); c != "<nil>" {
		t.Errorf("host-2 to blue: %s: %s", c, d)
	}

	l.passes(far, shared.PKey.Full())
	if _, err := l.svc.Tenancy().Use(l.ctx(), "alice", "red", "store", v1.ClusterUse{}); code(err) != v1.CodeOpensPath {
		t.Errorf("red uses store: %v", err)
	}
	l.passes(far)
	if _, err := l.svc.Tenancy().Use(l.ctx(), "alice", "red", "store", v1.ClusterUse{}); err != nil {
		t.Errorf("after an examination without a finding: %v", err)
	}
	l.passes(far, shared.PKey.Limited())
	if c, d := refusedBy(l, "host-3", "red"); c != "<nil>" {
		t.Errorf("host-3 to red, which uses store, beside a limited port: %s: %s", c, d)
	}
	l.release("host-3")
	l.settle()
	l.passes(far, shared.PKey.Full())
	if c, _ := refusedBy(l, "host-3", "red"); c != v1.CodeOpensPath {
		t.Errorf("host-3 to red, which uses store: %s", c)
	}
	l.passes(l.host("host-3").HCAs[0].Ports[0].Cabled, red.PKey.Base(), shared.PKey.Full())
	if c, d := refusedBy(l, "host-3", "red"); c != "<nil>" {
		t.Errorf("host-3 to red, whose packets pass at its own port alone: %s: %s", c, d)
	}
}

// TestOpensPathHidesOthers: the refusal names no port, device and owner to a credential with a scope.
func TestOpensPathHidesOthers(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(2)
	l.tenantWithClusters("red")
	red, err := l.svc.Tenancy().Cluster(l.ctx(), "red")
	if err != nil {
		t.Fatal(err)
	}
	within := tenancy.Within(l.ctx(), &tenancy.Scope{PKeys: tenancy.Ranges{{First: 1, Last: 0x7FFE}}, Hosts: []string{"*"}})
	shared, err := l.svc.Tenancy().CreateCluster(l.ctx(), "alice", v1.NewCluster{Name: "store", Tenant: "acme", Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	l.passes(ib.Place{Switch: 0xFA, Port: 9}, red.PKey.Base(), shared.PKey.Full())
	_, assigned := l.svc.Assign(within, "scheduler", "host-1", v1.Assignment{Cluster: "red"})
	_, used := l.svc.Tenancy().Use(within, "scheduler", "red", "store", v1.ClusterUse{})
	for what, err := range map[string]error{"assignment": assigned, "use": used} {
		no, ok := errors.AsType[*refusal.Error](err)
		if !ok || no.Code != v1.CodeOpensPath || !strings.Contains(no.Detail, "no member") {
			t.Fatalf("%s: %v", what, err)
		}
		for _, hidden := range []string{"switch", "port 9", "h9", "undeclared", ib.GUID(0x77).String(), ib.GUID(0xFA).String()} {
			if text := no.Detail + no.Hint; strings.Contains(text, hidden) {
				t.Errorf("%s: %q shows %q", what, text, hidden)
			}
		}
	}
	if _, detail := refusedBy(l, "host-1", "red"); !strings.Contains(detail, "h9") {
		t.Errorf("without a scope: %q does not name the device", detail)
	}
}

// TestChoosesCleanPKey: a new cluster does not get a P_Key whose packets pass at a port that is no member.
func TestChoosesCleanPKey(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.tenantWithClusters("red")
	red, err := l.svc.Tenancy().Cluster(l.ctx(), "red")
	if err != nil {
		t.Fatal(err)
	}
	next := red.PKey.Base() + 1
	l.passes(ib.Place{Switch: 0xFA, Port: 9}, next, red.PKey.Full())
	blue, err := l.svc.Tenancy().CreateCluster(l.ctx(), "alice", v1.NewCluster{Name: "blue", Tenant: "acme"})
	if err != nil || blue.PKey.Base() != next+1 {
		t.Errorf("blue has %+v, %v, want P_Key %v", blue, err, next+1)
	}
}
