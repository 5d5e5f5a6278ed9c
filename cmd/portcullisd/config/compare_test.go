package config

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

func TestChangedKeys(t *testing.T) {
	t.Parallel()
	a, b := Default(), Default()
	b.Fabric.LMC, b.Fabric.Ports.MaxMTU = 2, a.Fabric.Ports.MaxMTU/2
	b.Fabric.Health.Marked, b.Fabric.Health.Flapping.Count = health.Disable, 99
	b.Fabric.Election.AllowedSMs = []sm.AllowedSM{{GUID: 1}}
	b.Listen = "127.0.0.1:1"
	var core, next sm.Config
	r := Compare("", a, b, &core, &next)
	if d := cmp.Diff([]string{"fabric.election.allowed_sms", "fabric.ports.max_mtu", "fabric.health.flapping", "fabric.health.marked"}, r.Live); d != "" {
		t.Errorf("in force at once (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"listen", "fabric.lmc"}, r.Restart); d != "" {
		t.Errorf("wait for a restart (-want +got):\n%s", d)
	}
	if keys := changedKeys("", reflect.ValueOf(*a), reflect.ValueOf(*Default())); len(keys) != 0 {
		t.Errorf("two of the same differ in %q", keys)
	}
}
