package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/reason"
	"portcullis/api/store"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
)

// standing returns the grants of all hosts that are not withdrawn, as of a revision.
func (l *lab) standing(revision int64) (out []records.Grant) {
	l.t.Helper()
	snap, err := l.store.Snapshot(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	if revision > 0 {
		snap.Revision = revision
	}
	recs, _, err := records.Grants().List(l.ctx(), snap, "")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, r := range recs {
		if !r.Value.Withdrawn {
			out = append(out, r.Value)
		}
	}
	return out
}

// orders returns what the audit log says of orders, oldest first.
func (l *lab) orders() (out []string) {
	l.t.Helper()
	recs, _, err := audit.Entries().List(l.ctx(), l.store, "")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, r := range recs {
		if e := r.Value; e.Action == "host.release.ordered" {
			out = append(out, fmt.Sprintf("%s by %s: %s", e.Object, e.Actor, e.Code))
		}
	}
	return out
}

// TestOrderedReleases: an order made while the store was away is carried out once, whatever the store has by then,
// and a later assignment stays.
func TestOrderedReleases(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(2)
	l.tenantWithClusters("blue", "red")
	l.admit("host-1", "blue")
	for _, g := range l.standing(0) {
		if g.Epoch != 1 {
			t.Errorf("a grant of the first assignment is %+v", g)
		}
	}
	order := Ordered{Host: "host-1", Cluster: "blue", Epoch: 1, Actor: "local socket, uid 0", Time: l.clock, Reason: "fence: noisy"}
	record := func(o Ordered, want string) {
		t.Helper()
		revision, err := l.svc.Record(l.ctx(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.orders(); len(got) == 0 || got[len(got)-1] != want {
			t.Errorf("the audit log says %q, want %q last", got, want)
		}
		for _, g := range l.standing(revision) {
			if g.Host == o.Host && !strings.HasSuffix(want, "superseded") {
				t.Errorf("as of revision %d, from which on the store is to have it, %+v stands", revision, g)
			}
		}
	}
	record(order, "host/host-1 by local socket, uid 0: recorded")
	if h := l.host("host-1"); h.Cluster != "" || h.Status.Phase != v1.PhaseReleasing {
		t.Errorf("host-1 is %s in cluster %q, want it released", h.Status.Phase, h.Cluster)
	}
	record(order, "host/host-1 by local socket, uid 0: released")

	l.fabric.program(t)
	l.settle()
	l.admit("host-1", "blue")
	record(order, "host/host-1 by local socket, uid 0: superseded")
	l.wantPhases("an order about the assignment before", v1.PhaseAdmitted, "host-1")
	before := order
	before.Cluster, before.Epoch = "red", 0 // granted by an earlier release
	record(before, "host/host-1 by local socket, uid 0: superseded")
	l.wantPhases("an order about another cluster", v1.PhaseAdmitted, "host-1")
	before.Cluster = "blue"
	record(before, "host/host-1 by local socket, uid 0: recorded")
	l.wantPhases("an order of which no more is known than the cluster", v1.PhaseReleasing, "host-1")

	l.assign("host-2", "red")
	record(Ordered{Host: "host-2", Actor: "local socket, uid 0", Time: l.clock}, "host/host-2 by local socket, uid 0: recorded")
	if h := l.host("host-2"); h.Cluster != "" {
		t.Errorf("host-2 had no grant when it was ordered out, and is in cluster %s", h.Cluster)
	}
	record(Ordered{Host: "host-9", Actor: "local socket, uid 0", Time: l.clock}, "host/host-9 by local socket, uid 0: unknown")
}

// TestOrderedReleasesSayWhy: both entries of an order have its reason, and not that of a request in whose course it is recorded.
func TestOrderedReleasesSayWhy(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(2)
	l.tenantWithClusters("blue")
	why := map[string]string{"host-1": "it is loud", "host-2": ""}
	for _, host := range []string{"host-1", "host-2"} {
		l.assign(host, "blue")
		ctx := reason.With(l.ctx(), "of another request")
		if _, err := l.svc.Record(ctx, Ordered{Host: host, Actor: "local socket, uid 0", Time: l.clock, Reason: why[host]}); err != nil {
			t.Fatal(err)
		}
	}
	recs, _, err := audit.Entries().List(l.ctx(), l.store, "")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, r := range recs {
		if e := r.Value; strings.HasPrefix(e.Action, "host.release") {
			said = append(said, e.Action+" "+e.Object+": "+e.Reason)
			if want := why[strings.TrimPrefix(e.Object, "host/")]; e.Reason != want {
				t.Errorf("%s of %s by %s: reason %q, want %q", e.Action, e.Object, e.Actor, e.Reason, want)
			}
		}
	}
	if len(said) != 4 {
		t.Errorf("entries %q, want two of each host", said)
	}
}

// TestShortStoreGrantsNothing: while the store is short of room a host gets no grant, and
// says why; one that has grants keeps them, and can be released. With room the host gets
// them by itself.
func TestShortStoreGrantsNothing(t *testing.T) {
	f := &storetest.Failing{Backend: member.Open(t).Backend()}
	l := newLab(t, store.New(f, ""))
	l.addHosts(2)
	l.tenantWithClusters("blue")
	l.admit("host-1", "blue")
	l.assign("host-2", "blue")
	l.fabric.place(t, l.ports("host-2")...)
	f.Short(fmt.Errorf("%w: the disk has 1 MiB", store.ErrFull))
	if _, err := l.attest("host-2"); err != nil {
		t.Fatal(err)
	}
	l.settle()
	l.wantPhases("short", v1.PhaseAdmitted, "host-1")
	h := l.host("host-2")
	i := slices.IndexFunc(h.Status.Guards, func(g v1.Guard) bool { return strings.Contains(g.Detail, "the disk has 1 MiB") })
	if i < 0 || h.Status.Guards[i].Met || h.Status.Phase != v1.PhaseVerified {
		t.Errorf("host-2 is %s, with guards %+v; want one that says that there is no room", h.Status.Phase, h.Status.Guards)
	}
	for _, g := range l.standing(0) {
		if g.Host == "host-2" {
			t.Errorf("granted without room: %+v", g)
		}
	}
	if _, err := l.svc.Release(l.ctx(), "alice", "host-1"); err != nil {
		t.Errorf("release without room: %v", err)
	}
	f.Short(nil)
	l.settle()
	l.fabric.program(t)
	l.settle()
	l.wantPhases("with room", v1.PhaseAdmitted, "host-2")
}

// doubted is a Clock that is not believed for a reason.
type doubted struct {
	why    error
	raised int
}

func (d *doubted) Halted() error { return d.why }

func (d *doubted) Raise(context.Context, *store.Tx) error { d.raised++; return nil }

// TestDoubtedClockGrantsNothing: while the clock is not believed a host gets no grant, and says why; one that has
// grants keeps them, and can be released. Once it is believed the host gets them by itself, and the time is recorded
// with them.
func TestDoubtedClockGrantsNothing(t *testing.T) {
	clock := &doubted{}
	l := newLab(t, member.Open(t))
	l.options = func(o *Options) { o.Clock = clock }
	l.restart()
	l.addHosts(2)
	l.tenantWithClusters("blue")
	l.admit("host-1", "blue")
	if clock.raised != 1 {
		t.Errorf("the time was recorded with %d grants, want 1", clock.raised)
	}
	l.assign("host-2", "blue")
	l.fabric.place(t, l.ports("host-2")...)
	clock.why = errors.New("3 h behind")
	if _, err := l.attest("host-2"); err != nil {
		t.Fatal(err)
	}
	l.settle()
	l.wantPhases("doubted", v1.PhaseAdmitted, "host-1")
	h := l.host("host-2")
	if !slices.ContainsFunc(h.Status.Guards, func(g v1.Guard) bool { return g.Name == "clock" && !g.Met && g.Detail == "3 h behind" }) || h.Status.Phase != v1.PhaseVerified {
		t.Errorf("host-2 is %s, with guards %+v; want one that says why", h.Status.Phase, h.Status.Guards)
	}
	for _, g := range l.standing(0) {
		if g.Host == "host-2" {
			t.Errorf("granted by a clock that is not believed: %+v", g)
		}
	}
	if _, err := l.svc.Release(l.ctx(), "alice", "host-1"); err != nil {
		t.Errorf("release: %v", err)
	}
	clock.why = nil
	l.settle()
	l.fabric.program(t)
	l.settle()
	l.wantPhases("believed", v1.PhaseAdmitted, "host-2")
	if clock.raised != 2 {
		t.Errorf("the time was recorded with %d grants, want 2", clock.raised)
	}
}
