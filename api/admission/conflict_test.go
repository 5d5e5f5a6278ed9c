package admission

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/reference"
	"portcullis/fabricsm/ib"
)

// wantConflicts compares what a host shows of conflicts: the other hosts, sorted.
func (l *lab) wantConflicts(host string, with ...string) {
	l.t.Helper()
	var got []string
	for _, c := range l.host(host).Status.Conflicts {
		got = append(got, c.With)
	}
	slices.Sort(got)
	if !slices.Equal(got, with) {
		l.t.Errorf("%s shows conflicts with %v, want %v", host, got, with)
	}
}

// wantHeld checks that a host gets nothing new.
func (l *lab) wantHeld(host string) {
	l.t.Helper()
	if h := l.host(host); h.Status.Phase == v1.PhaseAdmitted || h.Status.Phase == v1.PhaseGranting || h.Status.Guards[1].Met {
		l.t.Errorf("%s stands as %+v, want it held", host, h.Status)
	}
	_, err := l.svc.Assign(l.ctx(), "alice", host, v1.Assignment{Cluster: "c1"})
	if !refusal.IsKind(err, refusal.Conflict) || !strings.Contains(fmt.Sprint(err), "is held: GUID") {
		l.t.Errorf("%s is assigned while it is held: %v", host, err)
	}
}

// conflictLog returns the entries of conflicts in the audit log, whole.
func (l *lab) conflictLog() string {
	l.t.Helper()
	entries, _, err := audit.Entries().List(l.ctx(), l.store, "")
	if err != nil {
		l.t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		if v := e.Value; v.Action == "event.guid.conflict" {
			fmt.Fprintf(&b, "%s %s %s %s: %s\n", v.Actor, v.Action, v.Object, v.Code, v.Detail)
		}
	}
	return b.String()
}

func (l *lab) resolve(host string) *v1.Host {
	l.t.Helper()
	h, err := l.svc.ResolveGUID(l.ctx(), "bob", host, v1.GUIDResolved{Reason: "adapters were looked at"})
	if err != nil {
		l.t.Fatal(err)
	}
	return h
}

// TestTwoHostsClaimOneGUID lets both attest at the same time, with a GUID that inventory has for one of them. Neither is
// admitted until an operator has looked, in whichever order they came.
func TestTwoHostsClaimOneGUID(t *testing.T) {
	for range 5 {
		l := awaiting(t)
		l.fabric.place(t, l.ports("host-1")...)
		l.fabric.place(t, l.ports("host-2")...)
		own := l.hosts["host-2"].Statement.HCAs[0].Ports[1].GUID
		l.hosts["host-2"].Statement.HCAs[0].Ports[1].GUID = l.hosts["host-1"].Statement.HCAs[0].Ports[1].GUID
		var wg sync.WaitGroup
		errs := map[string]error{}
		var mu sync.Mutex
		for _, id := range []string{"host-1", "host-2"} {
			wg.Go(func() {
				_, err := l.attest(id)
				mu.Lock()
				defer mu.Unlock()
				errs[id] = err
			})
		}
		wg.Wait()
		l.settle()
		if errs["host-1"] != nil {
			t.Errorf("host-1, whose GUID it is: %v", errs["host-1"])
		}
		wantRefusal(t, errs["host-2"], attestation.ReasonConflict)
		for id, other := range map[string]string{"host-1": "host-2", "host-2": "host-1"} {
			l.wantConflicts(id, other)
			l.wantHeld(id)
			if h := l.host(id); h.Status.Phase != v1.PhaseAwaiting || h.Status.Conflicts[0].GUID != 0x0002_c903_0000_0102 {
				t.Errorf("%s stands as %+v, want it awaiting", id, h.Status)
			}
		}
		if n := l.audited("event.guid.conflict"); n != 2 {
			t.Errorf("%d entries of the conflict in the audit log, want one for each host", n)
		}
		// The event names the hosts, the GUID, the places, and the remedy.
		for _, want := range []string{
			"service event.guid.conflict host/host-1 claimed: guid.conflict (claimed) of host host-1, says evidence",
			"service event.guid.conflict host/host-2 claims: guid.conflict (claims) of host host-2, says evidence",
			"expected GUID 0x0002c90300000102 in host host-1 alone, as inventory has it (port 0x0002c90300000101 seen at 0x0000000000000010/1, as cabled",
			"seen in evidence of host host-2 (port 0x0002c90300000201 seen at 0x0000000000000010/3, as cabled",
			"both are held: find out", "portcullis host guid-resolved host-1 --reason TEXT", "portcullis host guid-resolved host-2 --reason TEXT",
		} {
			if log := l.conflictLog(); !strings.Contains(log, want) {
				t.Errorf("the audit log does not have %q:\n%s", want, log)
			}
		}
		told, err := events.Book{Store: l.store}.List(t.Context(), v1.EventQuery{Type: events.GUIDConflict, Severity: events.Critical})
		if err != nil || len(told.Items) != 2 || told.Items[0].Count != 1 {
			t.Errorf("events: %+v, %v, want one for each host", told, err)
		}
		// A release, which is always allowed, ends no conflict.
		for _, id := range []string{"host-1", "host-2"} {
			l.must(l.svc.Release(t.Context(), "alice", id))
			l.fabric.program(t)
			l.settle()
			l.wantHeld(id)
		}
		// Looked at by an operator, for both hosts at once.
		l.resolve("host-1")
		l.hosts["host-2"].Statement.HCAs[0].Ports[1].GUID = own
		for _, id := range []string{"host-1", "host-2"} {
			l.wantConflicts(id)
			l.must(l.svc.Assign(t.Context(), "alice", id, v1.Assignment{Cluster: "c1"}))
			if _, err := l.attest(id); err != nil {
				t.Errorf("%s after the operator looked: %v", id, err)
			}
			l.fabric.program(t)
			l.settle()
			if p := l.host(id).Status.Phase; p != v1.PhaseAdmitted {
				t.Errorf("%s is %s after the operator looked", id, p)
			}
		}
	}
}

// disputed is host-1 admitted and host-2 showing its adapters, under a rule.
func disputed(t *testing.T, rule ConflictRule) *lab {
	t.Helper()
	l := newLab(t, member.Open(t))
	l.options = func(o *Options) { o.GUIDConflict = rule }
	l.restart()
	l.addHosts(2)
	l.tenantWithClusters("c1")
	l.admit("host-1", "c1")
	l.must(l.svc.Assign(t.Context(), "alice", "host-2", v1.Assignment{Cluster: "c1"}))
	l.hosts["host-2"].Statement.HCAs = l.hosts["host-1"].Statement.HCAs
	for range 2 {
		_, err := l.attest("host-2")
		wantRefusal(t, err, attestation.ReasonConflict)
	}
	l.settle()
	l.wantConflicts("host-1", "host-2")
	l.wantConflicts("host-2", "host-1")
	l.wantHeld("host-2")
	if n := l.audited("event.guid.conflict"); n != 2 {
		t.Errorf("%d entries of one conflict in the audit log, want one for each host", n)
	}
	return l
}

// TestAdmittedHostIsNotCutOff: no host's claim takes a neighbour's partition away, not even when the neighbour is rebooted
// meanwhile. The conflict is reported all the same, and the neighbour is not moved.
func TestAdmittedHostIsNotCutOff(t *testing.T) {
	for _, rule := range []ConflictRule{"", KeepAdmitted} {
		l := disputed(t, rule)
		if p := l.host("host-1").Status.Phase; p != v1.PhaseAdmitted {
			t.Errorf("rule %q: host-1 is %s, want it admitted", rule, p)
		}
		l.wantOwners("while the conflict stands", "host-1", "host-1")
		for _, p := range l.ports("host-1") {
			l.fabric.show(t, p.GUID, records.Port{})
		}
		l.settle()
		l.fabric.place(t, l.ports("host-1")...)
		l.settle()
		l.fabric.program(t)
		l.settle()
		if p := l.host("host-1").Status.Phase; p != v1.PhaseAdmitted {
			t.Errorf("rule %q: host-1 is %s after its links were down, want it admitted", rule, p)
		}
		if _, err := l.svc.Assign(l.ctx(), "alice", "host-1", v1.Assignment{Cluster: "c1"}); !refusal.IsKind(err, refusal.Conflict) {
			t.Errorf("rule %q: host-1 is assigned anew while it is held: %v", rule, err)
		}
		if p := l.resolve("host-2").Status.Phase; p != v1.PhaseAwaiting {
			t.Errorf("rule %q: host-2 is %s without evidence", rule, p)
		}
		l.wantConflicts("host-1")
	}
}

// TestImpostorIsNotKept: under the other rule no host keeps a GUID that two hosts prove to have, until an operator has
// looked.
func TestImpostorIsNotKept(t *testing.T) {
	l := disputed(t, WithdrawAdmitted)
	l.wantHeld("host-1")
	l.wantOwners("while the conflict stands", "host-1 withdrawn", "host-1 withdrawn")
	l.fabric.program(t)
	l.settle()
	for _, p := range l.ports("host-1") {
		if got := l.fabric.holds(p.Cable); len(got) != 0 {
			t.Errorf("switch port %v has P_Keys %v of a host that is held", p.Cable, got)
		}
	}
	l.resolve("host-1")
	l.settle()
	l.fabric.program(t)
	l.settle()
	if p := l.host("host-1").Status.Phase; p != v1.PhaseAdmitted {
		t.Errorf("host-1 is %s after the conflict was resolved, want it back", p)
	}
}

// maxDisputes bounds the conflicts of one host.
const maxDisputes = 16

// TestHostThatClaimsManyGUIDs: each host whose GUID is shown is held, and released from
// it by itself; the number of conflicts is bounded.
func TestHostThatClaimsManyGUIDs(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(maxDisputes + 3)
	l.tenantWithClusters("c1")
	for _, id := range []string{"host-2", "host-3"} {
		l.must(l.svc.Assign(t.Context(), "alice", id, v1.Assignment{Cluster: "c1"}))
	}
	// Two hosts claim a GUID of a third one, and one of them also one of the other.
	l.hosts["host-2"].Statement.HCAs[0].Ports[0].GUID = l.ports("host-1")[0].GUID
	l.hosts["host-3"].Statement.HCAs[0].Ports[0].GUID = l.ports("host-1")[0].GUID
	l.hosts["host-3"].Statement.HCAs[0].Ports[1].GUID = l.ports("host-2")[1].GUID
	for _, id := range []string{"host-2", "host-3"} {
		_, err := l.attest(id)
		wantRefusal(t, err, attestation.ReasonConflict)
	}
	l.wantConflicts("host-1", "host-2", "host-3")
	l.wantConflicts("host-2", "host-1", "host-3")
	l.wantConflicts("host-3", "host-1", "host-2")
	if h := l.resolve("host-2"); len(h.Status.Conflicts) != 0 {
		t.Errorf("host-2 has conflicts after they were resolved: %+v", h.Status.Conflicts)
	}
	l.wantConflicts("host-1", "host-3")
	l.wantConflicts("host-3", "host-1")
	if _, err := l.svc.Assign(t.Context(), "alice", "host-1", v1.Assignment{Cluster: "c1"}); !refusal.IsKind(err, refusal.Conflict) {
		t.Errorf("host-1, which another host claims a GUID of still, is assigned: %v", err)
	}
	l.must(l.svc.Assign(t.Context(), "alice", "host-2", v1.Assignment{Cluster: "c1"}))

	// A liar with a GUID of every host.
	var all []attest.HCA
	for i := 1; i <= maxDisputes+3; i++ {
		all = append(all, l.hosts[fmt.Sprintf("host-%d", i)].Statement.HCAs[0])
		all[i-1].Name = fmt.Sprintf("mlx5_%02d", i)
		all[i-1].NodeGUID, all[i-1].Ports = inventoryNode(l, i), slices.Clone(all[i-1].Ports)
		for j, p := range l.ports(fmt.Sprintf("host-%d", i)) {
			all[i-1].Ports[j].GUID = p.GUID
		}
	}
	l.hosts["host-2"].Statement.HCAs = all
	_, err := l.attest("host-2")
	wantRefusal(t, err, attestation.ReasonConflict)
	if n := len(l.host("host-2").Status.Conflicts); n != maxDisputes {
		t.Errorf("a host that claims GUIDs of %d others has %d conflicts, want %d", maxDisputes+2, n, maxDisputes)
	}
	held := 0
	for i := range maxDisputes + 3 {
		if id := fmt.Sprintf("host-%d", i+1); id != "host-2" && len(l.host(id).Status.Conflicts) > 0 {
			held++
		}
	}
	if held != maxDisputes {
		t.Errorf("%d others are held for the word of one, want at most %d", held, maxDisputes)
	}
}

func inventoryNode(l *lab, i int) ib.GUID { return l.host(fmt.Sprintf("host-%d", i)).HCAs[0].NodeGUID }

// TestConflictWithAHostNobodyWants: both hosts report it, and the other one attests once the conflict is resolved. Until
// then each may attest, which is kept.
func TestConflictWithAHostNobodyWants(t *testing.T) {
	l := awaiting(t)
	l.must(l.svc.Release(t.Context(), "alice", "host-2"))
	honest := l.hosts["host-1"].Statement.HCAs
	l.hosts["host-1"].Statement.HCAs = l.hosts["host-2"].Statement.HCAs
	_, err := l.attest("host-1")
	wantRefusal(t, err, attestation.ReasonConflict)
	l.wantConflicts("host-1", "host-2")
	l.wantConflicts("host-2", "host-1")
	if p := l.host("host-2").Status.Phase; p != v1.PhaseQuarantined {
		t.Errorf("host-2 is %s, want quarantined", p)
	}
	l.wantHeld("host-2")
	// The liar now sends true evidence, and is held all the same; its evidence counts later.
	l.fabric.place(t, l.ports("host-1")...)
	l.hosts["host-1"].Statement.HCAs = honest
	r, err := l.attest("host-1")
	if err != nil || r.Phase != v1.PhaseAwaiting {
		t.Errorf("host-1 with its own adapters: got %+v, %v, want it held", r, err)
	}
	if proof, err := l.svc.Evidence(t.Context(), "host-1"); err != nil || proof.Host != "" {
		t.Errorf("evidence of a host that is held counts for a replacement: %+v, %v", proof, err)
	}
	for _, reason := range []string{"", " "} {
		if _, err := l.svc.ResolveGUID(t.Context(), "bob", "host-1", v1.GUIDResolved{Reason: reason}); !refusal.IsKind(err, refusal.Invalid) {
			t.Errorf("resolved for reason %q: %v", reason, err)
		}
	}
	if h := l.resolve("host-1"); h.Status.Phase != v1.PhaseGranting {
		t.Errorf("host-1 is %s after the conflict was resolved, want granting", h.Status.Phase)
	}
	l.must(l.svc.Assign(t.Context(), "alice", "host-2", v1.Assignment{Cluster: "c1"}))
	if _, err := l.attest("host-2"); err != nil {
		t.Errorf("host-2 after its assignment: %v", err)
	}
	for _, id := range []string{"host-1", "nobody"} {
		if _, err := l.svc.ResolveGUID(t.Context(), "bob", id, v1.GUIDResolved{Reason: "x"}); !refusal.IsKind(err, refusal.Conflict) && !refusal.IsKind(err, refusal.NotFound) {
			t.Errorf("resolved what is none at %s: %v", id, err)
		}
	}
	if n := l.audited("guid.resolve"); n != 2 {
		t.Errorf("%d entries of the resolution in the audit log, want one for each host", n)
	}
}

// TestLateSessionHoldsNobody: evidence that comes after the window of the host has closed is refused, and no other host is
// held for it.
func TestLateSessionHoldsNobody(t *testing.T) {
	l := awaiting(t)
	l.hosts["host-2"].Statement.HCAs[0].Ports[1].GUID = l.hosts["host-1"].Statement.HCAs[0].Ports[1].GUID
	window, err := store.Optional(hostrecord.Records().Get(l.ctx(), l.store, "host-2"))
	if err != nil {
		t.Fatal(err)
	}
	l.clock = window.Window.Add(-time.Minute)
	l.hosts["host-2"].Statement.CollectedAt = l.clock
	ses := l.open("host-2")
	ev := l.answer("host-2", ses)
	l.clock = window.Window.Add(time.Second)
	_, err = l.svc.SubmitEvidence(l.ctx(), ses.ID, l.channel, ev)
	wantRefusal(t, err, attest.ReasonGUIDMismatch)
	l.wantConflicts("host-1")
	l.wantConflicts("host-2")
}

// TestHeldHostGetsNoOrders: neither a ticket for them, nor by one that it earned before.
func TestHeldHostGetsNoOrders(t *testing.T) {
	l := newLockLab(t, &keeper{epoch: 2})
	honest := l.hosts["host-1"].Statement.HCAs
	unlocked(l.hosts["host-1"])
	r, err := l.attested("host-1")
	if err != nil || r.LockTicket == "" {
		t.Fatalf("got %+v, %v, want a ticket", r, err)
	}
	early := r.LockTicket
	l.addHosts(2) // with other TPMs: no host was accepted so far
	l.hosts["host-1"].Statement.HCAs = l.hosts["host-2"].Statement.HCAs
	_, err = l.attested("host-1")
	wantRefusal(t, err, attestation.ReasonConflict)
	if _, err := l.use(early); !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("the ticket of before is good: %v", err)
	}
	l.hosts["host-1"].Statement.HCAs = honest
	unlocked(l.hosts["host-1"])
	_, err = l.attested("host-1")
	wantRefusal(t, err, attest.ReasonLock)
	l.resolve("host-1")
	if r, err = l.attested("host-1"); err != nil || r.LockTicket == "" {
		t.Errorf("after the conflict was resolved: %+v, %v, want a ticket", r, err)
	}
}

// TestWaivedBootHoldsNobodyElse: while a waiver lets any boot of the class in, the owner of a host can boot his own system
// and claim any GUIDs. That host is held for it. The hosts whose GUIDs it names are not, since no reference values vouch
// for its agent.
func TestWaivedBootHoldsNobodyElse(t *testing.T) {
	l := awaiting(t)
	l.trust(reference.Set{
		Class: reference.DefaultClass, Version: 2, State: reference.Approved, Waiver: true, Owner: "ann", Reason: "INC-7",
		Made: l.clock, Expires: l.clock.Add(time.Hour),
	})
	l.hosts["host-2"].PowerOn(updated())
	l.hosts["host-2"].Statement.HCAs[0].Ports[1].GUID = l.hosts["host-1"].Statement.HCAs[0].Ports[1].GUID
	_, err := l.attest("host-2")
	wantRefusal(t, err, attestation.ReasonConflict)
	l.wantConflicts("host-2", "host-1")
	l.wantHeld("host-2")
	l.wantConflicts("host-1")
	if log := l.conflictLog(); !strings.Contains(log, "host/host-2 claims") || strings.Contains(log, "host/host-1 claimed") {
		t.Errorf("the audit log has\n%s", log)
	}
	if _, err := l.attest("host-1"); err != nil {
		t.Errorf("host-1, whose GUID it is: %v", err)
	}
	l.resolve("host-2")
	l.wantConflicts("host-2")
}
