package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/sm"
)

func TestKeysConfig(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*keysConfig)
		want string // empty: it is taken
	}{
		{"defaults", func(*keysConfig) {}, ""},
		{"all on", func(c *keysConfig) {
			c.Root, c.MKey, c.CCKey, c.VSKey, c.N2NKey = "root", keyEnable, keyEnable, keyEnable, keyDisable
		}, ""},
		{"a credential", func(c *keysConfig) { c.Root = "credential:keys-root" }, ""},
		{"random, no rotation, no lease", func(c *keysConfig) { c.Mode, c.RotationPeriod, c.MKeyLease = "random", 0, 0 }, ""},
		{"no root", func(c *keysConfig) { c.MKey = keyEnable }, "fabric.keys.m_key_enable: enable: the keys have to be sealed; name a root"},
		{"a path as credential", func(c *keysConfig) { c.Root = "credential:../x" }, "fabric.keys.root"},
		{"another mode", func(c *keysConfig) { c.Mode = "fixed" }, "fabric.keys.m_key_mode"},
		{"level 0", func(c *keysConfig) { c.MKeyProtection = 0 }, "any host may read the fabric"},
		{"level 1", func(c *keysConfig) { c.MKeyProtection = 1 }, "any host may read the fabric"},
		{"level 4", func(c *keysConfig) { c.MKeyProtection = 4 }, "want 2 or 3"},
		{"a long lease", func(c *keysConfig) { c.VSLease = 20 * time.Hour }, "fabric.keys.vs_key_lease_period"},
		{"half a second", func(c *keysConfig) { c.CCLease = 500 * time.Millisecond }, "whole seconds"},
		{"a key that can be read", func(c *keysConfig) { c.N2NProtect = false }, "could read the key"},
		{"none outstanding", func(c *keysConfig) { c.VSOutstanding = 0 }, "want 1 to 500"},
		{"a short period", func(c *keysConfig) { c.RotationPeriod = time.Second }, "fabric.keys.rotation_period: rotation period 1s"},
		{"a long grace", func(c *keysConfig) { c.RotationGrace = 48 * time.Hour }, "want less than the period"},
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

// Who writes a key where a word belongs does not find it in the message.
func TestKeysConfigShowsNoKey(t *testing.T) {
	c, k := defaultKeys(), &checker{}
	c.MKey = "0x" + strings.ToLower(hexOf(keystest.Planted(0)))
	c.check(k, "fabric.keys")
	if len(k.problems) != 1 {
		t.Fatalf("%d problems, want one", len(k.problems))
	}
	keystest.New(keystest.Planted(0)).CleanValue(t, k.problems)
}

func hexOf(v uint64) string {
	const digits = "0123456789ABCDEF"
	var b [16]byte
	for i := range b {
		b[i] = digits[v>>(60-4*i)&15]
	}
	return string(b[:])
}

// Keys that are switched on and not programmed would be believed in.
func TestKeysAreRefusedUntilTheyAreProgrammed(t *testing.T) {
	for _, enable := range []string{keyIgnore, keyDisable, keyEnable} {
		c := defaultKeys()
		c.VSKey = enable
		if err := c.apply(&sm.Config{}, nil); (err != nil) != (enable != keyIgnore) {
			t.Errorf("%s: %v", enable, err)
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

// The table of docs/keys.md names every option about keys, with a key that there
// is, or why there is none.
func TestKeyOptionsAreMapped(t *testing.T) {
	page, err := os.ReadFile("../../docs/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| OpenSM, UFM | here | |\n|---|---|---|\n")
	if !ok {
		t.Fatal("docs/keys.md has no table of options")
	}
	have, mapped := map[string]bool{}, map[string]bool{}
	for _, k := range keysOf("fabric.", reflect.TypeFor[fabricConfig]()) {
		have[k] = true
	}
	for line := range strings.Lines(table) {
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
