package sm_test

import (
	"maps"
	"testing"
	"time"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topospec"
)

// TestActivationTouchesOnlyWhatChanges: another revision is put into force between two
// sweeps: one that says the same sends nothing at all, one that differs in a port asks
// and writes about that port alone.
func TestActivationTouchesOnlyWhatChanges(t *testing.T) {
	l := tree(t, 8, 8)
	label := law(t, l, func(r *topospec.Revision) { r.Number, r.Links[0].Reason = 2, "a label" })
	without := law(t, l, func(r *topospec.Revision) {
		r.Number = 3
		x := linkOf(r, l.Find("h5").GUID)
		x.A, x.B, x.State = hosts(l)[4].end(), topospec.End{}, topospec.Reserved
	})
	e := newEnv(t, l, sim.Options{LoseSilently: true}, under(law(t, l), topospec.Enforce), 1)
	e.cfg.AuditPeriod = -1
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(10 * time.Second)
	e.run(time.Minute) // names are read
	all := func() (n int) {
		for _, sent := range e.smps {
			n += sent
		}
		return n
	}
	quiet := all()
	e.run(10 * time.Second)
	quiet = all() - quiet // requests that are sent anyway
	for _, step := range []struct {
		name       string
		spec       *topospec.Spec
		most, sets int // requests, and Sets among them
		off        int
	}{
		{"a label", label, 0, 0, 0},
		{"the mode", label, 0, 0, 0},
		{"one link", without, 14, 2, 1},
	} {
		t.Run(step.name, func(t *testing.T) {
			mode := topospec.Enforce
			if step.name == "the mode" {
				mode = topospec.Warn
			}
			sent, sets, was := all(), e.sets(), maps.Clone(e.smps)
			e.step(&sm.TopologySet{Spec: step.spec, Mode: mode, By: "ada"})
			e.run(10 * time.Second)
			e.mustSettle(time.Minute)
			if n := all() - sent - quiet; n > step.most {
				t.Errorf("%d more requests than without, at most %d are to be sent: %v, before %v", n, step.most, e.smps, was)
			}
			if n := e.sets() - sets; n > step.sets {
				t.Errorf("%d Sets, at most %d are to be sent", n, step.sets)
			}
			if got := e.disabled(); len(got) != step.off {
				t.Errorf("off are %q, want %d", got, step.off)
			}
			if v := e.view.Topology; v.Digest != step.spec.Digest() || v.Mode != mode {
				t.Errorf("in force is %v in mode %v", v.Digest, v.Mode)
			}
		})
	}
}

// TestWayBack: links are lost after another revision came into force. The one before
// may come back although too few of its links are verified then, as long as it would
// not switch off more than one may.
func TestWayBack(t *testing.T) {
	l := tree(t, 8, 8)
	first := law(t, l)
	next := law(t, l, func(r *topospec.Revision) { r.Number, r.Links[0].Reason = 2, "a label" })
	e := newEnv(t, l, sim.Options{LoseSilently: true}, under(first, topospec.Enforce), 1)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(10 * time.Second)
	e.step(&sm.TopologySet{Spec: next, Mode: topospec.Enforce, By: "ada"})
	e.run(10 * time.Second)
	for _, h := range hosts(l)[2:6] {
		e.pull(&h)
	}
	e.run(10 * time.Second)
	for _, step := range []struct {
		back bool
		want *topospec.Spec
	}{{false, next}, {true, first}} {
		e.step(&sm.TopologySet{Spec: first, Mode: topospec.Enforce, By: "ada", Back: step.back})
		e.run(10 * time.Second)
		if v := e.view.Topology; v.Digest != step.want.Digest() || v.Mode != topospec.Enforce {
			t.Errorf("back %v: revision %d is in force in mode %v", step.back, v.Revision, v.Mode)
		}
	}
	// Nor is it lost when it is killed before it said that it has it.
	e.cfg.Topology = sm.TopologyConfig{Spec: next, Mode: topospec.Enforce, Back: true}
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.run(30 * time.Second)
	if v := e.view.Topology; v.Digest != next.Digest() || v.Mode != topospec.Enforce {
		t.Errorf("after a restart revision %d is in force in mode %v; %q", v.Revision, v.Mode, e.problems())
	}
}
