//go:build vm

package umad_test

import (
	"strings"
	"syscall"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// behind is a directed route from the other node to the second leaf, and its port to h4.
const (
	behind     = "0,1,5,3"
	behindPort = "2"
)

// TestPorts is items 1 and 2 of step 5.
func TestPorts(t *testing.T) {
	newFabric(t, ourNode, tester)
	t.Run("link speed", func(t *testing.T) {
		once(t, ours)
		enabled := func() int {
			return strings.Count(guest.Do(t, "iblinkinfo", "-C", theirs), "25.78125 Gbps Active/  LinkUp")
		}
		before := enabled()
		once(t, ours, "--link-speed", "supported")
		if after := enabled(); before == 0 || after != before {
			t.Errorf("%d ends of links ran at EDR, and %d after all speeds were to be enabled", before, after)
		}
		once(t, ours, "--link-speed", "FDR", "--retrain")
		guest.Eventually(t, patience, "links do not run at FDR", func() bool {
			return strings.Count(guest.Do(t, "iblinkinfo", "-C", theirs), "14.0625 Gbps Active/  LinkUp") >= 2*27
		})
		once(t, ours, "--link-speed", "supported", "--retrain")
		guest.Eventually(t, patience, "links do not run as before", func() bool {
			return !strings.Contains(guest.Do(t, "iblinkinfo", "-C", theirs), "14.0625 Gbps Active/  LinkUp")
		})
	})
	t.Run("disabled", disabled)
}

// disabled has a rule switch a port off. A reload without it brings the port back; a Subnet Manager that starts without it
// leaves the port as it is.
func disabled(t *testing.T) {
	config := t.TempDir() + "/config.yaml"
	const rule = "fabric:\n  ports:\n    rules:\n    - {guid: 0x0010000100000002, port: 2, disabled: true}\n"
	write(t, config, rule)
	off := func() bool {
		return strings.Contains(guest.Do(t, "ibportstate", "-C", theirs, "-D", behind, behindPort), "PhysLinkState:...................Disabled")
	}
	m := manage(t, ours, "--config", config)
	guest.Eventually(t, patience, "the port is not Disabled", off)
	reload := func(text string) mark {
		t.Helper()
		write(t, config, text)
		from := m.now()
		if err := m.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		m.says(from, "the configuration was read again")
		return from
	}
	back := func(e event) bool { return e.Event == "port-placed" && e.Fields["guid"] == distantGUID }
	m.tells(reload("fabric: {}\n"), "the host that comes back", back)
	reload(rule)
	guest.Eventually(t, patience, "the port is not Disabled again", off)
	m.signal(syscall.SIGTERM)
	m = manage(t, ours)
	if !off() {
		t.Error("a Subnet Manager without the rule has switched the port on")
	}
	from := m.now()
	guest.Do(t, "ibportstate", "-C", theirs, "-D", behind, behindPort, "enable")
	m.tells(from, "the host that comes back", back)
}
