package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/topospec"
)

// TestPlacesFollowTheMode: which places count may follow the mode in force, also when that changes. A device that is not
// declared gets a key while the topology is only observed, and none from when enforcement is asked for.
func TestPlacesFollowTheMode(t *testing.T) {
	for _, tt := range []struct {
		mode topospec.Mode
		want keyplace.Policy
		key  bool
	}{{topospec.Warn, keyplace.Seen, true}, {topospec.Enforce, keyplace.Declared, false}} {
		t.Run(tt.mode.String(), func(t *testing.T) {
			l := tree(t, 7, 8)
			spec := law(t, l, func(r *topospec.Revision) { r.Policy.Unknown = topospec.UnknownWarn })
			cfg := keyed(t)
			cfg.MKey.Places = keyplace.Auto
			cfg.Topology = sm.TopologyConfig{Spec: spec, Mode: topospec.Observe}
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			e.start()
			e.want(sm.Intent{Revision: 1})
			e.mustSettle(time.Minute)
			if got := e.view.MKeys.Places; got != keyplace.Seen {
				t.Errorf("observed: places are %v", got)
			}
			e.step(&sm.TopologySet{Spec: spec, Mode: tt.mode, By: "ada"})
			e.run(10 * time.Second)
			e.try(insert(e, ib.NodeCA, "alien", 0xabd))
			e.run(time.Minute)
			if got := e.view.MKeys.Places; got != tt.want {
				t.Errorf("places are %v, want %v", got, tt.want)
			}
			if got := e.fab.PortInfo("alien", 1).MKey.Reveal() != 0; got != tt.key {
				t.Errorf("who is not declared holds a key: %v, want %v; off are %q", got, tt.key, e.disabled())
			}
		})
	}
}
