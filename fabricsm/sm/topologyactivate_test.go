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
