package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyimport"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/topospec"
)

func TestKeysConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		set  func(*Keys)
		want string // empty: it is taken
	}{
		{"defaults", func(*Keys) {}, ""},
		{"all on", func(c *Keys) {
			c.Root, c.MKey, c.CCKey, c.VSKey, c.N2NKey = "root", keyEnable, keyEnable, keyEnable, keyDisable
		}, ""},
		{"a credential", func(c *Keys) { c.Root = "credential:keys-root" }, ""},
		{"random, no rotation, no lease", func(c *Keys) { c.Mode, c.RotationPeriod, c.MKeyLease = "random", 0, 0 }, ""},
		{"no root", func(c *Keys) { c.MKey = keyEnable }, "fabric.keys.m_key_enable: enable: the keys have to be sealed; name a root"},
		{"a path as credential", func(c *Keys) { c.Root = "credential:../x" }, "fabric.keys.root"},
		{"another mode", func(c *Keys) { c.Mode = "fixed" }, "fabric.keys.m_key_mode"},
		{"level 0", func(c *Keys) { c.MKeyProtection = 0 }, "any host may read the fabric"},
		{"level 1", func(c *Keys) { c.MKeyProtection = 1 }, "any host may read the fabric"},
		{"level 4", func(c *Keys) { c.MKeyProtection = 4 }, "want 2 or 3"},
		{"a long lease", func(c *Keys) { c.VSLease = 20 * time.Hour }, "fabric.keys.vs_key_lease_period"},
		{"half a second", func(c *Keys) { c.CCLease = 500 * time.Millisecond }, "whole seconds"},
		{"a key that can be read", func(c *Keys) { c.N2NProtect = false }, "could read the key"},
		{"none outstanding", func(c *Keys) { c.VSOutstanding = 0 }, "want 1 to 500"},
		{"a short period", func(c *Keys) { c.RotationPeriod = time.Second }, "fabric.keys.rotation_period: rotation period 1s"},
		{"a long grace", func(c *Keys) { c.RotationGrace = 48 * time.Hour }, "want less than the period"},
	} {
		c, k := defaultKeys(), &checker{}
		tt.set(&c)
		c.check(k, "fabric.keys")
		var said strings.Builder
		for _, p := range k.problems {
			said.WriteString(p.key + ": " + p.message + "\n")
		}
		if tt.want == "" && said.Len() > 0 || !strings.Contains(said.String(), tt.want) {
			t.Errorf("%s: said %q, want %q", tt.name, said.String(), tt.want)
		}
	}
}

// An operator who writes a key where a word belongs does not find it in the message.
func TestKeysConfigShowsNoKey(t *testing.T) {
	t.Parallel()
	c, k := defaultKeys(), &checker{}
	c.MKey = "0x" + strings.ToLower(keystest.Hex(keystest.Planted(0)))
	c.check(k, "fabric.keys")
	if len(k.problems) != 1 {
		t.Fatalf("%d problems, want one", len(k.problems))
	}
	keystest.New(keystest.Planted(0)).CleanValue(t, k.problems)
}

// Configured keys reach the core, and none do without a root.
func TestKeysReachTheCore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "root"), strings.Repeat("0123456789abcdeffedcba9876543210", 2))
	if err := os.Chmod(filepath.Join(dir, "root"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "guid2mkey"), "0x0000000000100000 0x"+keystest.Hex(keystest.Planted(0))+"\n")
	write(t, filepath.Join(dir, "guid2vskey"), "0x0000000000100000 0x"+keystest.Hex(keystest.Planted(2))+"\n")
	write(t, filepath.Join(dir, "guid2cckey"), "0x0000000000100000 0x"+keystest.Hex(keystest.Planted(3))+"\n")
	write(t, filepath.Join(dir, "neighbors"), "0x0000000000100000:1 0x0000000000200001:1\n")
	write(t, filepath.Join(dir, "opensm.conf"), "m_key 0x"+keystest.Hex(keystest.Planted(1))+"\n")
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, tt := range []struct {
		name string
		set  func(*Keys)
		want mkeys.Config
		vs   sm.KeyEnable
		err  string
	}{
		{"no root", func(*Keys) {}, mkeys.Config{}, 0, ""},
		{"a root", func(c *Keys) { c.Root = "root" }, mkeys.Config{Protection: 2, Places: keyplace.Auto, Rotation: keys.DefaultRotation()}, 0, ""},
		{"a root, and M_Keys off", func(c *Keys) { c.Root, c.MKey, c.VSKey = "root", keyIgnore, keyEnable }, mkeys.Config{Places: keyplace.Auto}, sm.KeyEnabled, ""},
		{"taken off", func(c *Keys) {
			c.Root, c.MKey, c.MKeyLease, c.RotationPeriod = "root", keyDisable, time.Minute, 0
		}, mkeys.Config{
			Protection: 2, Lease: 60, Places: keyplace.Auto, Rotation: keys.RotationConfig{Grace: time.Hour, Window: 16}, Release: true,
		}, 0, ""},
		{"no such root", func(c *Keys) { c.Root = "nowhere" }, mkeys.Config{}, 0, "nowhere"},
		{"taken over", func(c *Keys) { c.Root, c.Import, c.ImportOptions = "root", ".", "opensm.conf" }, mkeys.Config{
			Protection: 2, Places: keyplace.Auto, Rotation: keys.DefaultRotation(), Import: &keyimport.Keys{
				Keys:   map[ib.GUID]keys.Key{0x100000: keys.New(keystest.Planted(0))},
				Single: keys.New(keystest.Planted(1)), Behind: map[ib.Place]ib.GUID{{Switch: 0x100000, Port: 1}: 0x200001},
			},
		}, 0, ""},
		{"keys of classes taken over", func(c *Keys) { c.Root, c.MKey, c.VSKey, c.Import = "root", keyIgnore, keyEnable, "." }, mkeys.Config{Places: keyplace.Auto}, sm.KeyEnabled, ""},
		{"nothing to take over", func(c *Keys) { c.Root, c.Import = "root", "none" }, mkeys.Config{}, 0, "there is no key in them"},
	} {
		c, got := defaultKeys(), sm.Config{}
		tt.set(&c)
		err := c.apply(&got, in)
		c.bindPlaces(&got)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
			}
			continue
		}
		if c.VSKey == keyEnable && c.Import != "" {
			want := map[keys.Kind]map[ib.GUID]keys.Key{keys.VSKey: {0x100000: keys.New(keystest.Planted(2))}}
			if !reflect.DeepEqual(got.ClassKeys.Import, want) {
				t.Errorf("%s: keys of %d classes are taken over, want the VS_Key of one device", tt.name, len(got.ClassKeys.Import))
			}
		}
		bare := cmp.Comparer(func(a, b keys.Key) bool { return a == b })
		if diff := cmp.Diff(tt.want, got.MKey, bare); err != nil || diff != "" || got.ClassKeys.VS.Enable != tt.vs {
			t.Errorf("%s: %v, VS %v; M_Keys (-want +got):\n%s", tt.name, err, got.ClassKeys.VS.Enable, diff)
		}
	}
}

// Where a topology is declared, places are those, unless the configuration says
// otherwise.
func TestPlacesOfKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		places   string
		topology bool
		want     keyplace.Policy
		notice   string
	}{
		{placesAuto, false, keyplace.Auto, "the port that shows a GUID first is believed"},
		{placesAuto, true, keyplace.Auto, ""},
		{placesSeen, true, keyplace.Seen, "the port that shows a GUID first is believed"},
		{placesDeclared, true, keyplace.Declared, ""},
		{placesDeclared, false, keyplace.Declared, "before a declared topology is put into force"},
	} {
		c, core := defaultKeys(), sm.Config{}
		c.Root, c.Places = "root", tt.places
		if tt.topology {
			core.Topology = sm.TopologyConfig{Spec: &topospec.Spec{}, Mode: topospec.Enforce}
		}
		c.bindPlaces(&core)
		said := strings.Join(c.KeyNotices(&core), "\n")
		if core.MKey.Places != tt.want || (said == "") != (tt.notice == "") || !strings.Contains(said, tt.notice) {
			t.Errorf("%s, a topology %v: %v, said %q", tt.places, tt.topology, core.MKey.Places, said)
		}
	}
}

// openSMKeyOptions are the options of OpenSM and UFM about keys.
var openSMKeyOptions = []string{
	"m_key", "m_key_per_port", "m_key_lease_period", "m_key_protection_level", "m_key_lookup", "periodic_key_update", "key_mgr_seed",
	"global_m_key_seed", "cc_key_enable", "cc_key_lease_period", "cc_key_protect_bit", "cc_max_outstanding_mads", "vs_key_enable",
	"vs_key_lease_period", "vs_key_ci_protect_bits", "vs_max_outstanding_mads", "n2n_key_enable", "n2n_key_lease_period",
	"n2n_key_protect_bit", "n2n_max_outstanding_mads", "sm_key", "sa_key", "randomize_sa_key", "cc_key", "gmp_traps_threads_num",
	"service_name2key_map_file",
}

// keyOptionTable returns the lines of the table of docs/understand/keys.md.
func keyOptionTable(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/understand/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| OpenSM, UFM | here | |\n|---|---|---|\n")
	if !ok {
		t.Fatal("docs/understand/keys.md has no table of options")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	return table
}

// The table of docs/understand/keys.md names every option about keys, with a key that there
// is, or why there is none.
func TestKeyOptionsAreMapped(t *testing.T) {
	t.Parallel()
	have, mapped := map[string]bool{}, map[string]bool{}
	for _, k := range keysOf("fabric.", reflect.TypeFor[Fabric]()) {
		have[k] = true
	}
	for line := range strings.Lines(keyOptionTable(t)) {
		cells := strings.Split(line, "|")
		for name := range strings.SplitSeq(cells[1], ",") {
			mapped[strings.Trim(name, " `")] = true
		}
		if key := strings.Trim(cells[2], " `"); key != "" && !have[key] || key == "" && strings.TrimSpace(cells[3]) == "" {
			t.Errorf("%q names no key that there is, and no reason", line)
		}
	}
	for _, o := range openSMKeyOptions {
		if !mapped[o] {
			t.Errorf("%s is not in the table", o)
		}
	}
}
