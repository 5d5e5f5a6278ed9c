package admission

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// running starts the service's Run and stops it with the test.
func (l *lab) running() {
	l.t.Helper()
	ctx, cancel := context.WithCancel(l.ctx())
	done := make(chan error, 1)
	go func() { done <- l.svc.Run(ctx) }()
	l.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Errorf("Run: %v", err)
		}
	})
}

// until follows the host until it is in the phase.
func (l *lab) until(id string, want v1.Phase) *v1.Host {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx(), 20*time.Second)
	defer cancel()
	hosts, err := l.svc.Watch(ctx, id)
	if err != nil {
		l.t.Fatal(err)
	}
	var last *v1.Host
	for h := range hosts {
		if last = h; h.Status.Phase == want {
			return h
		}
	}
	l.t.Fatalf("host %s did not become %s: %+v", id, want, last)
	return nil
}

func TestRunFollowsTheFabric(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(1)
	l.tenantWithClusters("c1")
	l.running()
	l.must(l.svc.Assign(t.Context(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	l.until("host-1", v1.PhaseVerified)
	l.fabric.place(t, l.ports("host-1")...)
	l.until("host-1", v1.PhaseGranting)
	l.waitForGrants(2)
	l.fabric.program(t)
	l.until("host-1", v1.PhaseAdmitted)
	elsewhere := records.Port{NodeGUID: l.ports("host-1")[0].GUID - 1, Place: ib.Place{Switch: 0x10, Port: 30}}
	l.fabric.show(t, l.ports("host-1")[0].GUID, elsewhere)
	l.until("host-1", v1.PhaseGranting) // until the P_Key of that port is proven absent
	l.must(l.svc.Release(t.Context(), "alice", "host-1"))
	l.fabric.program(t)
	l.until("host-1", v1.PhaseQuarantined)
}

// waitForGrants waits until the ledger holds n grants.
func (l *lab) waitForGrants(n int) {
	l.t.Helper()
	changes := l.store.Watch(l.ctx(), records.Grants().Name(), 0)
	for {
		recs, _, err := records.Grants().List(l.ctx(), l.store, "")
		if err != nil {
			l.t.Fatal(err)
		}
		if len(recs) == n {
			return
		}
		<-changes
	}
}

// A service that starts finds what happened while none ran.
func TestRunCatchesUp(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(1)
	l.tenantWithClusters("c1")
	l.must(l.svc.Assign(t.Context(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	l.fabric.place(t, l.ports("host-1")...)
	l.restart()
	l.running()
	l.waitForGrants(2)
	l.fabric.program(t)
	l.until("host-1", v1.PhaseAdmitted)
}

func TestRestartChangesNothing(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(2)
	l.tenantWithClusters("c1")
	l.admit("host-1", "c1")
	l.admit("host-2", "c1")
	before, err := l.store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.restart()
	l.settle()
	after, err := l.store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after.Revision != before.Revision {
		t.Errorf("a restart took the store from revision %d to %d, want no write", before.Revision, after.Revision)
	}
	for _, id := range []string{"host-1", "host-2"} {
		if p := l.host(id).Status.Phase; p != v1.PhaseAdmitted {
			t.Errorf("host %s is %s after a restart, want admitted", id, p)
		}
	}
}

// Eight agents side by side, two clusters, one service.
func TestSideBySide(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(8)
	l.tenantWithClusters("c1", "c2")
	l.running()
	var wg sync.WaitGroup
	for i := range 8 {
		id := fmt.Sprintf("host-%d", i+1)
		l.fabric.place(t, l.ports(id)...)
		wg.Go(func() {
			if _, err := l.svc.Assign(t.Context(), "alice", id, v1.Assignment{Cluster: fmt.Sprintf("c%d", i%2+1)}); err != nil {
				t.Error(err)
				return
			}
			s, err := l.svc.OpenSession(t.Context(), l.hosts[id].Request(), "192.0.2.1")
			if err != nil {
				t.Error(err)
				return
			}
			r, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, l.answer(id, s))
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := l.seal(id, s, r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	l.waitForGrants(16)
	l.fabric.program(t)
	for i := range 8 {
		h := l.until(fmt.Sprintf("host-%d", i+1), v1.PhaseAdmitted)
		if want := ib.PKey(i%2 + 1); h.Status.PKey != want || !slices.Equal(h.HCAs[0].Ports[0].PKeys, []ib.PKey{want}) {
			t.Errorf("host %s has P_Key %v, read back %v, want %v", h.ID, h.Status.PKey, h.HCAs[0].Ports[0].PKeys, want)
		}
	}
}

func TestPKeysRunOut(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.options = func(o *Options) {
		o.PKeyFirst, o.PKeyLast, o.PKeyReserved, o.PKeyMinAge = 0x7FFC, 0xFFFF, []ib.PKey{0x7FFD}, -1
	}
	l.restart()
	l.tenantWithClusters("c1", "c2")
	_, err := l.svc.Tenancy().CreateCluster(t.Context(), "alice", v1.NewCluster{Name: "c3", Tenant: "acme"})
	if !refusal.IsKind(err, refusal.Conflict) {
		t.Errorf("third cluster of two P_Keys: got %v, want a conflict", err)
	}
	var got []ib.PKey
	clusters, err := l.svc.Tenancy().Clusters(t.Context(), v1.ClusterQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clusters.Items {
		got = append(got, c.PKey)
	}
	if want := []ib.PKey{0x7FFC, 0x7FFE}; !slices.Equal(got, want) {
		t.Errorf("got P_Keys %v, want %v: neither the reserved nor the default one", got, want)
	}
}

func TestLeastRecentlyUsed(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.options = func(o *Options) { o.PKeyFirst, o.PKeyLast, o.PKeyMinAge = 1, 3, -1 }
	l.restart()
	l.tenantWithClusters("c1", "c2", "c3")
	for _, c := range []string{"c2", "c3", "c1"} {
		l.clock = l.clock.Add(time.Minute)
		if err := l.svc.Tenancy().DeleteCluster(t.Context(), "alice", c); err != nil {
			t.Fatal(err)
		}
	}
	var got []ib.PKey
	for _, c := range []string{"c4", "c5", "c6"} {
		v, err := l.svc.Tenancy().CreateCluster(t.Context(), "alice", v1.NewCluster{Name: c, Tenant: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v.PKey)
	}
	if want := []ib.PKey{2, 3, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: in the order they were given up", got, want)
	}
}

func TestSMIsUnreachableWhenSilent(t *testing.T) {
	l := newLab(t, member.Open(t))
	sm, err := l.svc.SM(t.Context())
	if err != nil || sm.State != "unreachable" {
		t.Errorf("no report yet: got %+v, %v", sm, err)
	}
	f, err := l.svc.Fabric(t.Context())
	if err != nil || len(f.Nodes) != 0 || f.Nodes == nil {
		t.Errorf("no report yet: got fabric %+v, %v, want an empty list of nodes", f, err)
	}
	l.fabric.publish(t, v1.SM{State: "Master", Settled: true, Updated: l.clock})
	if sm, err = l.svc.SM(t.Context()); err != nil || sm.State != "Master" {
		t.Errorf("fresh report: got %+v, %v", sm, err)
	}
	l.clock = l.clock.Add(smSilence + time.Second)
	if sm, err = l.svc.SM(t.Context()); err != nil || sm.State != "unreachable" || sm.Settled || len(sm.Problems) != 1 {
		t.Errorf("old report: got %+v, %v", sm, err)
	}
}

// Evidence grows too old while its grants are not read back: they go again,
// without anything else happening.
func TestRunLetsOldEvidenceGo(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(1)
	l.tenantWithClusters("c1")
	l.must(l.svc.Assign(t.Context(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
	l.fabric.place(t, l.ports("host-1")...)
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	o := newOwners()
	if err := l.svc.settleSome(t.Context(), o, []string{"host-1"}); err != nil {
		t.Fatal(err)
	}
	l.wantOwners("while the evidence is fresh", "host-1", "host-1")
	l.clock = o.nextDeadline()
	if old := l.clock.Sub(l.host("host-1").Status.Attested); old <= time.Hour {
		t.Errorf("Run looks again when the evidence is %v old, want more than an hour", old)
	}
	if err := l.svc.settleSome(t.Context(), o, o.due(l.clock)); err != nil {
		t.Fatal(err)
	}
	l.wantOwners("when it is too old", "host-1 withdrawn", "host-1 withdrawn")
	if next := o.nextDeadline(); !next.IsZero() {
		t.Errorf("Run looks again at %v, want it to wait for an event", next)
	}
}
