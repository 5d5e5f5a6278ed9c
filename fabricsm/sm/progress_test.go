package sm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/settling"
)

// settledEvents returns the events that report a settled fabric.
func settledEvents(e *env) (out []*sm.Settled) {
	for _, ev := range e.events {
		if s, ok := ev.(*sm.Settled); ok {
			out = append(out, s)
		}
	}
	return out
}

// TestProgressFollowsTheBringUp checks that phases come in their order, that the remaining work goes to nothing, and that
// every request is accounted for.
func TestProgressFollowsTheBringUp(t *testing.T) {
	e := newEnv(t, tree(t, 16, 8), sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1, ViewEvery: time.Microsecond}, 1)
	var phases []settling.Phase
	blocks := 0
	e.onStep = func() {
		if e.view == nil {
			return
		}
		p := e.view.Progress
		if n := len(phases); n == 0 || phases[n-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
		blocks = max(blocks, p.LFTBlocks)
	}
	e.start()
	e.mustSettle(10 * time.Second)
	for _, want := range []settling.Phase{settling.Discovery, settling.Routing, settling.Forwarding, settling.Done} {
		if !slices.Contains(phases, want) {
			t.Errorf("phases %v lack %v", phases, want)
		}
	}
	if phases[0] != settling.Discovery || phases[len(phases)-1] != settling.Done {
		t.Errorf("phases %v: want discovery first and settled last", phases)
	}
	p, c := e.view.Progress, e.view.Counters
	if p.Fresh != 0 || p.LFTBlocks != 0 || p.Urgent != 0 || p.Activating != 0 || p.Window == 0 || blocks == 0 {
		t.Errorf("settled with progress %+v; %d blocks at most", p, blocks)
	}
	for i, n := range p.Waiting {
		if n != 0 {
			t.Errorf("settled with %d waiting for %s", n, settling.WorkName(i))
		}
	}
	var sent uint64
	for _, k := range e.view.SMPs {
		sent += k.Sent
	}
	if got := c.Answered + c.TimedOut + c.Undelivered; got != sent || c.Masterships != 1 || c.Routed == 0 {
		t.Errorf("%d requests sent, %d ended: %+v", sent, got, c)
	}
}

// TestSettledNamesItsCause: the counts in the report of a settled fabric begin at the event that caused the work.
func TestSettledNamesItsCause(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	h := hosts(l)[0]
	e.run(time.Hour)
	e.want(sm.Intent{Revision: 7, Grants: []sm.Grant{h.grant(0x8001)}})
	e.mustSettle(time.Second)
	e.run(time.Hour)
	cut(e, h.node.Name)
	e.run(time.Millisecond)
	e.mustSettle(time.Second)

	all := settledEvents(e)
	if len(all) < 3 {
		t.Fatalf("settled %d times, want 3", len(all))
	}
	first, intent, trap := all[0], all[1], all[len(all)-1]
	if first.Cause != "start" || first.Work != first.SMPs {
		t.Errorf("bring-up: %+v", first)
	}
	if intent.Cause != "intent 7" || intent.Work == 0 || intent.Work > 20 || intent.Took > time.Second {
		t.Errorf("grant: %+v", intent)
	}
	if !strings.HasPrefix(trap.Cause, "trap ") || trap.Took > time.Second {
		t.Errorf("cable: %+v, want a trap as its cause", trap)
	}
}

// TestSettledCountsRepetitions: without the requests that repeat others, the
// same change takes as many of a host that answers late as of one that does not.
func TestSettledCountsRepetitions(t *testing.T) {
	grant := func(quiet time.Duration) *sm.Settled {
		l := tree(t, 8, 8)
		e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
		e.start()
		e.mustSettle(10 * time.Second)
		h := hosts(l)[0]
		if err := e.fab.SetFault(h.node.Name, sim.Fault{Silent: quiet > 0}); err != nil {
			t.Fatal(err)
		}
		e.want(sm.Intent{Revision: 7, Grants: []sm.Grant{h.grant(0x8001)}})
		e.run(quiet)
		if err := e.fab.SetFault(h.node.Name, sim.Fault{}); err != nil {
			t.Fatal(err)
		}
		e.mustSettle(10 * time.Second)
		all := settledEvents(e)
		return all[len(all)-1]
	}
	plain, late := grant(0), grant(150*time.Millisecond)
	if plain.Repeated != 0 || late.Repeated == 0 || late.Work-late.Repeated != plain.Work {
		t.Errorf("%d requests, %d of them repeated, and of a host that answers late %d and %d", plain.Work, plain.Repeated, late.Work, late.Repeated)
	}
}

// TestFaultsSayWhere: faults are listed with their places for programs, and in the same order for people.
func TestFaultsSayWhere(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	h := hosts(l)[0]
	if err := e.fab.SetFault(h.node.Name, sim.Fault{Silent: true}); err != nil {
		t.Fatal(err)
	}
	e.start()
	e.run(5 * time.Second)
	v := e.view
	if len(v.Faults) != 1 || len(v.Problems) != 1 || v.Faults[0].Text != v.Problems[0] {
		t.Fatalf("faults %+v, problems %q: want the silent host in both", v.Faults, v.Problems)
	}
	want := h.grant(0x8001).Place
	if f := v.Faults[0]; f.Kind != fault.LinkDead || f.Place != want || f.GUID != ib.GUID(0) {
		t.Errorf("fault %+v, want a dead link at %v", f, want)
	}
}
