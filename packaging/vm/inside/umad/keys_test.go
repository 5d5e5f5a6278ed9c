//go:build vm

package umad_test

import (
	"path/filepath"
	"strings"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// wrongKey is a key that nothing has.
const wrongKey = "0x1111"

// protected is a fabric whose devices have M_Keys, and the keys.
type protected struct {
	*manager
	dir  string
	keys map[string]string // M_Key by port GUID
}

// protect starts our Subnet Manager with M_Keys and a declared topology, and waits until all devices have their keys.
func protect(t *testing.T, settings string, args ...string) *protected {
	t.Helper()
	dir := t.TempDir()
	p := &protected{dir: dir, keys: map[string]string{}}
	guest.Do(t, "portcullis", "keys", "root", p.in("keys.root"))
	guest.Do(t, "portcullis", "topospec", "convert", netlist(t), "--to", "yaml", "--out", p.in("topology.yaml"))
	write(t, p.in("config.yaml"), "fabric:\n  topology: {file: topology.yaml, mode: enforce}\n"+settings)
	p.manager = begin(t, ours, append([]string{"--config", p.in("config.yaml"), "--keys-root", p.in("keys.root"), "--state-dir", p.in("state")}, args...)...)
	p.settled(0)
	guest.Eventually(t, patience, "devices without key", func() bool {
		return strings.Contains(guest.Try(t, "portcullis", "fabric", "keys", "--socket", p.socket).Out, "18 held")
	})
	p.export(t, "keys")
	return p
}

func (p *protected) in(name string) string { return filepath.Join(p.dir, name) }

// export reads the keys in clear.
func (p *protected) export(t *testing.T, name string) {
	t.Helper()
	guest.Do(t, "portcullis", "keys", "export", "--facts", p.in("state/facts"), "--root", p.in("keys.root"), "--out", p.in(name))
	for line := range strings.Lines(guest.Read(t, p.in(name+"/guid2mkey"))) {
		if f := strings.Fields(line); len(f) == 2 {
			p.keys[f[0]] = f[1]
		}
	}
	if len(p.keys) != 18 {
		t.Fatalf("%d keys were exported, want 18", len(p.keys))
	}
}

// TestKeys runs Debian's tools from the other node with right and wrong keys.
func TestKeys(t *testing.T) {
	newFabric(t, ourNode, tester)
	saKey := filepath.Join(t.TempDir(), "sa.key")
	write(t, saKey, "0x8f3ac91d27b6e504\n")
	p := protect(t, "", "--sa-key-file", saKey)
	leaf := p.keys["0x0010000100000001"]
	t.Run("M_Key", func(t *testing.T) {
		query := []string{"-C", theirs, "-t", "500", "-D", "portinfo", "0,1", "0"}
		if e := guest.Try(t, "smpquery", query...); e.Code == 0 {
			t.Errorf("without a key smpquery got\n%s", e.Out)
		}
		if e := guest.Try(t, "smpquery", append([]string{"-y", wrongKey}, query...)...); e.Code == 0 {
			t.Errorf("with a wrong key smpquery got\n%s", e.Out)
		}
		if out := guest.Do(t, "smpquery", append([]string{"-y", leaf}, query...)...); !strings.Contains(out, "ProtectBits:.....................2") {
			t.Errorf("with the right key smpquery got\n%s", out)
		}
		byLID := []string{"-C", theirs, "-t", "500", "nodedesc", p.lid(t, "leaf1")}
		if e := guest.Try(t, "smpquery", byLID...); e.Code == 0 {
			t.Errorf("by LID without a key smpquery got\n%s", e.Out)
		}
		guest.Do(t, "smpquery", append([]string{"-y", leaf}, byLID...)...)
	})
	t.Run("sminfo", func(t *testing.T) {
		// Drivers hand SMInfo to the Subnet Manager whatever M_Key it has.
		for _, key := range []string{"0", wrongKey, p.keys["0x0020000000000001"]} {
			guest.Do(t, "sminfo", "-C", theirs, "-t", "5000", "-y", key)
		}
	})
	t.Run("perfquery", func(t *testing.T) { // which M_Keys do not protect; hosts reach no switch
		guest.Do(t, "perfquery", "-C", theirs, decimal(port(t, ours, "lid")), "1")
	})
	t.Run("SA_Key", func(t *testing.T) {
		node := []string{"-C", theirs, "-t", "1000", "NR"}
		for _, key := range []string{"0", wrongKey} {
			if e := guest.Try(t, "saquery", append([]string{"--smkey", key}, node...)...); e.Code == 0 {
				t.Errorf("with key %s saquery got\n%s", key, last(e.Out, 500))
			}
		}
		out := guest.Do(t, "saquery", append([]string{"--smkey", "0x8f3ac91d27b6e504"}, node...)...)
		if n := strings.Count(out, "NodeRecord dump:"); n != 18 {
			t.Errorf("with the right key saquery got %d nodes, want 18", n)
		}
		// What every host may ask: the class, and a path of its own.
		guest.Do(t, "saquery", "-C", theirs, "-c")
	})
	t.Run("ibnetdiscover", func(t *testing.T) {
		if got := cablesOf(guest.Try(t, "ibnetdiscover", "-C", theirs, "-t", "50").Out); len(got) > 0 {
			t.Errorf("without keys ibnetdiscover found %v", got)
		}
	})
}

// lid asks our Subnet Manager for the LID of a switch.
func (m *manager) lid(t testing.TB, node string) string {
	t.Helper()
	for line := range strings.Lines(guest.Do(t, "portcullis", "fabric", "nodes", "--socket", m.socket)) {
		if f := strings.Fields(line); len(f) > 4 && f[1] == "switch" && f[2] == node {
			return f[4]
		}
	}
	t.Fatalf("%s has no LID", node)
	return ""
}
