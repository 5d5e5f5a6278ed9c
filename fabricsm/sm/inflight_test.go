package sm_test

import (
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// proven brings a fabric up whose tables were all read with Gets, and which is
// watched.
func proven(t *testing.T) (*env, *watcher, *endPort) {
	t.Helper()
	l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 4})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	w := watch(e)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(10 * time.Second)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(10 * time.Second)
	e.takeEvents()
	return e, w, &w.hosts[0]
}

// untilDone lets n things happen, fewer if nothing is left to do.
func (e *env) untilDone(n int) bool {
	for range n {
		if e.view.Settled && len(e.inbox) == 0 && len(e.out) == 0 || !e.next(e.now.Add(time.Second)) {
			return true
		}
	}
	return false
}

// TestIntentChangesInFlight withdraws, restores or exchanges a grant after each single step of carrying out the one before.
// The watcher compares the events with the content of the devices at that moment.
func TestIntentChangesInFlight(t *testing.T) {
	grant := func(g sm.Grant) sm.Intent { return sm.Intent{Grants: []sm.Grant{g}} }
	absent := func(g sm.Grant) sm.Intent { return sm.Intent{Absent: []sm.Grant{g}} }
	move := func(g sm.Grant) sm.Intent {
		g.PKey = 0x8012
		return grant(g)
	}
	nothing := func(sm.Grant) sm.Intent { return sm.Intent{} }
	for name, seq := range map[string][]func(sm.Grant) sm.Intent{
		"withdrawn while it is given":     {nothing, grant, absent},
		"forgotten while it is given":     {nothing, grant, nothing},
		"given back while it is taken":    {grant, absent, grant},
		"moved while it is given":         {nothing, grant, move},
		"moved back while it is moved":    {grant, move, grant},
		"withdrawn while it is moved":     {grant, move, nothing},
		"asked for proof while it leaves": {grant, nothing, absent},
	} {
		t.Run(name, func(t *testing.T) {
			for n, done := 0, false; !done; n++ {
				e, w, h := proven(t)
				g := h.grant(0x8011)
				rev := int64(10)
				say := func(in sm.Intent) {
					in.Revision = rev
					rev += 10
					e.want(in)
				}
				say(seq[0](g))
				e.mustSettle(time.Second)
				e.takeEvents()
				say(seq[1](g))
				done = e.untilDone(n)
				say(seq[2](g))
				e.mustSettle(10 * time.Second)
				w.checkEnd()
				checkAccount(t, fmt.Sprintf("after %d steps", n), e, g)
			}
		})
	}
}

// checkAccount checks that in the end the last event of each membership agrees with the intent.
func checkAccount(t *testing.T, when string, e *env, g sm.Grant) {
	t.Helper()
	last := make(map[sm.Grant]sm.Event)
	for _, ev := range e.events {
		switch ev := ev.(type) {
		case *sm.MembershipApplied:
			last[sm.Grant{GUID: ev.GUID, PKey: ev.PKey, Place: ev.Place}] = ev
		case *sm.MembershipRemoved:
			last[sm.Grant{GUID: ev.GUID, PKey: ev.PKey, Place: ev.Place}] = ev
		}
	}
	for _, want := range e.intent.Absent {
		if _, ok := last[want].(*sm.MembershipRemoved); !ok {
			t.Errorf("%s: last told of %v is %v", when, want, last[want])
		}
	}
	held := make(map[sm.Grant]bool)
	for _, want := range e.intent.Grants {
		held[want] = true
		if ev, ok := last[want]; ok {
			if _, ok := ev.(*sm.MembershipApplied); !ok {
				t.Errorf("%s: last told of %v is %v", when, want, ev)
			}
		}
	}
	for k, ev := range last {
		if _, applied := ev.(*sm.MembershipApplied); applied && !held[k] {
			t.Errorf("%s: last told of %v, which nobody is granted, is %v", when, k, ev)
		}
	}
}

// TestHCAWithholdsItsAnswer: an HCA takes a key and then answers no more. Its removal is reported once the switch port is
// proven, without proof of the HCA. When the HCA answers again it is cleaned.
func TestHCAWithholdsItsAnswer(t *testing.T) {
	for n, done := 0, false; !done; n++ {
		e, w, h := proven(t)
		g := h.grant(0x8011)
		e.want(sm.Intent{Revision: 10, Grants: []sm.Grant{g}})
		done = e.untilDone(n)
		if err := e.fab.SetFault(h.node.Name, sim.Fault{Silent: true}); err != nil {
			t.Fatal(err)
		}
		e.inbox = nil
		e.want(sm.Intent{Revision: 20, Absent: []sm.Grant{g}})
		e.run(10 * time.Second)
		if r, ok := find(e.takeEvents(), func(r *sm.MembershipRemoved) bool { return r.GUID == g.GUID }); !ok || r.HCAProven && len(tenants(w.hcaOf(h))) > 0 {
			t.Errorf("after %d steps, silent: %v, HCA holds %v", n, r, w.hcaOf(h))
		}
		if err := e.fab.SetFault(h.node.Name, sim.Fault{}); err != nil {
			t.Fatal(err)
		}
		e.run(2 * time.Minute)
		e.mustSettle(time.Minute)
		w.checkEnd()
	}
}
