package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/sm"
)

// keyEffects says of each option of OpenSM and UFM that docs/understand/keys.md maps to a key of
// ours what to write there, other than the default, and what of the core's configuration
// then differs; or how the value is refused that would have that effect.
var keyEffects = map[string]struct {
	value string
	of    func(*sm.Config) any
	not   string // how it is refused
}{
	"m_key":                   {"opensm.conf", func(c *sm.Config) any { return c.MKey.Import != nil }, ""},
	"m_key_per_port":          {"disable", func(c *sm.Config) any { return c.MKey.Release }, ""},
	"m_key_lease_period":      {"30s", func(c *sm.Config) any { return c.MKey.Lease }, ""},
	"m_key_protection_level":  {"3", func(c *sm.Config) any { return c.MKey.Protection }, ""},
	"global_m_key_seed":       {"random", nil, ""},
	"key_mgr_seed":            {"random", nil, ""},
	"periodic_key_update":     {"12h", func(c *sm.Config) any { return []any{c.MKey.Rotation, c.ClassKeys.Rotation} }, ""},
	"cc_key_enable":           {"disable", func(c *sm.Config) any { return c.ClassKeys.CC.Enable }, ""},
	"cc_key_lease_period":     {"30s", func(c *sm.Config) any { return c.ClassKeys.CC.Lease }, ""},
	"cc_key_protect_bit":      {"false", nil, "any host could read the key"},
	"cc_max_outstanding_mads": {"7", func(c *sm.Config) any { return c.ClassKeys.CC.Window }, ""},
	"vs_key_enable":           {"disable", func(c *sm.Config) any { return c.ClassKeys.VS.Enable }, ""},
	"vs_key_lease_period":     {"30s", func(c *sm.Config) any { return c.ClassKeys.VS.Lease }, ""},
	"vs_key_ci_protect_bits":  {"false", nil, "any host could read the key"},
	"vs_max_outstanding_mads": {"7", func(c *sm.Config) any { return c.ClassKeys.VS.Window }, ""},
	"n2n_key_enable":          {"disable", func(c *sm.Config) any { return c.ClassKeys.N2N.Enable }, ""},
	"n2n_key_lease_period":    {"30s", func(c *sm.Config) any { return c.ClassKeys.N2N.Lease }, ""},
	"n2n_key_protect_bit":     {"false", nil, "any host could read the key"},

	"n2n_max_outstanding_mads": {"7", func(c *sm.Config) any { return c.ClassKeys.N2N.Window }, ""},

	"sm_key": {"sm.key", func(c *sm.Config) any { return !c.SMKey.IsZero() }, ""},
}

// TestKeyOptionsHaveEffect: each option of OpenSM or UFM in docs/understand/keys.md is taken by the configuration, and
// changes what the core does; a value that is refused is refused with the reason.
func TestKeyOptionsHaveEffect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"keys.root":   strings.Repeat("0123456789abcdeffedcba9876543210", 2),
		"sm.key":      "0x" + keystest.Hex(keystest.Planted(2)),
		"opensm.conf": "m_key 0x" + keystest.Hex(keystest.Planted(1)) + "\n",
	} {
		write(t, filepath.Join(dir, name), text)
		if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := make(map[string]bool)
	for option, key := range mappedKeyOptions(t) {
		seen[option] = true
		effect, ok := keyEffects[option]
		if !ok {
			t.Errorf("%s is %s here, and nothing says what that changes", option, key)
			continue
		}
		base, _, err := configured(dir, "", "")
		if err != nil {
			t.Fatal(err)
		}
		got, mode, err := configured(dir, key, effect.value)
		switch {
		case effect.not != "":
			if err == nil || !strings.Contains(err.Error(), effect.not) {
				t.Errorf("%s, %s: %s: %v, want %q", option, key, effect.value, err, effect.not)
			}
		case err != nil:
			t.Errorf("%s, %s: %s: %v", option, key, effect.value, err)
		case effect.of == nil:
			if mode != effect.value {
				t.Errorf("%s: keys are %s, want %s", option, mode, effect.value)
			}
		case reflect.DeepEqual(effect.of(base), effect.of(got)):
			t.Errorf("%s, %s: %s changes nothing", option, key, effect.value)
		}
	}
	for option := range keyEffects {
		if !seen[option] {
			t.Errorf("docs/understand/keys.md does not map %s to a key", option)
		}
	}
}

// configured returns the result of a configuration with all keys in use, with one key of it changed.
func configured(dir, key, value string) (core *sm.Config, mode string, err error) {
	lines := map[string]string{
		"fabric.keys.root": "keys.root", "fabric.keys.m_key_enable": keyEnable,
		"fabric.keys.cc_key_enable": keyEnable, "fabric.keys.vs_key_enable": keyEnable, "fabric.keys.n2n_key_enable": keyEnable,
	}
	if key != "" {
		lines[key] = value
	}
	text, inKeys := "fabric:\n", "  keys:\n"
	for _, k := range slices.Sorted(maps.Keys(lines)) {
		if name, ok := strings.CutPrefix(k, "fabric.keys."); ok {
			inKeys += fmt.Sprintf("    %s: %s\n", name, lines[k])
		} else {
			text += fmt.Sprintf("  %s: %s\n", strings.TrimPrefix(k, "fabric."), lines[k])
		}
	}
	c, err := Parse(filepath.Join(dir, "c.yaml"), []byte(text+inKeys))
	if err != nil {
		return nil, "", err
	}
	got, err := c.Fabric.Core(c.Path)
	return &got, c.Fabric.Keys.Mode, err
}

// mappedKeyOptions returns the options of the table of docs/understand/keys.md that are a key here.
func mappedKeyOptions(t *testing.T) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for line := range strings.Lines(keyOptionTable(t)) {
		cells := strings.Split(line, "|")
		key := strings.Trim(cells[2], " `")
		for name := range strings.SplitSeq(cells[1], ",") {
			if key != "" {
				out[strings.Trim(name, " `")] = key
			}
		}
	}
	return out
}
