package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/portpolicy"
)

// An empty configuration sets what the core does by default, so that operators need not look up two sets of defaults.
func TestFabricDefaultsAreTheCores(t *testing.T) {
	t.Parallel()
	c := Default()
	got, err := c.Fabric.Core(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	got.Controls = got.Controls.WithDefaults() // as sm.New does
	want := sm.DefaultConfig()
	want.Priority = c.Fabric.Priority
	want.Counters.Mute = c.Fabric.Mute // that of the core asks nothing beside SMPs
	want.Election.MasterPriority = c.Fabric.Election.MasterPriority
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(sm.Config{}, "Engines", "Violations", "ClassKeys")); d != "" {
		t.Errorf("the core is told something else than its defaults (-core +told):\n%s", d)
	}
}

func TestPortsReachTheCore(t *testing.T) {
	t.Parallel()
	c, err := Parse("c.yaml", []byte(`fabric:
  ports:
    link_speed: ndr
    link_width: supported
    reregister: false
    retrain: true
    rules:
    - {guid: 0x10, port: 3, link_speed: supported, link_width: 1x, max_mtu: 1024, max_vls: 8}
    - {guid: 0x11, port: 4, disabled: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	core, err := c.Fabric.Core(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	want := sm.DefaultConfig().Ports
	want.Link = portpolicy.Link{MaxSpeed: ib.NDR, MaxWidth: ib.Width12x}
	want.Retrain, want.NoReregister = true, true
	want.Rules = []portpolicy.Rule{
		{GUID: 0x10, Port: 3, Link: portpolicy.Link{MaxSpeed: ib.XDR, MaxWidth: ib.Width1x}, MaxMTU: ib.MTU1024, MaxVLs: 4},
		{GUID: 0x11, Port: 4, Disabled: true},
	}
	if d := cmp.Diff(want, core.Ports); d != "" {
		t.Errorf("ports (-want +got):\n%s", d)
	}
}

// Every section is named in sections, so that none is left unchecked.
func TestEverySectionIsListed(t *testing.T) {
	t.Parallel()
	f := defaultFabric()
	listed := map[string]bool{}
	for _, s := range f.sections() {
		listed[s.key] = true
	}
	for _, key := range keysOf("fabric.", reflect.TypeFor[Fabric]()) {
		if section, _, deep := cutSection(key); deep && !listed[section] {
			t.Errorf("%s belongs to no section", key)
		}
	}
}

// cutSection cuts a key of three parts or more, as in "fabric.ports.prefix".
func cutSection(key string) (section, name string, deep bool) {
	parts := strings.SplitN(key, ".", 3)
	if len(parts) < 3 {
		return "", "", false
	}
	return parts[0] + "." + parts[1], parts[2], true
}
